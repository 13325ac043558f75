//! Errors in the words of each dialect.

use bytes::Bytes;
use serde_json::json;

use crate::dialect::Dialect;

/// The body of an error answer. `kind` is the provider's word for it; without
/// one, the usual word for the status is taken.
pub fn body(dialect: Dialect, status: u16, kind: Option<&str>, message: &str) -> Bytes {
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
