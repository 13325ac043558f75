//! Large things: they pass, or they are refused with a reason.

use serde_json::json;

use crate::canned::{Canned, END, START, STOP, begin, delta, reason, says, stream};
use crate::stage::Stage;

#[test]
fn a_prompt_of_a_megabyte_passes() {
    let stage = Stage::new("replies: [{when: {contains: the end}, say: read}]");
    let mut agent = stage.agent(&[]);
    agent.prompt(&format!("{} the end", "word ".repeat(200_000)));
    assert_eq!(agent.result()["result"], "read");
    assert_eq!(agent.finish(), 0);
}

#[test]
fn an_answer_of_20_megabytes_passes_and_can_be_built_on() {
    let piece = delta(&format!(r#"{{"type":"text_delta","text":"{}"}}"#, "x".repeat(1 << 20)));
    let text = begin(r#"{"type":"text","text":""}"#);
    let mut events = vec![START, text.as_str()];
    events.extend([piece.as_str(); 20]);
    let end = reason("end_turn");
    events.extend([END, end.as_str(), STOP]);
    let canned = Canned::new(vec![stream(&events), says("short", "end_turn")]);
    let mut agent = canned.agent(&[]);
    agent.prompt("go");
    let result = agent.result();
    assert_eq!(result["result"].as_str().unwrap().len(), 20 << 20);
    agent.prompt("and now?");
    assert_eq!(agent.result()["result"], "short");
    assert!(canned.requests()[1].len() > 20 << 20);
    assert_eq!(agent.finish(), 0);
}

#[test]
fn a_tool_result_of_20_megabytes_is_cut() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: Bash, input: {command: "head -c 20000000 /dev/zero | tr '\\0' x | tee big; echo; echo the end"}}
      - {tool: Read, input: {file_path: big}}
      - {tool: Grep, input: {pattern: xxx, output_mode: content}}
  - when: {contains: the end}
    say: ok
"#,
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    assert_eq!(agent.allow_all()["result"], "ok");
    for (text, is_error) in agent.told() {
        assert!(!is_error && text.len() < 31_000, "{} bytes", text.len());
    }
}

#[test]
fn an_answer_beyond_all_bounds_is_refused() {
    let piece = format!("data: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n", "x".repeat(1 << 20));
    let endless = stream(&[START]) + &piece.repeat(70);
    let event = stream(&[START]) + "data: " + &"x".repeat(10 << 20);
    for (answer, reason) in [
        (endless, "the model's answer is larger than 64 MiB"),
        (event, "an event of the model's answer is larger than 8 MiB"),
    ] {
        let canned = Canned::new(vec![answer]);
        let mut agent = canned.agent(&[]);
        agent.prompt("go");
        let result = agent.result();
        assert_eq!((&result["is_error"], &result["result"]), (&json!(true), &json!(reason)));
        assert!(agent.of_subtype("api_retry").is_empty());
    }
}
