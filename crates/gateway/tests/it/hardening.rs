//! What an agent cannot do to its gateway, or through it.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::models::Models;
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

/// A request of each dialect, as an agent makes it.
fn ordinary() -> [(&'static str, &'static str); 3] {
    [
        ("/v1/messages", MESSAGES),
        (
            "/v1/chat/completions",
            r#"{"model":"claude-sonnet-5","messages":[{"role":"user","content":"hi"}]}"#,
        ),
        ("/v1/responses", r#"{"model":"claude-sonnet-5","store":false,"input":"hi"}"#),
    ]
}

/// In every dialect: what a provider knows under one name today, it may know in
/// another dialect tomorrow.
#[tokio::test]
async fn fields_that_no_agent_sends_are_refused_by_name() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    for (path, body) in ordinary() {
        for (name, value) in [
            ("data_sources", r#"[{"type":"azure_search"}]"#),
            ("search_parameters", r#"{"mode":"on"}"#),
            ("enable_search", "true"),
            ("web_search_options", "{}"),
            ("extra_body", r#"{"enable_search":true}"#),
            ("previous_response_id", r#""resp_1""#),
            ("conversation", r#""conv_1""#),
            ("background", "true"),
            ("mcp_servers", r#"[{"url":"https://evil.example"}]"#),
            ("container", r#""cntr_1""#),
            ("plugins", r#"[{"id":"web"}]"#),
            ("prompt", r#"{"id":"pmpt_1"}"#),
            ("models", r#"["other"]"#),
            ("service_tier", r#""priority""#),
            ("speed", r#""fast""#),
            ("never_heard_of", "1"),
        ] {
            let body = body.replacen('{', &format!("{{\"{name}\":{value},"), 1);
            let answer = served.ask(path, &body).await;
            assert!(answer.contains("x-blueflame-refused: errand"), "{path} {name}: {answer}");
            assert!(answer.contains(&format!("`{name}`")), "{path} {name}: {answer}");
        }
    }
    let kept = r#"{"model":"m","store":true,"input":"hi"}"#;
    assert_eq!(status(&served.ask("/v1/responses", kept).await), 400);
    assert_eq!(provider.requests().len(), 0);
    for (path, body) in ordinary() {
        assert_eq!(status(&served.ask(path, body).await), 200, "{path}");
    }
}

#[tokio::test]
async fn tools_and_things_at_the_provider_are_refused() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let chat = "/v1/chat/completions";
    let responses = "/v1/responses";
    for (path, body) in [
        ("/v1/messages", r#"{"tools":[{"type":"bash_code_execution_20250825","name":"b"}]}"#),
        ("/v1/messages", r#"{"tools":[{"type":"text_editor_code_execution_20250825"}]}"#),
        ("/v1/messages", r#"{"tools":[{"type":"bash_20250124x"}]}"#),
        (
            "/v1/messages",
            r#"{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}"#,
        ),
        (
            "/v1/messages",
            r#"{"messages":[{"content":[{"type":"container_upload","file_id":"f"}]}]}"#,
        ),
        (chat, r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#),
        (chat, r#"{"messages":[{"content":[{"file":{"file_data":"https://evil.example/"}}]}]}"#),
        (chat, r#"{"messages":[{"content":[{"document_url":"https://evil.example/"}]}]}"#),
        (chat, r#"{"tools":[{"google_search":{}}]}"#),
        (chat, r#"{"tools":[{"type":"builtin_function","function":{"name":"$web_search"}}]}"#),
        (responses, r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#),
        (responses, r#"{"input":[{"id":"msg_1"}]}"#),
        (responses, r#"{"input":[{"role":"user","content":[{"file_id":"file-1"}]}]}"#),
    ] {
        let answer = served.ask(path, body).await;
        assert!(answer.contains("x-blueflame-refused: errand"), "{body}: {answer}");
    }
    assert_eq!(provider.requests().len(), 0);
    let own = MESSAGES.replacen('{', r#"{"tools":[{"type":"bash_20250124","name":"bash"}],"#, 1);
    assert_eq!(status(&served.ask("/v1/messages", &own).await), 200);
}

#[tokio::test]
async fn another_model_than_the_ordered_one_is_refused() {
    let provider = provider().await;
    let models = Models::Ordered("sonnet".to_owned());
    let settings = Settings { models, ..Settings::new(provider.upstream()) };
    let served = serve(settings, Allowance::unlimited()).await;
    for (path, body) in ordinary() {
        for other in ["claude-opus-4-8", "claude-sonnet-5:online", "gpt-4o-search-preview", ""] {
            let answer = served.ask(path, &body.replace("claude-sonnet-5", other)).await;
            assert!(answer.contains("x-blueflame-refused: other_model"), "{other}: {answer}");
        }
        let none = body.replace(r#""model":"claude-sonnet-5","#, "");
        assert_eq!(status(&served.ask(path, &none).await), 400, "{none}");
    }
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(status(&served.ask_messages().await), 200);
}

#[tokio::test]
async fn headers_and_queries_that_ask_for_more_stay_behind() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let sent = "anthropic-version: 2023-06-01\r\nx-stainless-lang: js\r\nuser-agent: claude-cli\r\n\
        anthropic-beta: effort-2025-11-24,code-execution-2025-08-25, MCP-Client-2025-04-04\r\n\
        anthropic-beta: files-api-2025-04-14, evil-2027-01-01\r\nopenai-organization: evil\r\n\
        openai-project: evil\r\nhelicone-target-url: https://evil.example\r\n\
        x-forwarded-host: evil.example\r\nforwarded: host=evil\r\ncookie: evil=1\r\n";
    let request = served.post("/v1/messages?beta=true&web=evil", MESSAGES).replacen(
        "\r\n",
        &format!("\r\n{sent}"),
        1,
    );
    assert_eq!(status(&served.exchange(request).await), 200);
    let head = &provider.requests()[0].head;
    assert!(!head.contains("evil"), "{head}");
    for passed in
        ["anthropic-version: 2023-06-01", "x-stainless-lang: js", "user-agent: claude-cli"]
    {
        assert!(head.contains(passed), "{head}");
    }
    let betas: Vec<&str> = head.lines().filter(|line| line.starts_with("anthropic-beta")).collect();
    assert_eq!(betas, ["anthropic-beta: effort-2025-11-24"]);
    served.ask("/v1/messages?beta=true", MESSAGES).await;
    assert!(provider.requests()[1].head.starts_with("post /v1/messages?beta=true http"));
}

/// What claude 2.1.197 was seen to send, with and without a long memory.
#[tokio::test]
async fn the_betas_of_claude_go_on_and_unknown_ones_do_not() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let of_claude = "claude-code-20250219,context-1m-2025-08-07,interleaved-thinking-2025-05-14,\
        thinking-token-count-2026-05-13,context-management-2025-06-27,\
        prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,effort-2025-11-24";
    for (sent, passed) in [
        (of_claude, Some(of_claude)),
        ("future-thing-2027-01-01", None),
        ("effort-evil-2025-11-24", None),
        ("advisor-tool-2026-03-01,skills-2025-10-02,mcp-servers-2025-12-04", None),
        ("fast-mode-2026-02-01, effort-2027-01-01", Some("effort-2027-01-01")),
    ] {
        let header = format!("\r\nanthropic-beta: {sent}\r\n");
        let request = served.post("/v1/messages", MESSAGES).replacen("\r\n", &header, 1);
        assert_eq!(status(&served.exchange(request).await), 200);
        let head = provider.requests().pop().unwrap().head;
        let betas = head.lines().find_map(|line| line.strip_prefix("anthropic-beta: "));
        assert_eq!(betas, passed, "{head}");
    }
}

/// What arrives is read once, and passed on as what it was read as.
#[tokio::test]
async fn a_body_can_be_read_in_one_way_only() {
    let provider = provider().await;
    let served = serve_provider(&provider).await;
    let with = |headers: &str| {
        served.post("/v1/messages", MESSAGES).replacen("\r\n", &format!("\r\n{headers}\r\n"), 1)
    };
    let chunked = format!("{:x}\r\n{MESSAGES}\r\n0\r\n\r\n", MESSAGES.len());
    let in_pieces = |encoding: &str| {
        let request = served.post("/v1/messages", "").replace("content-length: 0\r\n", "");
        let request =
            request.replacen("\r\n", &format!("\r\ntransfer-encoding: {encoding}\r\n"), 1);
        format!("{request}{chunked}")
    };
    for request in [
        with("content-encoding: identity\r\ncontent-encoding: gzip"),
        with("content-encoding: identity, gzip"),
        in_pieces("gzip, chunked"),
        in_pieces("chunked, chunked"),
    ] {
        assert_eq!(status(&served.exchange(&request).await), 400, "{request}");
    }
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(status(&served.exchange(in_pieces("Chunked")).await), 200);
    for kind in ["multipart/form-data; boundary=x", "application/json; charset=utf-16"] {
        served.exchange(with(&format!("content-type: {kind}"))).await;
        let head = provider.requests().pop().unwrap().head;
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
    }
    let list = served.post("/v1/models", "{\"a\":\"letter\"}").replacen("POST", "GET", 1);
    assert_eq!(status(&served.exchange(list).await), 200);
    let arrived = provider.requests().pop().unwrap();
    assert!(arrived.head.starts_with("get /v1/models") && arrived.body.is_empty(), "{arrived:?}");
}
