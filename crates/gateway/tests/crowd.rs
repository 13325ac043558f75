//! Many large requests at once take bounded memory. In a process of its own,
//! because the figure is that of the process.

#![expect(clippy::unwrap_used, reason = "all of this is test code")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CROWD: usize = 12;
const LARGE: usize = 31 << 20;

/// The memory that this process has now, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}

/// A provider that takes requests whole and answers when it is allowed to.
async fn provider(arrived: Arc<AtomicUsize>, answer: Arc<Semaphore>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (arrived, answer) = (Arc::clone(&arrived), Arc::clone(&answer));
            tokio::spawn(async move {
                let mut piece = vec![0; 64 << 10];
                let mut read = 0;
                while read < LARGE {
                    read += stream.read(&mut piece).await.unwrap();
                }
                arrived.fetch_add(1, Ordering::SeqCst);
                answer.acquire().await.unwrap().forget();
                let said = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
                stream.write_all(said.as_bytes()).await.unwrap();
            });
        }
    });
    address
}

#[tokio::test]
async fn many_large_requests_wait_for_room() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let answer = Arc::new(Semaphore::new(0));
    let address = provider(Arc::clone(&arrived), Arc::clone(&answer)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = Token::generate().unwrap();
    let login = token.reveal().to_owned();
    let web = Web::new(&address, None, Trust::default(), Timeouts::default().connect).unwrap();
    let timeouts = Timeouts { request_body: Duration::from_secs(600), ..Timeouts::default() };
    let settings = Settings { timeouts, ..Settings::new(Upstream::Web(web)) };
    let (gateway, _facts) =
        Gateway::start(Listener::Tcp(listener), token, Allowance::unlimited(), settings);

    let body = format!(r#"{{"model":"m","messages":["{}"]}}"#, "x".repeat(LARGE));
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {login}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let request = Arc::new(head + &body);
    drop(body);
    let before = resident();
    let mut agents = JoinSet::new();
    for _ in 0..CROWD {
        let request = Arc::clone(&request);
        agents.spawn(async move {
            let mut agent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            agent.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            agent.read_to_string(&mut answer).await.unwrap();
            answer
        });
    }
    while arrived.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Time for the others, if nothing held them back.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(arrived.load(Ordering::SeqCst), 2, "the others wait");
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 * LARGE, "{} MB more memory", grown >> 20);
    answer.add_permits(CROWD);
    while let Some(said) = agents.join_next().await {
        let said = said.unwrap();
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
    assert_eq!(arrived.load(Ordering::SeqCst), CROWD, "each got its turn");
    gateway.close().await;
}
