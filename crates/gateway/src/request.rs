//! A request of an agent, checked and made ready to be passed on.
//!
//! Of the body only the few fields that matter here are looked at; a field
//! that stands there twice is refused, because the provider might believe the
//! other one.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::errands;
use crate::headers::passed_on;
use crate::refusal::Refusal;
use crate::room::Room;

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
        room: &Room,
    ) -> Result<Asked, Refusal> {
        let (head, body) = request.into_parts();
        let declared = body.size_hint().upper();
        let most = declared.map_or(Some(LARGEST), |length| usize::try_from(length).ok());
        let Some(most) = most.filter(|most| *most <= LARGEST) else {
            return Err(Refusal::TooLarge { most: LARGEST });
        };
        if !is_plain(&head.headers) {
            let why = "compressed requests are not read".to_owned();
            return Err(Refusal::Malformed { why });
        }
        let taken = room.take(most, within).await?;
        let body = tokio::time::timeout(within, whole(body, declared.map_or(0, |_| most)))
            .await
            .map_err(|_| Refusal::TooSlow { waited: within })??;
        // The one thing that an agent asks there; anything else could ask for
        // more than the body does.
        let query = if head.uri.query() == Some("beta=true") { "?beta=true" } else { "" };
        let path_and_query = format!("{}{query}", head.uri.path());
        let mut headers = passed_on(&head.headers);
        let body = if endpoint == Endpoint::ListModels {
            headers.remove(header::CONTENT_TYPE);
            Bytes::new()
        } else {
            // As it was read here, so it is to be read there.
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body
        };
        let mut asked = Asked::new(endpoint, &path_and_query, headers, body)?;
        asked.body = taken.hold(asked.body);
        Ok(asked)
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

/// Whether a body arrives as it is, however many headers speak about it.
fn is_plain(headers: &HeaderMap) -> bool {
    let all = |name, fine: &str| {
        let mut values = headers.get_all(name).iter();
        values.all(|value| value.as_bytes().eq_ignore_ascii_case(fine.as_bytes()))
    };
    all(header::CONTENT_ENCODING, "identity") && all(header::TRANSFER_ENCODING, "chunked")
}

/// A body in one piece, in memory that was not larger at any time.
async fn whole(mut body: Incoming, declared: usize) -> Result<Bytes, Refusal> {
    let mut bytes = BytesMut::with_capacity(declared);
    while let Some(frame) = body.frame().await {
        let broken = |_| Refusal::Malformed { why: "the body broke off".to_owned() };
        let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + piece.len() > LARGEST {
            return Err(Refusal::TooLarge { most: LARGEST });
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
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
            r#"{"model":"m","stream":true,"top_p":1.50,"messages":[ 1 ]}"#,
            r#"{"model":"m","stream_options":{"include_usage":false,"a":1},"stream":true,"top_p":1.50,"messages":[ 1 ]}"#,
            r#"{"model":"m","stream":true,"stream_options":null,"top_p":1.50,"messages":[ 1 ]}"#,
        ] {
            let asked = asked(Dialect::Chat, body).unwrap();
            let text = std::str::from_utf8(&asked.body).unwrap();
            assert!(text.contains(r#""include_usage":true"#), "{text}");
            assert!(text.contains(r#""top_p":1.50,"messages":[ 1 ]"#), "{text}");
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
            "[]",
            "",
            "{",
        ] {
            for dialect in Dialect::ALL {
                assert_eq!(asked(dialect, body).unwrap_err().kind(), "malformed", "{body}");
            }
        }
    }
}
