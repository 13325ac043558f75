//! What the gateway adds: to a request until its first byte, and to each piece
//! of a stream; against the same provider without it, in one run. And how much memory
//! it takes.
//!
//! `cargo bench -p blueflame-gateway`. Rounds with and without the gateway
//! take turns, so that a busy machine slows both; medians are compared. The
//! provider is in this process and stamps each piece when it sends it. The gateway is
//! in a process of its own, on one thread, as it is beside an agent.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

const PIECES: usize = 50;
const ROUNDS: usize = 30;

/// Makes this program the gateway.
const GATEWAY: &str = "--gateway";

/// Reads until the text has come, and gives what followed it.
async fn read_past(stream: &mut TcpStream, bytes: &mut Vec<u8>, text: &[u8]) {
    loop {
        if let Some(at) = bytes.windows(text.len()).position(|part| part == text) {
            bytes.drain(..at + text.len());
            return;
        }
        assert_ne!(stream.read_buf(bytes).await.unwrap(), 0);
    }
}

/// A provider that sends stamped pieces, a little apart.
async fn provider() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                // Connections are kept, as they are with a real provider.
                loop {
                    while !bytes.windows(2).any(|end| end == b"[]") {
                        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    bytes.clear();
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                                transfer-encoding: chunked\r\n\r\n";
                    stream.write_all(head.as_bytes()).await.unwrap();
                    for _ in 0..PIECES {
                        let stamp = START.elapsed().as_nanos();
                        let event = format!(
                            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
                             {{\"type\":\"text_delta\",\"text\":\"{stamp:020}\"}}}}\n\n"
                        );
                        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
                        if stream.write_all(chunk.as_bytes()).await.is_err() {
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    stream.write_all(b"0\r\n\r\n").await.unwrap();
                }
            });
        }
    });
    port
}

/// One stream: the time to its first byte, and of each piece on the way.
async fn stream(port: u16, token: &str) -> (Duration, Vec<Duration>) {
    let body = r#"{"model":"claude-sonnet-5","max_tokens":9,"stream":true,"messages":[]}"#;
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut agent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    agent.set_nodelay(true).unwrap();
    let mut first = Duration::ZERO;
    let mut each = Vec::new();
    // The first request on a connection also pays for the connection.
    for warm in [false, true] {
        let asked = Instant::now();
        agent.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        read_past(&mut agent, &mut bytes, b"\r\n\r\n").await;
        let answered = asked.elapsed();
        for _ in 0..PIECES {
            read_past(&mut agent, &mut bytes, b"\"text\":\"").await;
            while bytes.len() < 20 {
                assert_ne!(agent.read_buf(&mut bytes).await.unwrap(), 0);
            }
            let now = START.elapsed();
            let stamp: u64 = std::str::from_utf8(&bytes[..20]).unwrap().parse().unwrap();
            if warm {
                each.push(now.saturating_sub(Duration::from_nanos(stamp)));
            }
        }
        read_past(&mut agent, &mut bytes, b"0\r\n\r\n").await;
        first = answered;
    }
    (first, each)
}

async fn round(port: u16, token: &str, parallel: usize) -> (Vec<Duration>, Vec<Duration>) {
    let mut streams = JoinSet::new();
    for _ in 0..parallel {
        let token = token.to_owned();
        streams.spawn(async move { stream(port, &token).await });
    }
    let (first, each): (Vec<_>, Vec<_>) = streams.join_all().await.into_iter().unzip();
    (first, each.concat())
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// The gateway in a process of its own, which ends with this one.
struct Apart {
    process: Child,
    port: u16,
    token: String,
}

impl Apart {
    fn start(provider: u16) -> Apart {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([GATEWAY, &provider.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (port, token) = line.trim().split_once(' ').unwrap();
        Apart { port: port.parse().unwrap(), token: token.to_owned(), process }
    }

    /// The most memory that it has had, in MB.
    fn peak(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// What the other process does.
#[tokio::main(flavor = "current_thread")]
async fn be_the_gateway(provider: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = Token::generate().unwrap();
    let login = token.reveal().to_owned();
    let address = format!("http://127.0.0.1:{provider}");
    let web = Web::new(&address, None, Trust::default(), Timeouts::default().connect).unwrap();
    let mut settings = Settings::new(Upstream::Web(web));
    settings.loops.requests = usize::MAX;
    // The stream has no proper end, so each one counts as broken off.
    settings.loops.failures = usize::MAX;
    settings.loops.failures_in_a_row = usize::MAX;
    let (gateway, mut facts) =
        Gateway::start(Listener::Tcp(listener), token, Allowance::unlimited(), settings);
    println!("{port} {login}");
    let told = tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        _ = told => {}
        () = async { while facts.recv().await.is_some() {} } => {}
    }
    gateway.close().await;
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|it| it == GATEWAY) {
        Some(at) => be_the_gateway(&arguments[at + 1]),
        None => measure(),
    }
}

#[tokio::main]
async fn measure() {
    let direct = provider().await;
    let gateway = Apart::start(direct);
    println!(
        "{:>8} {:>12} {:>12} {:>12} {:>9} {:>7} {:>14}",
        "streams", "", "direct µs", "gateway µs", "added µs", "ratio", "most memory"
    );
    for parallel in [1, 32] {
        let rounds = if parallel == 1 { ROUNDS } else { ROUNDS / 5 };
        let mut times: [(Vec<Duration>, Vec<Duration>); 2] = Default::default();
        for _ in 0..rounds {
            for (at, port) in [direct, gateway.port].into_iter().enumerate() {
                let (first, each) = round(port, &gateway.token, parallel).await;
                times[at].0.extend(first);
                times[at].1.extend(each);
            }
        }
        let [(mut first, mut each), (mut first_by, mut each_by)] = times;
        for (what, alone, with) in [
            ("first byte", median(&mut first), median(&mut first_by)),
            ("each piece", median(&mut each), median(&mut each_by)),
        ] {
            println!(
                "{parallel:>8} {what:>12} {alone:>12.0} {with:>12.0} {:>9.0} {:>7.2} {:>11.1} MB",
                with - alone,
                with / alone,
                gateway.peak()
            );
        }
    }
}
