//! A request of an agent, checked and made ready to be passed on.
//!
//! Of the body only the few fields that matter here are looked at; a field
//! that stands there twice is refused, because the provider might believe the
//! other one.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::credential::X_API_KEY;
use crate::dialect::Dialect;
use crate::errands;
use crate::refusal::Refusal;

/// The largest body of a request. Providers take no more than this either.
pub const LARGEST: usize = 32 << 20;

/// What a request asks for, told by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The model speaks, and it costs money.
    Model(Dialect),
    /// How long a prompt is; free of charge.
    CountTokens,
    /// Which models there are; free of charge.
    ListModels,
}

impl Endpoint {
    /// Looks at everything in the head that tells what is wanted. This is the
    /// whole list of what an agent can reach.
    pub(crate) fn of<B>(request: &Request<B>) -> Result<Endpoint, Refusal> {
        let uri = request.uri();
        if request.method() == Method::CONNECT {
            return Err(Refusal::BadMethod);
        }
        if uri.scheme().is_some() || uri.authority().is_some() {
            let why = "the gateway is no proxy".to_owned();
            return Err(Refusal::Malformed { why });
        }
        let (endpoint, method) = match uri.path() {
            "/v1/messages/count_tokens" => (Endpoint::CountTokens, Method::POST),
            "/v1/models" => (Endpoint::ListModels, Method::GET),
            path => {
                let unknown = || Refusal::UnknownPath { path: path.chars().take(100).collect() };
                (Endpoint::Model(Dialect::of_path(path).ok_or_else(unknown)?), Method::POST)
            }
        };
        if request.method() == method { Ok(endpoint) } else { Err(Refusal::BadMethod) }
    }

    /// In whose words to answer.
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Endpoint::Model(dialect) => dialect,
            Endpoint::CountTokens => Dialect::Messages,
            Endpoint::ListModels => Dialect::Chat,
        }
    }
}

/// A request that may be passed on.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) endpoint: Endpoint,
    pub(crate) path_and_query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) model: String,
    /// The most tokens that the answer may have, as far as the request says.
    pub(crate) most_output: Option<u64>,
}

/// The fields of a body that matter here.
#[derive(Debug, Deserialize)]
struct Fields<'b> {
    #[serde(borrow)]
    model: Option<Cow<'b, str>>,
    stream: Option<bool>,
    background: Option<bool>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    n: Option<u64>,
}

impl Asked {
    /// Reads the rest of a request, within bounds of size and time.
    pub(crate) async fn receive(
        endpoint: Endpoint,
        request: Request<Incoming>,
        within: Duration,
    ) -> Result<Asked, Refusal> {
        let (head, body) = request.into_parts();
        let declared = head.headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|length| length > LARGEST) {
            return Err(Refusal::TooLarge { most: LARGEST });
        }
        let encoding = head.headers.get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            let why = "compressed requests are not read".to_owned();
            return Err(Refusal::Malformed { why });
        }
        let collected = tokio::time::timeout(within, Limited::new(body, LARGEST).collect())
            .await
            .map_err(|_| Refusal::TooSlow { waited: within })?;
        let body = collected.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Refusal::TooLarge { most: LARGEST }
            } else {
                Refusal::Malformed { why: "the body broke off".to_owned() }
            }
        })?;
        let path_and_query = head.uri.path_and_query().map_or("/", |path| path.as_str());
        Asked::new(endpoint, path_and_query, passed_on(&head.headers), body.to_bytes())
    }

    fn new(
        endpoint: Endpoint,
        path_and_query: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Asked, Refusal> {
        let malformed = |why: String| Refusal::Malformed { why };
        let mut asked = Asked {
            endpoint,
            path_and_query: path_and_query.to_owned(),
            headers,
            body,
            model: String::new(),
            most_output: None,
        };
        if endpoint != Endpoint::ListModels {
            let errand = errands::wanted(endpoint.dialect(), &asked.body)
                .map_err(|error| malformed(format!("the body cannot be read: {error}")))?;
            if let Some(what) = errand {
                return Err(Refusal::Errand { what });
            }
        }
        let Endpoint::Model(dialect) = endpoint else { return Ok(asked) };
        let fields: Fields<'_> = serde_json::from_slice(&asked.body)
            .map_err(|error| malformed(format!("the body cannot be read: {error}")))?;
        if fields.background == Some(true) {
            return Err(malformed("answers in the background cannot be counted".to_owned()));
        }
        let most = match dialect {
            Dialect::Messages => fields.max_tokens,
            Dialect::Responses => fields.max_output_tokens,
            Dialect::Chat => fields.max_completion_tokens.or(fields.max_tokens),
        };
        asked.most_output = most.map(|most| most.saturating_mul(fields.n.unwrap_or(1)));
        asked.model = fields.model.unwrap_or_default().into_owned();
        if dialect == Dialect::Chat && fields.stream == Some(true) {
            asked.body = with_usage(&asked.body)
                .map_err(|error| malformed(format!("the body cannot be read: {error}")))?;
        }
        Ok(asked)
    }
}

/// A JSON object with its values as they were written.
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Asks for the figures at the end of a streamed chat completion, which do not
/// come otherwise. Everything else stays as it was written.
fn with_usage(body: &[u8]) -> Result<Bytes, serde_json::Error> {
    let Entries(mut entries) = serde_json::from_slice(body)?;
    let mut options = serde_json::Map::new();
    for (_, value) in entries.extract_if(.., |(key, _)| key == "stream_options") {
        if let Ok(written) = serde_json::from_str::<serde_json::Map<_, _>>(value.get()) {
            options.extend(written);
        }
    }
    options.insert("include_usage".to_owned(), true.into());
    let options = serde_json::value::to_raw_value(&options)?;
    entries.push(("stream_options".to_owned(), options));
    let mut text = String::with_capacity(body.len() + 64);
    for (key, value) in &entries {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&serde_json::to_string(key)?);
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    Ok(Bytes::from(text))
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

/// The headers of a request that go on to the provider, logins included:
/// those are dealt with where it is known whose they are.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    strip_hop_by_hop(&mut headers);
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::COOKIE] {
        headers.remove(name);
    }
    // A compressed answer could not be counted.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// Takes out whatever identifies the agent.
pub(crate) fn strip_login(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    headers.remove(X_API_KEY);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(dialect: Dialect, body: &str) -> Result<Asked, Refusal> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        Asked::new(Endpoint::Model(dialect), dialect.path(), HeaderMap::new(), body)
    }

    #[test]
    fn only_a_short_list_can_be_reached() {
        let endpoint = |method: &str, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            Endpoint::of(&request).map_err(|refusal| refusal.kind())
        };
        assert_eq!(
            endpoint("POST", "/v1/messages?beta=true"),
            Ok(Endpoint::Model(Dialect::Messages))
        );
        assert_eq!(endpoint("POST", "/v1/messages/count_tokens"), Ok(Endpoint::CountTokens));
        assert_eq!(endpoint("GET", "/v1/models"), Ok(Endpoint::ListModels));
        for (method, uri, refused) in [
            ("GET", "/v1/messages", "bad_method"),
            ("POST", "/v1/models", "bad_method"),
            ("CONNECT", "example.com:443", "bad_method"),
            ("POST", "http://example.com/v1/messages", "malformed"),
            ("POST", "/v1/messages/batches", "unknown_path"),
            ("POST", "/v1/files", "unknown_path"),
            ("POST", "/v1/messages/../files", "unknown_path"),
            ("GET", "/", "unknown_path"),
            ("DELETE", "/v1/responses/resp_1", "unknown_path"),
        ] {
            assert_eq!(endpoint(method, uri), Err(refused), "{method} {uri}");
        }
    }

    #[test]
    fn a_streamed_chat_always_asks_for_figures_and_is_else_unchanged() {
        for body in [
            r#"{"model":"m","stream":true,"x":1.50,"messages":[ 1 ]}"#,
            r#"{"model":"m","stream_options":{"include_usage":false,"a":1},"stream":true,"x":1.50,"messages":[ 1 ]}"#,
            r#"{"model":"m","stream":true,"stream_options":null,"x":1.50,"messages":[ 1 ]}"#,
        ] {
            let asked = asked(Dialect::Chat, body).unwrap();
            let text = std::str::from_utf8(&asked.body).unwrap();
            assert!(text.contains(r#""include_usage":true"#), "{text}");
            assert!(text.contains(r#""x":1.50,"messages":[ 1 ]"#), "{text}");
            assert_eq!(text.matches("stream_options").count(), 1);
        }
        let plain = r#"{"model":"m","messages":[]}"#;
        assert_eq!(asked(Dialect::Chat, plain).unwrap().body, plain);
    }

    #[test]
    fn bodies_that_could_be_read_in_two_ways_are_refused() {
        for body in [
            r#"{"model":"cheap","model":"dear"}"#,
            r#"{"model":"cheap","mod\u0065l":"dear"}"#,
            r#"{"model":"m","stream":false,"stream":true}"#,
            r#"{"model":"m","background":true}"#,
            "[]",
            "",
            "{",
        ] {
            for dialect in Dialect::ALL {
                assert_eq!(asked(dialect, body).unwrap_err().kind(), "malformed", "{body}");
            }
        }
    }

    #[test]
    fn what_belongs_to_the_connection_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "x"),
            ("upgrade", "h2c"),
            ("host", "evil.example"),
            ("accept-encoding", "gzip"),
            ("anthropic-beta", "tools"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let passed = passed_on(&headers);
        assert_eq!(passed.len(), 2, "{passed:?}");
        assert_eq!(
            (&passed["anthropic-beta"], &passed["accept-encoding"]),
            (&HeaderValue::from_static("tools"), &HeaderValue::from_static("identity"),)
        );
    }
}
