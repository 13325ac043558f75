//! The headers of a request that go on to the provider.
//!
//! A list of what is let pass: others choose whose account pays, switch things
//! on at the provider, or speak to a service in between. They are left out, not
//! refused, because agents and their libraries add harmless ones all the time.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::credential::X_API_KEY;

const BETAS: HeaderName = HeaderName::from_static("anthropic-beta");

/// Whatever the known agents send, logins included: those are dealt with where
/// it is known whose they are.
const PASSED: [HeaderName; 20] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    X_API_KEY,
    BETAS,
    HeaderName::from_static("anthropic-dangerous-direct-browser-access"),
    HeaderName::from_static("anthropic-version"),
    // Part of a login that is passed on.
    HeaderName::from_static("chatgpt-account-id"),
    HeaderName::from_static("originator"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("session_id"),
    HeaderName::from_static("thread-id"),
    HeaderName::from_static("x-app"),
    HeaderName::from_static("x-client-request-id"),
    HeaderName::from_static("x-openai-subagent"),
    HeaderName::from_static("x-parent-session-id"),
    HeaderName::from_static("x-session-affinity"),
    HeaderName::from_static("x-session-id"),
];

const PASSED_STARTS: [&str; 3] = ["x-stainless-", "x-claude-code-", "x-codex-"];

/// Betas that only say how an answer is written, counted or kept in the cache: what
/// claude sends, or would with other settings. Others give the provider something to
/// do beside answering, or make it dearer; new ones have to be looked at first.
const PASSED_BETAS: [&str; 18] = [
    "cache-diagnosis",
    "claude-code",
    "compact",
    "context-1m",
    "context-hint",
    "context-management",
    "effort",
    "extended-cache-ttl",
    "fine-grained-tool-streaming",
    "interleaved-thinking",
    "mid-conversation-system",
    "oauth",
    "prompt-caching-scope",
    "redact-thinking",
    "structured-outputs",
    "thinking-token-count",
    "token-counting",
    "tool-search-tool",
];

pub(crate) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    strip_hop_by_hop(&mut headers);
    let mut passed = HeaderMap::new();
    for (name, value) in &headers {
        let known = PASSED.contains(name)
            || PASSED_STARTS.iter().any(|start| name.as_str().starts_with(start));
        if !known {
            continue;
        }
        let value = if *name == BETAS { betas(value) } else { Some(value.clone()) };
        if let Some(value) = value {
            passed.append(name, value);
        }
    }
    // A compressed answer could not be counted.
    passed.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    passed
}

/// The betas that are let pass, if there is one.
fn betas(value: &HeaderValue) -> Option<HeaderValue> {
    let fine: Vec<&str> = value
        .to_str()
        .ok()?
        .split(',')
        .map(str::trim)
        .filter(|beta| PASSED_BETAS.contains(&undated(beta)))
        .collect();
    if fine.is_empty() { None } else { HeaderValue::from_str(&fine.join(",")).ok() }
}

/// `effort` for `effort-2025-11-24`: of a beta that is known there may be a newer
/// version.
fn undated(beta: &str) -> &str {
    let digits = |c: char| c.is_ascii_digit() || c == '-';
    beta.trim_end_matches(digits)
}

/// Headers that belong to one connection and not to the request.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Takes out what must not be passed on in either direction.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Takes out whatever identifies the agent.
pub(crate) fn strip_login(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    headers.remove(X_API_KEY);
    headers.remove("chatgpt-account-id");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_connection_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-App"),
            ("x-app", "1"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "x"),
            ("upgrade", "h2c"),
            ("host", "evil.example"),
            ("accept-encoding", "gzip"),
            ("anthropic-beta", "effort-2025-11-24"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let passed = passed_on(&headers);
        assert_eq!(passed.len(), 2, "{passed:?}");
        assert_eq!(
            (&passed["anthropic-beta"], &passed["accept-encoding"]),
            (&HeaderValue::from_static("effort-2025-11-24"), &HeaderValue::from_static("identity"),)
        );
    }

    #[test]
    fn betas_are_let_pass_one_by_one() {
        let betas = |text: &str| betas(&HeaderValue::from_str(text).unwrap());
        let claude = "claude-code-20250219,context-management-2025-06-27,effort-2025-11-24";
        assert_eq!(betas(claude).unwrap(), claude);
        assert_eq!(
            betas("effort-1, Code-Execution-2025-08-25,b-2,oauth-2").unwrap(),
            "effort-1,oauth-2"
        );
        assert_eq!(betas("mcp-client-2025-04-04 , files-api-2025-04-14"), None);
    }
}
