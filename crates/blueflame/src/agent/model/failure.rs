//! How a request to the model fails.

use std::time::Duration;

use serde_json::Value;

/// A failed request, ready to be judged and to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Failure {
    pub(in crate::agent) kind: FailureKind,
    /// The status of the answer, if there was one.
    pub(in crate::agent) status: Option<u16>,
    pub(in crate::agent) message: String,
    /// How long the other side wants us to wait.
    pub(in crate::agent) retry_after: Option<Duration>,
    /// How far the request came.
    pub(in crate::agent) reached: Reached,
    /// The other side said that trying again is no use.
    pub(in crate::agent) for_good: bool,
}

/// How far a request came before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum Reached {
    /// There was no answer, or not a whole block of one.
    Nothing,
    /// At least one block of the answer was whole.
    Block,
}

/// What went wrong, in the words that claude reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum FailureKind {
    Authentication,
    Billing,
    RateLimit,
    Overloaded,
    InvalidRequest,
    ModelNotFound,
    /// The other side failed, cannot be reached, or broke off.
    Server,
    /// The answer is larger than anything we would take.
    TooLarge,
    MaxOutputTokens,
    Refusal,
}

impl FailureKind {
    pub(in crate::agent) fn word(self) -> &'static str {
        match self {
            FailureKind::Authentication => "authentication_failed",
            FailureKind::Billing => "billing_error",
            FailureKind::RateLimit => "rate_limit",
            FailureKind::Overloaded => "overloaded",
            FailureKind::InvalidRequest => "invalid_request",
            FailureKind::ModelNotFound => "model_not_found",
            FailureKind::Server => "server_error",
            FailureKind::TooLarge | FailureKind::Refusal => "unknown",
            FailureKind::MaxOutputTokens => "max_output_tokens",
        }
    }

    fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => FailureKind::Authentication,
            402 => FailureKind::Billing,
            404 => FailureKind::ModelNotFound,
            429 => FailureKind::RateLimit,
            529 => FailureKind::Overloaded,
            500.. => FailureKind::Server,
            _ => FailureKind::InvalidRequest,
        }
    }

    /// From the provider's own word, as it stands in the events of a stream.
    fn of_word(word: &str) -> Self {
        match word {
            "overloaded_error" => FailureKind::Overloaded,
            "rate_limit_error" => FailureKind::RateLimit,
            "authentication_error" | "permission_error" => FailureKind::Authentication,
            "billing_error" => FailureKind::Billing,
            "not_found_error" => FailureKind::ModelNotFound,
            "invalid_request_error" | "request_too_large" => FailureKind::InvalidRequest,
            _ => FailureKind::Server,
        }
    }
}

/// What is shown of a body that is not the error it should be.
const SHOWN: usize = 500;

impl Failure {
    pub(in crate::agent) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let (status, retry_after, reached) = (None, None, Reached::Nothing);
        Failure { kind, status, message, retry_after, reached, for_good: false }
    }

    /// An answer with an error status.
    pub(super) fn of_status(status: u16, body: &[u8]) -> Self {
        let message = message_in(&serde_json::from_slice(body).unwrap_or_default());
        let message = message.unwrap_or_else(|| {
            let text: String = String::from_utf8_lossy(body).chars().take(SHOWN).collect();
            match text.trim() {
                "" => format!("the model's server answered with status {status}"),
                text => format!("the model's server answered with status {status}: {text}"),
            }
        });
        Failure { status: Some(status), ..Failure::new(FailureKind::of_status(status), message) }
    }

    /// An error that comes as an event of a stream.
    pub(super) fn of_event(event: &Value) -> Self {
        let word = event["error"]["type"].as_str().unwrap_or_default();
        let message = message_in(event)
            .unwrap_or_else(|| "the model's server reported an error in its stream".to_owned());
        Failure::new(FailureKind::of_word(word), message)
    }
}

/// The message of an error body; servers other than Anthropic's write it in
/// shapes of their own.
fn message_in(body: &Value) -> Option<String> {
    let found = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"]];
    let message = found.into_iter().find_map(Value::as_str)?.trim();
    (!message.is_empty()).then(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_shape() {
        for (body, expected) in [
            (r#"{"type":"error","error":{"type":"x","message":"too long"}}"#, "too long"),
            (r#"{"error":"no such model"}"#, "no such model"),
            (r#"{"detail":"bad"}"#, "bad"),
            ("", "the model's server answered with status 400"),
            ("<html>", "the model's server answered with status 400: <html>"),
        ] {
            assert_eq!(Failure::of_status(400, body.as_bytes()).message, expected);
        }
    }
}
