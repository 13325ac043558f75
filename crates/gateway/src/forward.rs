//! From an agent's request to the answer it gets.

use std::sync::Arc;
use std::time::Instant;

use blueflame_core::money::{Spend, Usage};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, SET_COOKIE};
use hyper::{Method, Request, Response, StatusCode};
use jiff::Timestamp;

use crate::allowance::{GrantWait, Ticket, Verdict};
use crate::dialect::Dialect;
use crate::facts::Fact;
use crate::flow::{Account, Counted, Flow};
use crate::gateway::Inner;
use crate::headers::strip_hop_by_hop;
use crate::loops::Pass;
use crate::meter::{Meter, estimate};
use crate::provider_limit;
use crate::recording::Open;
use crate::refusal::{self, Refusal};
use crate::request::{Asked, Endpoint};
use crate::upstream::BodyError;

type Answer = Response<UnsyncBoxBody<Bytes, BodyError>>;

/// What an answer is taken to have at most when the request does not say.
const MOST_OUTPUT: u64 = 16_384;

/// Tells the clients' libraries to leave it at that.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Why a request was refused, in one word.
const REFUSED: HeaderName = HeaderName::from_static("x-blueflame-refused");

impl Inner {
    pub(crate) async fn respond(self: &Arc<Self>, request: Request<Incoming>) -> Answer {
        if request.method() == Method::HEAD && request.uri() == "/" {
            // claude asks this when it starts, without its token, to see
            // whether anyone is there.
            return Response::new(Full::default().map_err(|never| match never {}).boxed_unsync());
        }
        let endpoint = Endpoint::of(&request);
        let dialect = endpoint.as_ref().map_or(Dialect::Messages, |known| known.dialect());
        let served = match endpoint {
            Ok(endpoint) => self.serve(endpoint, request).await,
            Err(refusal) => Err(refusal),
        };
        served.unwrap_or_else(|refusal| {
            let answer = refused(dialect, &refusal);
            self.facts.tell(Fact::Refused { why: refusal });
            answer
        })
    }

    async fn serve(
        self: &Arc<Self>,
        endpoint: Endpoint,
        request: Request<Incoming>,
    ) -> Result<Answer, Refusal> {
        if !self.passes_login() && !self.token.opens(request.headers()) {
            return Err(Refusal::BadToken);
        }
        match self.breaker.admit(Instant::now()) {
            Pass::Yes => {}
            Pass::StillBroken(why) => return Err(why),
            Pass::Broken(why) => {
                self.facts.tell(Fact::Loop { why: why.clone() });
                return Err(why);
            }
        }
        let within = self.timeouts.request_body;
        let asked = Asked::receive(endpoint, request, within, &self.room).await?;
        match endpoint {
            Endpoint::Model(dialect) => {
                if !self.models.allow(&asked.model) {
                    return Err(Refusal::model(&asked.model));
                }
                if let Some(calls) = &self.calls {
                    calls.check(dialect, &asked.body)?;
                }
                let price = self.prices.charged(&asked.model);
                let ticket = self.admit(&asked).await?;
                let meter = Meter::new(dialect, asked.body.len());
                let account = Account::open(Arc::clone(self), ticket, meter, price);
                Ok(self.forward(asked, Some(account)).await)
            }
            Endpoint::CountTokens | Endpoint::ListModels => Ok(self.forward(asked, None).await),
        }
    }

    /// Waits until the request may go, or until it is clear that it may not.
    async fn admit(self: &Arc<Self>, asked: &Asked) -> Result<Ticket, Refusal> {
        let usage = Usage {
            input: estimate(asked.body.len() as u64),
            output: asked.most_output.unwrap_or(MOST_OUTPUT),
            ..Usage::default()
        };
        let reserve = Spend { usage, cost: self.prices.charged(&asked.model).cost(&usage) };
        let mut changes = self.allowance.watch();
        // Only the wait for a grant has an end of its own: requests of the same
        // agent that run side by side do end.
        let mut for_grant: Option<(tokio::time::Instant, ForGrant<'_>)> = None;
        loop {
            // Marked first, so that a change during the judgement counts.
            changes.borrow_and_update();
            let until = match self.allowance.judge(reserve) {
                Verdict::Go(ticket) => return Ok(ticket),
                Verdict::Refuse(refusal) => return Err(refusal),
                Verdict::WaitForOthers => {
                    for_grant = None;
                    None
                }
                Verdict::WaitForGrant { first } => {
                    let (until, _) = for_grant.get_or_insert_with(|| {
                        let until = tokio::time::Instant::now() + self.grant_wait;
                        (until, ForGrant { wait: self.allowance.wait_for_grant(), inner: self })
                    });
                    if first {
                        let spend = self.allowance.spent();
                        self.facts.tell(Fact::GrantWanted { spend });
                    }
                    Some(*until)
                }
            };
            let waited = match until {
                None => changes.changed().await,
                Some(until) => match tokio::time::timeout_at(until, changes.changed()).await {
                    Ok(waited) => waited,
                    Err(_) => return Err(Refusal::NoGrant { waited: self.grant_wait }),
                },
            };
            if waited.is_err() {
                let why = "nobody hands out grants any more".to_owned();
                return Err(Refusal::Stopped { why });
            }
        }
    }

    async fn forward(self: &Arc<Self>, asked: Asked, mut account: Option<Account>) -> Answer {
        let dialect = asked.endpoint.dialect();
        if let Some(account) = &mut account {
            account.sent();
        }
        let awaited = self.allowance.await_provider();
        let answer = self.upstream.ask(&asked, &self.timeouts).await;
        drop(awaited);
        let answer = match answer {
            Ok(answer) => answer,
            Err(none) => {
                if let Some(account) = account.as_mut().filter(|_| !none.may_cost()) {
                    account.cost_nothing();
                }
                self.breaker.failed(Instant::now());
                self.facts.tell(Fact::UpstreamFailed { why: none.to_string() });
                return error(dialect, none.status(), &none.to_string());
            }
        };
        let (mut head, body) = answer.into_parts();
        let status = head.status.as_u16();
        if let Some(limit) = provider_limit::reached(status, &head.headers, Timestamp::now()) {
            self.facts.tell(Fact::ProviderLimited { status, until: limit.until });
        }
        let good = head.status.is_success();
        if !good {
            self.facts.tell(Fact::ProviderFailed { status });
            self.breaker.failed(Instant::now());
            if let Some(account) = &mut account {
                account.cost_nothing();
            }
        }
        strip_hop_by_hop(&mut head.headers);
        head.headers.remove(SET_COOKIE);
        let counted = match account {
            None => Counted::Nothing,
            Some(mut account) => {
                let recorded = self
                    .recording
                    .is_some()
                    .then(|| Open::new(dialect, asked, status, &head.headers));
                account.begin(is_stream(&head.headers), recorded);
                Counted::Usage(Box::new(account))
            }
        };
        let flow = Flow::new(Arc::clone(self), body, counted, good);
        Response::from_parts(head, flow.boxed_unsync())
    }
}

/// Tells when nobody waits for a grant any more, however the waiting ends.
struct ForGrant<'i> {
    wait: GrantWait,
    inner: &'i Inner,
}

impl Drop for ForGrant<'_> {
    fn drop(&mut self) {
        if self.wait.leave() {
            self.inner.facts.tell(Fact::GrantNotWanted);
        }
    }
}

fn is_stream(headers: &hyper::HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let name = kind.split(|&byte| byte == b';').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

fn refused(dialect: Dialect, refusal: &Refusal) -> Answer {
    let status = refusal.status(dialect);
    let mut answer = error(dialect, status, &format!("blueflame: {refusal}"));
    let headers = answer.headers_mut();
    let retry = if let Refusal::Full { .. } = refusal { "true" } else { "false" };
    headers.insert(SHOULD_RETRY, HeaderValue::from_static(retry));
    headers.insert(REFUSED, HeaderValue::from_static(refusal.kind()));
    if let Refusal::TooLarge { .. } | Refusal::TooSlow { .. } | Refusal::Full { .. } = refusal {
        // What is left of the request is not worth reading.
        headers.insert(hyper::header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

fn error(dialect: Dialect, status: u16, message: &str) -> Answer {
    let body = Full::new(refusal::body(dialect, status, None, message));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}
