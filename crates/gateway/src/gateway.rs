//! The gateway of one agent run.

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blueflame_core::money::Spend;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::allowance::Allowance;
use crate::calls::Calls;
use crate::credential::Token;
use crate::facts::{Fact, Facts};
use crate::loops::{LoopBreaker, LoopLimits};
use crate::models::Models;
use crate::prices::Prices;
use crate::recording::{Open, Recording};
use crate::room::Room;
use crate::upstream::{Timeouts, Upstream};

/// Connections at the same time; more wait to be accepted.
const MOST_CONNECTIONS: usize = 128;

/// Headers in one request.
const MOST_HEADERS: usize = 100;

/// All headers of one request together, roughly (what arrives in one piece may
/// be up to twice as much), and what is held of an answer that
/// the agent does not take.
const LARGEST_HEAD: usize = 64 << 10;

/// Where the agent reaches its gateway.
#[derive(Debug)]
pub enum Listener {
    Unix { socket: UnixListener, path: PathBuf },
    Tcp(TcpListener),
}

impl Listener {
    /// A new socket file that only its owner can open. It is removed when the
    /// gateway closes.
    pub fn unix(path: &Path) -> std::io::Result<Self> {
        let socket = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Listener::Unix { socket, path: path.to_owned() })
    }
}

/// Everything that a gateway is told when it starts.
#[derive(Debug)]
pub struct Settings {
    pub upstream: Upstream,
    pub prices: Prices,
    /// What the agent may ask for.
    pub models: Models,
    pub loops: LoopLimits,
    pub timeouts: Timeouts,
    /// How long a request waits for a larger grant.
    pub grant_wait: Duration,
    pub recording: Option<Recording>,
    /// Set for agents that ask about their tool calls through a hook.
    pub calls: Option<Arc<Calls>>,
}

impl Settings {
    pub fn new(upstream: Upstream) -> Self {
        Settings {
            upstream,
            prices: Prices::default(),
            models: Models::default(),
            loops: LoopLimits::default(),
            timeouts: Timeouts::default(),
            grant_wait: Duration::from_secs(30 * 60),
            recording: None,
            calls: None,
        }
    }
}

/// A running gateway. Dropping it closes it.
#[derive(Debug)]
pub struct Gateway {
    inner: Arc<Inner>,
    close: watch::Sender<bool>,
    accepting: Vec<JoinHandle<()>>,
}

/// What the requests share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) upstream: Upstream,
    pub(crate) token: Token,
    pub(crate) prices: Prices,
    pub(crate) models: Models,
    pub(crate) room: Room,
    pub(crate) timeouts: Timeouts,
    pub(crate) grant_wait: Duration,
    pub(crate) allowance: Arc<Allowance>,
    pub(crate) breaker: LoopBreaker,
    pub(crate) facts: Facts,
    pub(crate) recording: Option<Recording>,
    pub(crate) calls: Option<Arc<Calls>>,
}

impl Gateway {
    /// Starts to serve, on the runtime that this is called in. The token is
    /// what the agent must show, unless its own login is passed on.
    pub fn start(
        listener: Listener,
        token: Token,
        allowance: Arc<Allowance>,
        settings: Settings,
    ) -> (Gateway, UnboundedReceiver<Fact>) {
        let (facts, told) = Facts::channel();
        let inner = Arc::new(Inner {
            upstream: settings.upstream,
            token,
            prices: settings.prices,
            models: settings.models,
            room: Room::default(),
            timeouts: settings.timeouts,
            grant_wait: settings.grant_wait,
            allowance,
            breaker: LoopBreaker::new(settings.loops),
            facts,
            recording: settings.recording,
            calls: settings.calls,
        });
        let (close, _) = watch::channel(false);
        let mut gateway = Gateway { inner, close, accepting: Vec::new() };
        gateway.also_at(listener);
        (gateway, told)
    }

    /// Serves the same agent at another place as well.
    pub fn also_at(&mut self, listener: Listener) {
        let accepting = accept(listener, Arc::clone(&self.inner), self.close.subscribe());
        self.accepting.push(tokio::spawn(accepting));
    }

    pub fn allowance(&self) -> &Arc<Allowance> {
        &self.inner.allowance
    }

    /// What all requests have cost, as far as it is known for sure.
    pub fn spent(&self) -> Spend {
        self.inner.allowance.spent()
    }

    /// Hangs up on everyone, counts what was under way, and gives the final
    /// figure.
    pub async fn close(mut self) -> Spend {
        self.shut().await
    }

    /// Like [`close`](Self::close), for whoever cannot give it away. A second
    /// call only gives the figure again.
    pub async fn shut(&mut self) -> Spend {
        let _ = self.close.send(true);
        for accepting in self.accepting.drain(..) {
            let _ = accepting.await;
        }
        self.inner.allowance.spent()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.close.send(true);
    }
}

impl Inner {
    /// Whether the agent logs in with what it has, and not with our token.
    pub(crate) fn passes_login(&self) -> bool {
        matches!(&self.upstream, Upstream::Web(web) if web.passes_login())
    }

    /// A text without any secret.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let text = self.token.scrub(text);
        match &self.upstream {
            Upstream::Web(web) => web.scrub(&text),
            Upstream::Script(_) | Upstream::Replay(_) => text,
        }
    }

    pub(crate) fn record(&self, exchange: Open, complete: bool) {
        let Some(recording) = &self.recording else { return };
        if let Err(error) = exchange.close(recording, complete, |text| self.scrub(text)) {
            let why = format!("the traffic could not be recorded: {error}");
            self.facts.tell(Fact::UpstreamFailed { why });
        }
    }
}

async fn accept(listener: Listener, inner: Arc<Inner>, mut closing: watch::Receiver<bool>) {
    let free = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let serving = async {
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(seat) = Arc::clone(&free).acquire_owned().await else { return };
            let inner = Arc::clone(&inner);
            let accepted = match &listener {
                Listener::Unix { socket, .. } => socket.accept().await.map(|(stream, _)| {
                    connections.spawn(async move {
                        serve(TokioIo::new(stream), inner).await;
                        drop(seat);
                    });
                }),
                Listener::Tcp(socket) => socket.accept().await.map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    connections.spawn(async move {
                        serve(TokioIo::new(stream), inner).await;
                        drop(seat);
                    });
                }),
            };
            if accepted.is_err() {
                // Out of file descriptors, most likely: give others time.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    tokio::select! {
        () = serving => {}
        _ = closing.wait_for(|closed| *closed) => {}
    }
    connections.shutdown().await;
    if let Listener::Unix { path, .. } = &listener {
        let _ = std::fs::remove_file(path);
    }
}

async fn serve<I>(io: I, inner: Arc<Inner>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let head = inner.timeouts.request_head;
    let service = service_fn(move |request| {
        let inner = Arc::clone(&inner);
        async move { Ok::<_, Infallible>(inner.respond(request).await) }
    });
    // Whatever goes wrong with the connection is the agent's affair; what it
    // had asked for is counted where the answer is dropped.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(io, service)
        .await;
}
