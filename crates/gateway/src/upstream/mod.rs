//! Where requests go: a provider, a script, or recorded traffic.

mod configured;
mod replay;
mod scripted;
mod trust;
mod web;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Response;

pub use configured::{BadUpstream, Surroundings};
pub use replay::{BadRecording, Replay};
pub use trust::{BadCertificates, Trust};
pub use web::{BadAddress, Web};

use crate::request::Asked;
use crate::script::Script;

/// An answer as it comes in.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// What stands behind a gateway.
#[derive(Clone, Debug)]
pub enum Upstream {
    Web(Web),
    Script(Arc<Script>),
    Replay(Arc<Replay>),
}

/// How long to wait for the other side.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the connection to a provider.
    pub connect: Duration,
    /// For the head of its answer. An answer that is not streamed is written
    /// whole before its head is sent.
    pub first_byte: Duration,
    /// Between two pieces of its answer.
    pub idle: Duration,
    /// For the head of an agent's request, also on a connection that it keeps.
    pub request_head: Duration,
    /// For the body of an agent's request.
    pub request_body: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            request_head: Duration::from_secs(60),
            request_body: Duration::from_secs(60),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    #[error("the provider failed before it answered: {0}")]
    Failed(String),
    #[error("the provider did not answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the provider sent the request elsewhere (status {0})")]
    Redirected(u16),
    #[error("the provider sent a compressed answer, which cannot be counted")]
    Compressed,
}

impl NoAnswer {
    pub(crate) fn status(&self) -> u16 {
        match self {
            NoAnswer::Late(_) => 504,
            NoAnswer::Unreachable(_)
            | NoAnswer::Failed(_)
            | NoAnswer::Redirected(_)
            | NoAnswer::Compressed => 502,
        }
    }

    /// Whether the provider may have worked, and charge for it.
    pub(crate) fn may_cost(&self) -> bool {
        match self {
            NoAnswer::Failed(_) | NoAnswer::Late(_) | NoAnswer::Compressed => true,
            NoAnswer::Unreachable(_) | NoAnswer::Redirected(_) => false,
        }
    }
}

impl Upstream {
    pub(crate) async fn ask(
        &self,
        asked: &Asked,
        timeouts: &Timeouts,
    ) -> Result<Response<Body>, NoAnswer> {
        let answer = async {
            match self {
                Upstream::Web(web) => web.ask(asked).await,
                Upstream::Script(script) => Ok(scripted::ask(script, asked).await),
                Upstream::Replay(replay) => Ok(replay.ask(asked)),
            }
        };
        let limit = timeouts.first_byte;
        let answer = tokio::time::timeout(limit, answer).await;
        let answer = answer.map_err(|_| NoAnswer::Late(limit))??;
        let encoding = answer.headers().get(hyper::header::CONTENT_ENCODING);
        if answer.status().is_redirection() {
            Err(NoAnswer::Redirected(answer.status().as_u16()))
        } else if encoding.is_some_and(|encoding| encoding != "identity") {
            Err(NoAnswer::Compressed)
        } else {
            Ok(answer)
        }
    }
}
