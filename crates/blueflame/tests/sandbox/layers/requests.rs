//! The cases of the gateway: requests, really sent to one.

use std::time::Duration;

use blueflame_core::money::{Budget, Spend};
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::{Timeouts, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

const BODY: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

/// A request that the corpus describes, by the case's name: what is sent, and
/// where a program that goes without the gateway would connect.
pub struct Request {
    bytes: String,
    pub elsewhere: Option<(&'static str, u16)>,
    /// Why no other layer stops it, where none does.
    pub alone: &'static str,
}

const ONLY: &str = "only the gateway sees what is in a request";

pub fn of_case(id: &str, token: &str) -> Request {
    let post = |headers: &str, body: &str| {
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: gateway\r\nx-api-key: {token}\r\n{headers}\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let connect = |target: &str| format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n");
    let sent = |bytes: String, alone| Request { bytes, elsewhere: None, alone };
    let to =
        |bytes: String, host, port| Request { bytes, elsewhere: Some((host, port)), alone: "" };
    match id {
        "gw-002" => to(connect("169.254.169.254:80"), "169.254.169.254", 80),
        "gw-003" => {
            let get = "GET http://127.0.0.1:22/ HTTP/1.1\r\nhost: 127.0.0.1:22\r\n\r\n";
            to(get.to_owned(), "127.0.0.1", 22)
        }
        "gw-004" => {
            let host = "registry.example.evil.example";
            to(connect(&format!("{host}:443")), host, 443)
        }
        "gw-005" => to(connect("evilregistry.example:443"), "evilregistry.example", 443),
        "gw-008" => to(connect("[::ffff:127.0.0.1]:80"), "::ffff:127.0.0.1", 80),
        "gw-010" => {
            let foreign = post("", BODY).replace(token, "sk-real-from-elsewhere");
            sent(
                foreign,
                "a key of another account is of no use without a network, and the sandbox has none",
            )
        }
        "gw-013" => {
            let tools =
                r#""tools":[{"type":"web_search_20250305","name":"web_search"}],"messages""#;
            sent(post("", &BODY.replace(r#""messages""#, tools)), ONLY)
        }
        "gw-014" => sent(post("transfer-encoding: chunked\r\n", BODY), ONLY),
        "gw-015" => sent(post(&format!("x-long: {}\r\n", "y".repeat(400_000)), BODY), ONLY),
        "gw-016" => to(connect("api.anthropic.com:443"), "api.anthropic.com", 443),
        "gw-017" => sent(
            post("", BODY),
            "the supervision ends an agent whose request was refused, and counts nothing itself",
        ),
        "gw-018" => sent(post("", BODY), ""),
        other => panic!("a request that nobody wrote down: {other}"),
    }
}

/// Why a gateway refuses the request of a case; `None` if it passes it on.
pub fn refusal(id: &str) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("gateway");
        let listener = Listener::unix(&socket).unwrap();
        let token = Token::generate().unwrap();
        let (script, _) = Script::read(b"replies: [{say: hi}]").unwrap();
        let timeouts = Timeouts { request_body: Duration::from_millis(500), ..Timeouts::default() };
        let settings = Settings { timeouts, ..Settings::new(Upstream::Script(script.into())) };
        let spent = id == "gw-017";
        let allowance = if spent {
            let budget = Budget::Tokens(1);
            Allowance::new(budget, budget, Spend { usage: used(2), ..Spend::default() })
        } else {
            Allowance::unlimited()
        };
        let (_gateway, _facts) = Gateway::start(listener, token.clone(), allowance, settings);
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        let request = of_case(id, token.reveal());
        // A gateway that has heard enough hangs up before all is said.
        let _ = stream.write_all(request.bytes.as_bytes()).await;
        let mut said = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut said)).await;
        let said = String::from_utf8_lossy(&said);
        let status = said.split_whitespace().nth(1).unwrap_or("hangs up");
        let reason = said.lines().find_map(|line| line.strip_prefix("x-blueflame-refused: "));
        match (status, reason) {
            ("200", _) => None,
            (status, Some(reason)) => Some(format!("{status} {reason}")),
            (status, None) => Some(status.to_owned()),
        }
    })
}

fn used(input: u64) -> blueflame_core::money::Usage {
    blueflame_core::money::Usage { input, ..Default::default() }
}
