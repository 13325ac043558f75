//! Memory stays bounded whatever passes. In a process of its own, because the
//! figure is that of the process.

#![expect(clippy::unwrap_used, reason = "all of this is test code")]

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SENT: usize = 200 << 20;

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}

/// 200 MB as many events, and as one line that does not end; as an answer in
/// one piece, too.
#[tokio::test]
async fn a_very_large_answer_takes_little_memory() {
    let event = format!(
        "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"{}\"}}}}\n\n",
        "x".repeat(4_000)
    );
    let endless = "x".repeat(64 << 10);
    for (kind, piece) in [
        ("text/event-stream", &event),
        ("text/event-stream", &endless),
        ("application/json", &endless),
    ] {
        let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", provider.local_addr().unwrap());
        let piece = piece.clone();
        tokio::spawn(async move {
            let (mut stream, _) = provider.accept().await.unwrap();
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await.unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            for _ in 0..SENT / piece.len() {
                stream.write_all(piece.as_bytes()).await.unwrap();
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let token = Token::generate().unwrap();
        let login = token.reveal().to_owned();
        let web = Web::new(&address, None, Trust::default(), Timeouts::default().connect).unwrap();
        let (gateway, _facts) = Gateway::start(
            Listener::Tcp(listener),
            token,
            Allowance::unlimited(),
            Settings::new(Upstream::Web(web)),
        );
        let before = peak();
        let mut agent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {login}\r\nconnection: close\r\n\
             content-length: 2\r\n\r\n{{}}"
        );
        agent.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = vec![0; 64 << 10];
        let mut received = 0;
        loop {
            match agent.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(some) => received += some,
            }
        }
        let grown = peak() - before;
        assert!(received >= SENT / 10 * 9, "{received} bytes of {SENT} arrived");
        assert!(grown < 48 << 20, "{kind}: {} MB more memory", grown >> 20);
        let output = gateway.close().await.usage.output;
        assert!(output > (SENT / 4) as u64, "{kind}: {output} tokens were counted");
    }
}
