//! Asks the model over HTTP: on a Unix socket or a TCP port, one connection
//! for each request.
//!
//! There is no TLS here and no proxy: the gateway stands next door and has
//! both.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use blueflame_gateway::sse;
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};

use super::answer::Partial;
use super::failure::{Failure, FailureKind};

/// The largest answer that is taken.
const LARGEST_ANSWER: usize = 64 << 20;

/// What is read of an answer that is an error.
const LARGEST_ERROR: usize = 64 << 10;

/// Where the model is asked.
#[derive(Clone, Debug)]
pub(in crate::agent) enum Endpoint {
    Unix(PathBuf),
    Tcp { authority: String, path: String },
}

/// An address that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the address of a model: it looks like http://host:port")]
pub(in crate::agent) struct BadAddress(String);

impl Endpoint {
    /// The endpoint behind an address as people write it.
    pub(in crate::agent) fn at(address: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(address.to_owned());
        let uri: Uri = address.parse().map_err(|_| bad())?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(bad());
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(bad());
        }
        let port = authority.port_u16().unwrap_or(80);
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        Ok(Endpoint::Tcp { authority: format!("{}:{port}", authority.host()), path })
    }
}

/// What the gateway knows the agent by. It cannot be printed.
#[derive(Clone)]
pub(in crate::agent) struct Token(HeaderValue);

impl Token {
    /// None if it could not stand in a header.
    pub(in crate::agent) fn new(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(&format!("Bearer {text}")).ok()?;
        value.set_sensitive(true);
        Some(Token(value))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(in crate::agent) struct Patience {
    /// For the head of an answer. The gateway may hold a request until the
    /// session grants more money, and then the provider takes its time.
    pub(in crate::agent) head: Duration,
    /// Between two pieces of an answer.
    pub(in crate::agent) stall: Duration,
    /// Before the first retry; each further wait is twice as long.
    pub(in crate::agent) retry_base: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            head: Duration::from_secs(45 * 60),
            stall: Duration::from_secs(5 * 60),
            retry_base: Duration::from_millis(500),
        }
    }
}

/// Asks one model server.
#[derive(Debug)]
pub(in crate::agent) struct Client {
    endpoint: Endpoint,
    token: Option<Token>,
    patience: Patience,
}

impl Client {
    pub(in crate::agent) fn new(
        endpoint: Endpoint,
        token: Option<Token>,
        patience: Patience,
    ) -> Self {
        Client { endpoint, token, patience }
    }

    pub(in crate::agent) fn patience(&self) -> Patience {
        self.patience
    }

    /// Makes one request and takes in its answer. However this ends, what came
    /// in is in `partial`, its figures too.
    pub(in crate::agent) async fn ask(
        &self,
        body: Bytes,
        partial: &mut Partial,
    ) -> Result<(), Failure> {
        let head = tokio::time::timeout(self.patience.head, self.send(body)).await;
        let response = head.map_err(|_| {
            let waited = self.patience.head.as_secs();
            server(format!("the model's server did not answer within {waited} s"))
        })??;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(self.refused(status, response).await);
        }
        let streamed = !is_json(response.headers());
        let mut body = response.into_body();
        let mut events = sse::Events::default();
        let mut whole = Vec::new();
        let mut taken = 0;
        while !partial.is_done() {
            let Some(chunk) = self.next(&mut body, partial).await? else { break };
            taken += chunk.len();
            if taken > LARGEST_ANSWER {
                let why = format!("the model's answer is larger than {} MiB", LARGEST_ANSWER >> 20);
                return Err(Failure::new(FailureKind::TooLarge, why));
            }
            if !streamed {
                whole.extend_from_slice(&chunk);
                continue;
            }
            let mut fed = Ok(());
            events.feed(&chunk, |event| {
                if fed.is_ok() && !partial.is_done() {
                    fed = partial.feed(event);
                }
            });
            fed?;
            if events.dropped_bytes() > 0 {
                let most = sse::LONGEST >> 20;
                let why = format!("an event of the model's answer is larger than {most} MiB");
                return Err(Failure::new(FailureKind::TooLarge, why));
            }
        }
        if streamed { Ok(()) } else { partial.feed_whole(&whole) }
    }

    /// The next piece of an answer; none at its end.
    async fn next(&self, body: &mut Incoming, partial: &Partial) -> Result<Option<Bytes>, Failure> {
        loop {
            let stall = self.patience.stall;
            let frame = tokio::time::timeout(stall, body.frame()).await.map_err(|_| {
                partial
                    .broken(format!("the model's answer stopped coming for {} s", stall.as_secs()))
            })?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(
                        partial.broken(format!("the model's answer broke off: {}", chain(&error)))
                    );
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    async fn send(&self, body: Bytes) -> Result<Response<Incoming>, Failure> {
        match &self.endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| {
                    server(format!(
                        "the model's socket `{}` cannot be reached: {error}",
                        path.display()
                    ))
                })?;
                self.exchange(TokioIo::new(stream), "localhost", "", body).await
            }
            Endpoint::Tcp { authority, path } => {
                let stream = TcpStream::connect(authority).await.map_err(|error| {
                    server(format!("the model's server `{authority}` cannot be reached: {error}"))
                })?;
                let _ = stream.set_nodelay(true);
                self.exchange(TokioIo::new(stream), authority, path, body).await
            }
        }
    }

    async fn exchange<I>(
        &self,
        io: I,
        host: &str,
        base: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure>
    where
        I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let failed = |error: &dyn std::error::Error| {
            server(format!("the request to the model failed: {}", chain(error)))
        };
        let mut request = Request::post(format!("{base}/v1/messages"))
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "text/event-stream")
            .header(header::CONNECTION, "close")
            .header("anthropic-version", "2023-06-01")
            .header(header::USER_AGENT, concat!("blueflame/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| failed(&error))?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(header::AUTHORIZATION, token.0.clone());
        }
        let (mut sender, connection) =
            http1::handshake(io).await.map_err(|error| failed(&error))?;
        // Ends by itself when the answer is read or dropped.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|error| failed(&error))
    }

    async fn refused(&self, status: u16, response: Response<Incoming>) -> Failure {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LARGEST_ERROR).collect();
        let body = tokio::time::timeout(self.patience.stall, body).await;
        let body = body.ok().and_then(Result::ok).map(Collected::to_bytes).unwrap_or_default();
        Failure {
            retry_after: retry_after(&head.headers),
            for_good: head.headers.get("x-should-retry").is_some_and(|value| value == "false"),
            ..Failure::of_status(status, &body)
        }
    }
}

/// Whether the answer comes in one piece.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// The wait that is asked for. A date would need a clock to compare with, and
/// model servers send seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn server(why: String) -> Failure {
    Failure::new(FailureKind::Server, why)
}

/// An error with everything that led to it: hyper's own words are short.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart_or_refused() {
        let at = |address: &str| match Endpoint::at(address) {
            Ok(Endpoint::Tcp { authority, path }) => format!("{authority}{path}"),
            Ok(Endpoint::Unix(_)) => "a socket".to_owned(),
            Err(error) => error.to_string(),
        };
        for (address, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://localhost", "localhost:80"),
            ("http://localhost:1/v1/", "localhost:1"),
            ("http://localhost:1/api/v1", "localhost:1/api"),
            ("http://[::1]:5", "[::1]:5"),
        ] {
            assert_eq!(at(address), expected);
        }
        for bad in ["https://x:1", "localhost:1", "", "http://u@x:1", "http://x/?a=1", "ftp://x"] {
            assert!(Endpoint::at(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::new("secret").unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert!(Token::new("a\nb").is_none());
    }
}
