//! What an agent cannot do to its gateway, or through it.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::{Timeouts, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::wire::*;

async fn provider() -> Provider {
    Provider::saying(format!("{STREAM}{}", message(1, 1, "x"))).await
}

#[tokio::test]
async fn nothing_passes_without_the_token() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let good = served.post("/v1/messages", MESSAGES);
    for bad in [
        good.replace(&served.token, "wrong"),
        good.replace(&served.token, ""),
        good.replace("x-api-key", "x-other"),
        good.replace("x-api-key: ", "authorization: Basic "),
        good.replace(&served.token, &served.token[..served.token.len() - 1]),
    ] {
        let answer = served.exchange(bad).await;
        assert!(answer.contains("x-blueflame-refused: bad_token"), "{answer}");
    }
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(status(&served.exchange(good).await), 200);
}

#[tokio::test]
async fn nothing_but_the_model_can_be_reached() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let good = served.post("/v1/messages", MESSAGES);
    for (from, to, expected) in [
        ("POST /v1/messages", "POST /v1/files", 404),
        ("POST /v1/messages", "POST /v1/messages/batches", 404),
        ("POST /v1/messages", "POST /v1/%6dessages", 404),
        ("POST /v1/messages", "POST //v1/messages", 404),
        ("POST /v1/messages", "GET /v1/messages", 405),
        ("POST /v1/messages", "DELETE /v1/messages", 405),
        ("POST /v1/messages", "CONNECT evil.example:443", 405),
        ("POST /v1/messages", "POST http://evil.example/v1/messages", 400),
        ("\"model\"", "\"model\":\"x\",\"model\"", 400),
        ("\"stream\":true", "\"background\":true", 400),
        (MESSAGES, "not json at all", 400),
        ("connection: close", "connection: close\r\ncontent-encoding: gzip", 400),
    ] {
        let request = good.replacen(from, to, 1);
        let body = request.split_once("\r\n\r\n").unwrap().1;
        let length = format!("content-length: {}", body.len());
        let request = request.replace(&format!("content-length: {}", MESSAGES.len()), &length);
        let answer = served.exchange(request).await;
        assert_eq!(status(&answer), expected, "{to}: {answer}");
    }
    assert_eq!(provider.requests().len(), 0, "none of these reached the provider");
    // Whatever host the request names, it goes where the configuration says.
    let answer = served.exchange(good.replace("host: gateway", "host: evil.example")).await;
    assert_eq!(status(&answer), 200);
    assert!(!provider.requests()[0].head.contains("evil"));
}

#[tokio::test]
async fn requests_that_are_too_large_are_not_read() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let head = served.post("/v1/messages", "");
    let declared = head.replace("content-length: 0", "content-length: 99999999");
    assert_eq!(status(&served.exchange(declared).await), 413);

    let mut agent = served.connect().await;
    let (mut answers, mut sending) = agent.split();
    let head = head.replace("content-length: 0", "transfer-encoding: chunked");
    sending.write_all(head.as_bytes()).await.unwrap();
    let piece = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    let mut answer = [0; 12];
    let flood = async {
        for _ in 0..64 {
            if sending.write_all(piece.as_bytes()).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = flood => {}
        read = answers.read_exact(&mut answer) => { read.unwrap(); }
    }
    assert_eq!(&answer, b"HTTP/1.1 413");

    let many: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    let long = format!("x-long: {}\r\n", "y".repeat(400_000));
    for headers in [many, long] {
        let request =
            served.post("/v1/messages", MESSAGES).replacen("\r\n", &format!("\r\n{headers}"), 1);
        let answer = served.exchange(&request).await;
        assert_eq!(status(&answer), 431, "{} bytes", request.len());
    }
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn requests_that_never_arrive_are_given_up() {
    let provider = provider().await;
    let timeouts = Timeouts {
        request_head: Duration::from_millis(50),
        request_body: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let settings = Settings { timeouts, ..Settings::new(provider.upstream()) };
    let served = serve(settings, Allowance::unlimited()).await;
    let whole = served.post("/v1/messages", MESSAGES);
    let body_at = whole.find("\r\n\r\n").unwrap() + 4;
    for (part, expected) in [(&whole[..body_at - 8], 0), (&whole[..body_at + 5], 408)] {
        let mut agent = served.connect().await;
        agent.write_all(part.as_bytes()).await.unwrap();
        let mut answer = String::new();
        agent.read_to_string(&mut answer).await.unwrap();
        assert_eq!(status(&answer), expected, "{answer}");
    }
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn a_socket_file_is_for_its_owner_alone_and_goes_with_the_gateway() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gateway.sock");
    let (script, _) = Script::read(b"replies: [{say: hello}]").unwrap();
    let token = Token::generate().unwrap();
    let text = token.reveal().to_owned();
    let (gateway, _facts) = Gateway::start(
        Listener::unix(&path).unwrap(),
        token,
        Allowance::unlimited(),
        Settings::new(Upstream::Script(script.into())),
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(Listener::unix(&path).is_err(), "a socket that is in use is not taken over");
    let mut agent = UnixStream::connect(&path).await.unwrap();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {text}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{MESSAGES}",
        MESSAGES.len()
    );
    agent.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    agent.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("hello"), "{answer}");
    gateway.close().await;
    assert!(!path.exists());
}

/// What the corpus of attacks has for a gateway, by the number of the case.
#[tokio::test]
async fn the_gateway_cases_of_the_corpus_have_their_verdicts() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let good = served.post("/v1/messages", MESSAGES);
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    let aimed = |target: &str| good.replacen("POST /v1/messages", target, 1);
    let with_body = |body: &str| served.post("/v1/messages", body);
    let mut denied = vec![
        ("gw-002", aimed("CONNECT 169.254.169.254:80")),
        ("gw-003", aimed("GET http://127.0.0.1:22/")),
        ("gw-004", aimed("CONNECT registry.example.evil.example:443")),
        ("gw-005", aimed("CONNECT evilregistry.example:443")),
        ("gw-008", aimed("CONNECT [::ffff:127.0.0.1]:80")),
        ("gw-016", aimed("CONNECT api.anthropic.com:443")),
        ("gw-014", {
            let smuggled = format!("0\r\n\r\n{good}");
            let length = format!("content-length: {}", smuggled.len());
            let head = head.replace(&format!("content-length: {}", body.len()), &length);
            format!("{head}\r\ntransfer-encoding: chunked\r\n\r\n{smuggled}")
        }),
        ("gw-014", format!("{head}\r\ncontent-length: 0\r\n\r\n{body}")),
        ("gw-014", format!("{head}\r\ntransfer-encoding: xchunked\r\n\r\n{body}")),
        ("gw-015", format!("{head}\r\nx-long: {}\r\n\r\n{body}", "y".repeat(4 << 20))),
    ];
    for errand in [
        r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#,
        r#""tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]"#,
        r#""tools":[{"type":"code_execution_20250825","name":"code_execution"}]"#,
        r#""mcp_servers":[{"type":"url","url":"https://evil.example","name":"x"}]"#,
    ] {
        denied.push(("gw-013", with_body(&MESSAGES.replacen('{', &format!("{{{errand},"), 1))));
    }
    for (case, request) in denied {
        let answer = served.exchange(&request).await;
        assert!(status(&answer) >= 400, "{case}: {answer}");
        assert_eq!(provider.requests().len(), 0, "{case} reached the provider");
    }
    // gw-010: another key than the agent's token opens nothing, and beside the
    // token it is taken out.
    let other = format!("{head}\r\nx-api-key: sk-real-from-elsewhere\r\n\r\n{body}");
    served.exchange(&other).await;
    // gw-018: the one thing that must work.
    assert_eq!(status(&served.exchange(&good).await), 200);
    let reached = provider.requests();
    assert!(!reached.is_empty());
    assert!(reached.iter().all(|request| !request.head.contains("elsewhere")), "{reached:?}");
}
