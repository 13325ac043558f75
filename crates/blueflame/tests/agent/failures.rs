//! When the model cannot be asked, or does not answer to the end.

use serde_json::{Value, json};

use crate::canned::{Canned, END, START, begin, calls, delta, error, reason, says, stream};
use crate::stage::{Agent, Stage};

/// The result and the retries of one prompt.
fn failed(mut agent: Agent) -> (Value, Vec<Value>) {
    agent.prompt("go");
    let result = agent.result();
    let retries = agent.of_subtype("api_retry").into_iter().cloned().collect();
    let code = agent.finish();
    assert_eq!(code, i32::from(result["is_error"] == true));
    (result, retries)
}

#[test]
fn errors_are_tried_again_as_often_as_it_helps() {
    for (status, kind, tries) in [
        (400, "invalid_request", 0),
        (401, "authentication_failed", 0),
        (402, "billing_error", 0),
        (403, "authentication_failed", 0),
        (404, "model_not_found", 0),
        (413, "invalid_request", 0),
        (429, "rate_limit", 4),
        (500, "server_error", 4),
        (502, "server_error", 4),
        (503, "server_error", 4),
        (529, "overloaded", 4),
    ] {
        let stage =
            Stage::new(&format!("replies: [{{fail: {{status: {status}, message: no luck}}}}]"));
        let mut agent = stage.agent(&[]);
        agent.prompt("go");
        let result = agent.result();
        assert_eq!(
            (
                &result["subtype"],
                &result["is_error"],
                &result["api_error_status"],
                &result["result"]
            ),
            (&json!("success"), &json!(true), &json!(status), &json!("no luck")),
        );
        let retries = agent.of_subtype("api_retry");
        assert_eq!(retries.len(), tries, "{status}");
        for (at, retry) in retries.iter().enumerate() {
            assert_eq!(
                (&retry["attempt"], &retry["max_retries"], &retry["error_status"], &retry["error"]),
                (&json!(at + 1), &json!(4), &json!(status), &json!(kind))
            );
            assert_eq!(retry["retry_delay_ms"], 1 << at);
        }
        let last = agent.events.iter().rev().find(|event| event["type"] == "assistant").unwrap();
        assert_eq!(
            (&last["error"], &last["message"]["content"][0]["text"]),
            (&json!(kind), &json!("no luck"))
        );
        assert_eq!(stage.requests().len(), tries + 1);
        assert_eq!(agent.finish(), 1);
    }
}

#[test]
fn a_short_wait_is_waited_for_and_a_long_one_is_not() {
    let wait = |seconds| error(429, &format!("retry-after: {seconds}\r\n"), "slow down");
    let canned = Canned::new(vec![wait(0), says("there", "end_turn")]);
    let (result, retries) = failed(canned.agent(&[]));
    assert_eq!((&result["result"], retries.len()), (&json!("there"), 1));

    let canned = Canned::new(vec![wait(31)]);
    let (result, retries) = failed(canned.agent(&[]));
    assert_eq!((&result["result"], retries.len()), (&json!("slow down"), 0));
    assert_eq!(result["api_error_status"], 429);
}

#[test]
fn a_server_that_says_so_is_not_asked_again() {
    let canned = Canned::new(vec![error(529, "x-should-retry: false\r\n", "no use")]);
    let (result, retries) = failed(canned.agent(&[]));
    assert_eq!((&result["result"], retries.len()), (&json!("no use"), 0));
}

type Make<'m> = &'m dyn Fn() -> String;

#[test]
fn an_answer_that_broke_off_is_never_a_success() {
    let text = begin(r#"{"type":"text","text":""}"#);
    let words = delta(r#"{"type":"text_delta","text":"half"}"#);
    let early = || stream(&[START, &text, &words]);
    let late = || stream(&[START, &text, &words, END]);
    let almost = || stream(&[START, &text, &words, END, &reason("end_turn")]);
    let overloaded = || {
        let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
        stream(&[START, error])
    };
    let nothing = || "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    let garbage = || "not HTTP at all\r\n\r\n".to_owned();
    let rows: [(&str, Make<'_>, usize); 7] = [
        ("before a block was whole", &early, 4),
        ("after a block was whole", &late, 1),
        ("before its last event", &almost, 1),
        ("with an error", &overloaded, 4),
        ("before it began", &nothing, 4),
        ("no HTTP", &garbage, 4),
        ("at once", &String::new, 4),
    ];
    for (name, answer, tries) in rows {
        let canned = Canned::new((0..=tries).map(|_| answer()).collect());
        let (result, retries) = failed(canned.agent(&[]));
        assert_eq!(result["is_error"], true, "{name}: {result}");
        assert_eq!(result["api_error_status"], Value::Null, "{name}");
        assert_eq!(retries.len(), tries, "{name}: {result}");
        assert_eq!(canned.requests().len(), tries + 1, "{name}");

        // And when the next try succeeds, nothing of the half remains.
        let canned = Canned::new(vec![answer(), says("whole", "end_turn")]);
        let mut agent = canned.agent(&[]);
        agent.prompt("go");
        assert_eq!(agent.result()["result"], "whole", "{name}");
        let shown = agent.events.iter().filter(|event| event["type"] == "assistant").count();
        assert_eq!(shown, 1, "{name}");
    }
}

#[test]
fn a_call_in_an_answer_that_broke_off_is_not_made() {
    let whole = calls("Bash", r#"{"command":"touch here"}"#, "tool_use");
    let (without_end, _) = whole.split_once(r#"data: {"type":"message_stop"}"#).unwrap();
    let canned = Canned::new(vec![without_end.to_owned(); 2]);
    let mut agent = canned.agent(&[]);
    agent.prompt("go");
    let result = agent.judge(|_, _| panic!("nothing to judge"));
    assert_eq!(result["is_error"], true);
    // What broke off was paid for, each time.
    assert_eq!(result["usage"]["input_tokens"], 20);
}

#[test]
fn a_scripted_cut_is_an_error_behind_the_gateway_too() {
    for (events, tries) in [(1, 4), (4, 4), (5, 1)] {
        let stage = Stage::new(&format!(
            "replies: [{{say: hello, cut_after: {events}, usage: {{input: 7, output: 9}}}}]"
        ));
        let (result, retries) = failed(stage.agent(&[]));
        assert_eq!(result["is_error"], true, "{result}");
        assert_eq!(retries.len(), tries, "after {events} events: {result}");
        // Each try is paid for, as far as the provider has said.
        assert_eq!(result["modelUsage"]["m1"]["inputTokens"], 7 * (tries + 1));
    }
}

#[test]
fn an_answer_that_stops_coming_is_given_up() {
    let stage = Stage::new("replies: [{say: hello, hang_after: 4}]");
    let mut agent = stage.agent(&["--stall-ms", "50"]);
    agent.prompt("go");
    let result = agent.result();
    assert_eq!(result["is_error"], true);
    assert_eq!(result["result"], "the model's answer stopped coming for 0 s");
}

#[test]
fn a_model_that_cannot_be_reached_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nothing");
    for environment in [
        [("ANTHROPIC_UNIX_SOCKET", socket.to_str().unwrap())],
        // Nothing listens on the discard port.
        [("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")],
    ] {
        let agent = Agent::start(dir.path(), dir.path(), &environment, &[]);
        let (result, retries) = failed(agent);
        assert_eq!(result["api_error_status"], Value::Null);
        assert_eq!(retries.len(), 4);
        assert!(result["result"].as_str().unwrap().contains("cannot be reached"), "{result}");
    }
}

#[test]
fn without_a_model_the_agent_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    for environment in [&[][..], &[("ANTHROPIC_BASE_URL", "https://example.com")]] {
        let mut agent = Agent::start(dir.path(), dir.path(), environment, &[]);
        assert_eq!(agent.exit_code(), 2);
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood_and_gets_the_token() {
    let body = r#"{"id":"m","model":"local","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let length = body.len();
    let canned = Canned::new(vec![format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )]);
    let (result, _) = failed(canned.agent(&[]));
    assert_eq!(result["result"], "hi");
    assert_eq!(result["modelUsage"]["local"]["outputTokens"], 4);
    let request = canned.requests().remove(0);
    for part in [
        "POST /v1/messages HTTP/1.1",
        "authorization: Bearer secret",
        "anthropic-version: 2023-06-01",
    ] {
        assert!(request.contains(part), "{request}");
    }
    assert!(request.contains(r#""stream":true"#));
}
