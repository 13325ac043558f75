//! Requests that are turned away, in the words of each dialect.
//!
//! A refusal for good must make the agent stop at once. Measured: claude tries
//! 401, 429 and 5xx again for three minutes but takes 400 and 403 as final;
//! codex tries 401, 403 and 404 six times but takes 400 as final; opencode
//! takes 400 to 403 as final but tries 429 again. So 400 is the one status
//! that stops them all, and chat completions, where opencode was seen to stop
//! at it, get the more telling 402. (403 would do for claude, but it then
//! reports a failed login, which sends people looking in the wrong place.)

use std::time::Duration;

use blueflame_core::money::{Budget, Spend};
use bytes::Bytes;
use serde_json::json;

use crate::dialect::Dialect;

/// Why a request was turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the budget of {cap} is spent: {} tokens, {}", spend.usage.total(), spend.cost)]
    Budget { cap: Budget, spend: Spend },
    #[error("the session's budget gave no more within {} s", waited.as_secs())]
    NoGrant { waited: Duration },
    #[error("the agent is being stopped: {why}")]
    Stopped { why: String },
    #[error("the agent seems to be in a loop: {requests} requests in {} s", window.as_secs())]
    TooMany { requests: usize, window: Duration },
    #[error("the agent seems to be in a loop: {failures} requests failed {when}")]
    TooManyFailures { failures: usize, when: &'static str },
    #[error("the request does not carry the token of this gateway")]
    BadToken,
    #[error("nothing is served at `{path}`")]
    UnknownPath { path: String },
    #[error("the method is not served here")]
    BadMethod,
    #[error("the request is malformed: {why}")]
    Malformed { why: String },
    #[error("the provider is asked for more than an answer, which goes around the sandbox: {what}")]
    Errand { what: String },
    #[error("the model `{model}` is not the one that was ordered for this agent")]
    OtherModel { model: String },
    #[error("its tool calls are not judged: the hook that asks about them never answered")]
    Unarmed,
    #[error("a tool call was not judged: {why}")]
    Unjudged { why: String },
    #[error("{most} answers with tool calls are as many as it may have")]
    Turns { most: u32 },
    #[error("the request is larger than {most} bytes")]
    TooLarge { most: usize },
    #[error("the request did not arrive within {} s", waited.as_secs())]
    TooSlow { waited: Duration },
    #[error("its other requests left no room for this one within {} s", waited.as_secs())]
    Full { waited: Duration },
}

impl Refusal {
    pub(crate) fn model(model: &str) -> Self {
        Refusal::OtherModel { model: model.chars().take(100).collect() }
    }

    /// One word for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::Budget { .. } => "budget",
            Refusal::NoGrant { .. } => "no_grant",
            Refusal::Stopped { .. } => "stopped",
            Refusal::TooMany { .. } | Refusal::TooManyFailures { .. } => "loop",
            Refusal::BadToken => "bad_token",
            Refusal::UnknownPath { .. } => "unknown_path",
            Refusal::BadMethod => "bad_method",
            Refusal::Malformed { .. } => "malformed",
            Refusal::Errand { .. } => "errand",
            Refusal::OtherModel { .. } => "other_model",
            Refusal::Unarmed => "unarmed",
            Refusal::Unjudged { .. } => "unjudged",
            Refusal::Turns { .. } => "turns",
            Refusal::TooLarge { .. } => "too_large",
            Refusal::TooSlow { .. } => "too_slow",
            Refusal::Full { .. } => "full",
        }
    }

    /// The status that says it, to agents of this dialect.
    pub fn status(&self, dialect: Dialect) -> u16 {
        match self {
            Refusal::UnknownPath { .. } => 404,
            Refusal::BadMethod => 405,
            Refusal::TooLarge { .. } => 413,
            Refusal::TooSlow { .. } => 408,
            Refusal::Full { .. } => 503,
            Refusal::Malformed { .. } | Refusal::Errand { .. } | Refusal::OtherModel { .. } => 400,
            Refusal::Budget { .. }
            | Refusal::NoGrant { .. }
            | Refusal::Stopped { .. }
            | Refusal::TooMany { .. }
            | Refusal::TooManyFailures { .. }
            | Refusal::Unarmed
            | Refusal::Unjudged { .. }
            | Refusal::Turns { .. }
            | Refusal::BadToken => match dialect {
                Dialect::Messages | Dialect::Responses => 400,
                Dialect::Chat => 402,
            },
        }
    }
}

/// The body of an error answer. `kind` is the provider's word for it; without
/// one, the usual word for the status is taken.
pub(crate) fn body(dialect: Dialect, status: u16, kind: Option<&str>, message: &str) -> Bytes {
    let kind = kind.unwrap_or_else(|| usual_kind(status));
    let body = match dialect {
        Dialect::Messages => {
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Dialect::Responses | Dialect::Chat => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
        }
    };
    Bytes::from(body.to_string())
}

fn usual_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 | 405 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_refusal_for_good_has_a_status_that_an_agent_tries_again() {
        let spend = Spend::default();
        for refusal in [
            Refusal::Budget { cap: Budget::Tokens(1), spend },
            Refusal::NoGrant { waited: Duration::ZERO },
            Refusal::Stopped { why: String::new() },
            Refusal::TooMany { requests: 1, window: Duration::ZERO },
            Refusal::TooManyFailures { failures: 1, when: "in a row" },
            Refusal::BadToken,
            Refusal::Unarmed,
            Refusal::Unjudged { why: String::new() },
            Refusal::Turns { most: 1 },
        ] {
            for (dialect, final_statuses) in [
                (Dialect::Messages, &[400][..]),
                (Dialect::Responses, &[400]),
                (Dialect::Chat, &[400, 402]),
            ] {
                assert!(final_statuses.contains(&refusal.status(dialect)), "{refusal} {dialect}");
            }
        }
    }
}
