//! Nothing is done without an explicit permission.

use serde_json::{Value, json};

use crate::stage::{Agent, Stage, verdict};

/// Writes one file, then is told what came of it.
const WRITES: &str = r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: Write, input: {file_path: a.txt, content: a}}
  - when: {contains: "the call was denied: "}
    say: I was denied.
  - say: I was not denied.
"#;

fn assert_denied(stage: &Stage, agent: &mut Agent, reason: &str) {
    let result = agent.result();
    assert_eq!(result["result"], "I was denied.", "{:#?}", agent.events);
    assert_eq!(result["is_error"], false);
    assert_eq!(agent.told(), [(format!("the call was denied: {reason}"), true)]);
    let path = stage.workspace().join("a.txt");
    assert!(!path.exists());
    let denials = result["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1);
    assert_eq!(denials[0]["tool_name"], "Write");
    assert_eq!(denials[0]["tool_input"], json!({"file_path": path, "content": "a"}));
}

#[test]
fn a_denied_call_is_not_made_and_the_run_goes_on() {
    let stage = Stage::new(WRITES);
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    let question = agent.question();
    agent.answer(&question, "deny", "a.txt belongs to another task");
    assert_denied(&stage, &mut agent, "a.txt belongs to another task");
    assert_eq!(agent.finish(), 0);
}

#[test]
fn an_answer_that_is_no_permission_denies() {
    type Answer = fn(&str) -> String;
    let rows: [(&str, Answer, &str); 5] = [
        ("not JSON", |_| "allow".to_owned(), "the answer could not be read"),
        (
            "an error",
            |id| {
                json!({"type": "control_response", "response":
                    {"subtype": "error", "request_id": id, "error": "the policy crashed"}})
                .to_string()
            },
            "the call could not be judged: the policy crashed",
        ),
        (
            "an empty answer",
            |id| {
                json!({"type": "control_response", "response":
                    {"subtype": "success", "request_id": id, "response": {}}})
                .to_string()
            },
            "the call was not explicitly permitted",
        ),
        ("ask", |id| verdict(id, "ask", "").to_string(), "the call was not explicitly permitted"),
        (
            "the answer to claude's other question",
            |id| {
                json!({"type": "control_response", "response": {"subtype": "success",
                    "request_id": id, "response": {"behavior": "allow", "updatedInput": {}}}})
                .to_string()
            },
            "the call was not explicitly permitted",
        ),
    ];
    for (name, answer, reason) in rows {
        let stage = Stage::new(WRITES);
        let mut agent = stage.agent(&[]);
        agent.prompt(name);
        let question = agent.question();
        agent.send_text(&answer(question["request_id"].as_str().unwrap()));
        assert_denied(&stage, &mut agent, reason);
    }
}

#[test]
fn no_answer_in_time_denies_and_a_late_one_changes_nothing() {
    for wrong_id in [false, true] {
        let stage = Stage::new(WRITES);
        let mut agent = stage.unjudged(&[]);
        agent.initialize(0.2);
        agent.prompt("go");
        let question = agent.question();
        if wrong_id {
            agent.send(&verdict("another-question", "allow", ""));
        }
        let cancelled = agent.until(|event| event["type"] == "control_cancel_request");
        assert_eq!(cancelled["request_id"], question["request_id"]);
        agent.answer(&question, "allow", "");
        assert_denied(&stage, &mut agent, "the call was not judged within 0.2 s");
    }
}

#[test]
fn without_a_judge_everything_is_denied() {
    let stage = Stage::new(WRITES);
    let mut agent = stage.unjudged(&[]);
    agent.prompt("go");
    assert_denied(&stage, &mut agent, "nobody was named to judge the call");
}

#[test]
fn when_the_input_ends_what_is_left_is_denied() {
    let stage = Stage::new(WRITES);
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    agent.question();
    agent.close_stdin();
    assert_denied(&stage, &mut agent, "nobody is there any more to judge the call");
    assert_eq!(agent.exit_code(), 0);
}

#[test]
fn when_the_input_has_ended_a_model_that_insists_is_given_up() {
    let stage = Stage::new(
        "replies: [{call: [{tool: Bash, input: {command: touch here}}, {tool: Read, input: {file_path: x}}]}]",
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    agent.question();
    agent.close_stdin();
    let result = agent.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(
        result["errors"],
        json!(["the input has ended, so nobody judges tool calls any more"])
    );
    assert_eq!(stage.requests().len(), 3);
    assert!(!stage.workspace().join("here").exists());
    assert_eq!(agent.exit_code(), 1);
}

#[test]
fn a_prompt_in_a_pipe_that_closes_is_still_worked_on() {
    let stage = Stage::new("replies: [{say: hello}]");
    let mut agent = stage.unjudged(&[]);
    agent.prompt("go");
    agent.close_stdin();
    assert_eq!(agent.result()["result"], "hello");
    assert_eq!(agent.exit_code(), 0);
}

#[test]
fn structured_output_is_judged_too() {
    let stage = Stage::new(
        "replies: [{when: {turn: 0}, output: {done: true}}, {when: {turn: 1, contains: not yet}, say: hm}, {when: {turn: 2}, say: well}]",
    );
    let schema = stage.file("schema", r#"{"type": "object"}"#);
    let mut agent = stage.agent(&["--json-schema-file", schema.to_str().unwrap()]);
    agent.prompt("go");
    let result = agent.judge(|tool, input| {
        assert_eq!((tool, input), ("StructuredOutput", &json!({"done": true})));
        Some("not yet")
    });
    assert_eq!(result["result"], "well");
    assert_eq!(result.get("structured_output"), None);
    assert_eq!(result["permission_denials"][0]["tool_name"], "StructuredOutput");
}

#[test]
fn strange_lines_are_answered_or_passed_over() {
    let stage = Stage::new("replies: [{say: hello}]");
    let mut agent = stage.agent(&[]);
    for line in ["", "   ", "nonsense", "[1]", "{\"type\":\"keep_alive\"}", "\u{1b}[A"] {
        agent.send_text(line);
    }
    agent.send(
        &json!({"type": "control_request", "request_id": "q", "request": {"subtype": "get_usage"}}),
    );
    let answer = agent.next();
    assert_eq!(answer["response"]["subtype"], "error");
    assert_eq!(answer["response"]["request_id"], "q");
    for content in [json!(null), json!(""), json!([]), json!(7)] {
        agent.send(&json!({"type": "user", "message": {"role": "user", "content": content}}));
        let result = agent.result();
        assert_eq!(result["subtype"], "error_during_execution");
    }
    agent.send(&json!({"type": "user", "message": {"content": [{"type": "text", "text": "go"}]}}));
    let result: Value = agent.result();
    assert_eq!(result["result"], "hello");
    assert_eq!(agent.finish(), 0);
}
