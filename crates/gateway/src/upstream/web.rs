//! A provider, over HTTP or HTTPS.
//!
//! Proxies that the environment names are not used: where a key is sent is
//! written in the configuration and nowhere else. Redirects are not followed,
//! for the same reason.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::{Body, BodyError, NoAnswer, Trust};
use crate::credential::Credential;
use crate::headers::strip_login;
use crate::request::{Asked, Endpoint};

/// A provider and how to log in there.
#[derive(Clone, Debug)]
pub struct Web {
    /// Scheme, host and the path before `/v1`, without a slash at the end.
    base: String,
    login: Login,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

#[derive(Clone, Debug)]
enum Login {
    /// The agent's own is passed on.
    Agent,
    /// The agent's is taken out, and this put in.
    Key(Credential),
    /// Local servers often want none.
    None,
}

/// An address that requests cannot be sent to.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the address of a model provider: it looks like https://host/path")]
pub struct BadAddress(String);

impl Web {
    pub const ANTHROPIC: &str = "https://api.anthropic.com";
    pub const OPENAI: &str = "https://api.openai.com";

    /// A provider that is told this key; without one, it is told none.
    pub fn new(
        address: &str,
        key: Option<Credential>,
        trust: Trust,
        connect: Duration,
    ) -> Result<Self, BadAddress> {
        Web::with(address, key.map_or(Login::None, Login::Key), trust, connect)
    }

    /// A provider that is told the agent's own login.
    pub fn passing_login(
        address: &str,
        trust: Trust,
        connect: Duration,
    ) -> Result<Self, BadAddress> {
        Web::with(address, Login::Agent, trust, connect)
    }

    fn with(
        address: &str,
        login: Login,
        trust: Trust,
        connect: Duration,
    ) -> Result<Self, BadAddress> {
        let bad = || BadAddress(address.to_owned());
        let uri: Uri = address.parse().map_err(|_| bad())?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else { return Err(bad()) };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(bad());
        }
        // People write the address with and without the version.
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path);
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust.into_client())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(8)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Web { base: format!("{scheme}://{authority}{path}"), login, client })
    }

    /// Whether agents log in with what they have.
    pub(crate) fn passes_login(&self) -> bool {
        matches!(self.login, Login::Agent)
    }

    pub(crate) fn scrub(&self, text: &str) -> String {
        match &self.login {
            Login::Key(key) => key.scrub(text),
            Login::Agent | Login::None => text.to_owned(),
        }
    }

    pub(super) async fn ask(&self, asked: &Asked) -> Result<Response<Body>, NoAnswer> {
        let method = match asked.endpoint {
            Endpoint::Model(_) | Endpoint::CountTokens => Method::POST,
            Endpoint::ListModels => Method::GET,
        };
        let mut headers = asked.headers.clone();
        match &self.login {
            Login::Agent => {}
            Login::Key(key) => {
                strip_login(&mut headers);
                key.inject(asked.endpoint.dialect(), &mut headers);
            }
            Login::None => strip_login(&mut headers),
        }
        let failed = |error: &dyn std::error::Error| self.scrub(&chain(error));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{}", self.base, asked.path_and_query))
            .body(Full::new(asked.body.clone()))
            .map_err(|error| NoAnswer::Unreachable(failed(&error)))?;
        *request.headers_mut() = headers;
        let answer = self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                NoAnswer::Unreachable(failed(&error))
            } else {
                NoAnswer::Failed(failed(&error))
            }
        })?;
        Ok(answer.map(|body| body.map_err(|error| BodyError::from(chain(&error))).boxed_unsync()))
    }
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
    fn addresses_are_taken_with_and_without_the_version() {
        let base = |address: &str| {
            Web::new(address, None, Trust::default(), Duration::ZERO)
                .map(|web| web.base)
                .map_err(|_| ())
        };
        assert_eq!(base("https://x.example/v1/").unwrap(), "https://x.example");
        assert_eq!(base("http://127.0.0.1:8080").unwrap(), "http://127.0.0.1:8080");
        assert_eq!(base("https://x.example/api/v1").unwrap(), "https://x.example/api");
        for bad in ["x.example", "ftp://x", "https://u:p@x.example", "https://x/?q=1", "", "/v1"] {
            assert!(base(bad).is_err(), "{bad}");
        }
    }
}
