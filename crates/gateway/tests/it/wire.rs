//! Both ends of the wire, by hand: an agent and a provider that can do
//! whatever a test wants, over real sockets.

use std::sync::{Arc, Mutex};

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::{Credential, Token};
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;

/// A key that must never turn up where it does not belong.
pub const KEY: &str = "sk-marker-7f3a9c";

/// A request as it arrived somewhere.
#[derive(Clone, Debug)]
pub struct Arrived {
    pub head: String,
    pub body: String,
}

/// Reads one request, or what is there before the other side hangs up.
pub async fn read_request(stream: &mut TcpStream) -> Option<Arrived> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                return Some(Arrived { head, body });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A provider whose every connection is handled by `answer`.
#[derive(Clone)]
pub struct Provider {
    pub address: String,
    pub arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Provider {
    /// Every request gets these bytes, and then the end of the connection.
    pub async fn saying(bytes: impl Into<Vec<u8>>) -> Provider {
        let bytes: Arc<Vec<u8>> = Arc::new(bytes.into());
        Provider::start(move |mut stream, _| {
            let bytes = Arc::clone(&bytes);
            async move {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    pub async fn start<F, A>(answer: A) -> Provider
    where
        A: Fn(TcpStream, Arrived) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&arrived);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    if let Some(request) = read_request(&mut stream).await {
                        seen.lock().unwrap().push(request.clone());
                        answer(stream, request).await;
                    }
                });
            }
        });
        Provider { address, arrived }
    }

    pub fn upstream(&self) -> Upstream {
        let key = Credential::new(KEY).unwrap();
        Upstream::Web(
            Web::new(&self.address, Some(key), Trust::default(), Timeouts::default().connect)
                .unwrap(),
        )
    }

    pub fn requests(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }
}

/// The head of a streamed answer that ends with the connection.
pub const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A streamed answer of the Messages dialect.
pub fn message(input: u64, output: u64, text: &str) -> String {
    let events = [
        format!(
            r#"{{"type":"message_start","message":{{"usage":{{"input_tokens":{input},"output_tokens":1}}}}}}"#
        ),
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        ),
        format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{{"output_tokens":{output}}}}}"#
        ),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A complete answer with a body of known length.
pub fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A gateway on a loopback port, and what it tells.
pub struct Served {
    pub gateway: Gateway,
    pub facts: UnboundedReceiver<Fact>,
    pub port: u16,
    pub token: String,
}

pub async fn serve(settings: Settings, allowance: Arc<Allowance>) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = Token::generate().unwrap();
    let text = token.reveal().to_owned();
    let (gateway, facts) = Gateway::start(Listener::Tcp(listener), token, allowance, settings);
    Served { gateway, facts, port, token: text }
}

pub async fn serve_provider(provider: &Provider) -> Served {
    serve(Settings::new(provider.upstream()), Allowance::unlimited()).await
}

impl Served {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// A request as an agent makes it, with one connection for each.
    pub fn post(&self, path: &str, body: &str) -> String {
        format!(
            "POST {path} HTTP/1.1\r\nhost: gateway\r\nx-api-key: {}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
    }

    /// Sends bytes and reads all that comes back.
    pub async fn exchange(&self, request: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // A gateway that refuses early may close before all is written.
        let _ = stream.write_all(request.as_ref()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub async fn ask(&self, path: &str, body: &str) -> String {
        self.exchange(self.post(path, body)).await
    }

    pub async fn ask_messages(&self) -> String {
        self.ask("/v1/messages", MESSAGES).await
    }

    /// All facts up to the first that fits.
    pub async fn until(&mut self, fits: impl Fn(&Fact) -> bool) -> Vec<Fact> {
        let mut seen = Vec::new();
        while let Some(fact) = self.facts.recv().await {
            let last = fits(&fact);
            seen.push(fact);
            if last {
                break;
            }
        }
        seen
    }

    /// The facts that are there already.
    pub fn told(&mut self) -> Vec<Fact> {
        std::iter::from_fn(|| self.facts.try_recv().ok()).collect()
    }
}

pub const MESSAGES: &str = r#"{"model":"claude-sonnet-5","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

pub fn status(answer: &str) -> u16 {
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    status.and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Reads until the text has come.
pub async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut bytes = Vec::new();
    loop {
        let seen = String::from_utf8_lossy(&bytes).into_owned();
        if seen.contains(text) {
            return seen;
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "ended after: {seen}");
    }
}
