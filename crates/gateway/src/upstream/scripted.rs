//! The scripted model as an upstream: waits, breaks and hangs included.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;
use tokio::time::{Sleep, sleep};

use super::{Body, BodyError};
use crate::dialect::Dialect;
use crate::refusal;
use crate::request::{Asked, Endpoint};
use crate::script::{Answer, Ending, Script, Sight};

pub(super) async fn ask(script: &Script, asked: &Asked) -> Response<Body> {
    let answer = match asked.endpoint {
        Endpoint::Model(dialect) => match Sight::of(dialect, &asked.body) {
            Ok(sight) => script.answer(&sight),
            Err(error) => {
                let body = refusal::body(dialect, 400, None, &error.to_string());
                return response(400, false, vec![body].into());
            }
        },
        Endpoint::CountTokens | Endpoint::ListModels => return free(asked),
    };
    sleep(answer.delay).await;
    if answer.ending == Ending::HangAfter(0) {
        std::future::pending::<()>().await;
    }
    let (status, streamed, retry_after) = (answer.status, answer.streamed, answer.retry_after);
    let mut response = response(status, streamed, Pieces::of(answer));
    if let Some(wait) = retry_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Requests that cost nothing, for agents that make them.
pub(super) fn free(asked: &Asked) -> Response<Body> {
    let body = match asked.endpoint {
        Endpoint::CountTokens => json!({"input_tokens": asked.body.len().div_ceil(4)}),
        Endpoint::ListModels => json!({"object": "list", "data": []}),
        Endpoint::Model(dialect) => {
            let body = refusal::body(dialect, 400, None, "not a free request");
            return response(400, false, vec![body].into());
        }
    };
    response(200, false, vec![Bytes::from(body.to_string())].into())
}

/// An error in the words of a dialect.
pub(super) fn error(dialect: Dialect, status: u16, message: &str) -> Response<Body> {
    response(status, false, vec![refusal::body(dialect, status, None, message)].into())
}

pub(super) fn response(status: u16, streamed: bool, body: Pieces) -> Response<Body> {
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = if streamed { "text/event-stream" } else { "application/json" };
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

/// A body that comes in pieces.
pub(super) struct Pieces {
    left: VecDeque<Bytes>,
    pause: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    then: Then,
    started: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Then {
    End,
    Break,
    Hang,
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        Pieces::ending(pieces, Then::End)
    }
}

impl Pieces {
    pub(super) fn ending(pieces: Vec<Bytes>, then: Then) -> Self {
        Pieces { left: pieces.into(), pause: Duration::ZERO, waiting: None, then, started: false }
    }

    fn of(answer: Answer) -> Self {
        let (then, most) = match answer.ending {
            Ending::Complete => (Then::End, u32::MAX),
            Ending::CutAfter(events) => (Then::Break, events),
            Ending::HangAfter(events) => (Then::Hang, events),
        };
        let mut pieces = answer.pieces;
        pieces.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Pieces { pause: answer.pause, ..Pieces::ending(pieces, then) }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.started && !self.pause.is_zero() && !self.left.is_empty() {
            let pause = self.pause;
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(pause)));
            std::task::ready!(waiting.as_mut().poll(context));
            self.waiting = None;
        }
        self.started = true;
        match (self.left.pop_front(), self.then) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            (None, Then::End) => Poll::Ready(None),
            (None, Then::Break) => Poll::Ready(Some(Err("the script cuts the stream here".into()))),
            // Whoever waits gives up or hangs up; nothing here will wake it.
            (None, Then::Hang) => Poll::Pending,
        }
    }
}
