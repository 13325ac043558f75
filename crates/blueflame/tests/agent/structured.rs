//! Structured output: present, missing, and wrong.

use serde_json::json;

use crate::stage::{Agent, Stage};

const SCHEMA: &str =
    r#"{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}"#;

fn agent(stage: &Stage) -> Agent {
    let schema = stage.file("schema.json", SCHEMA);
    let mut agent = stage.agent(&["--json-schema-file", schema.to_str().unwrap()]);
    agent.prompt("count");
    agent
}

#[test]
fn output_that_fits_ends_the_run_after_the_other_calls() {
    let stage = Stage::new(
        r"
replies:
  - say: Here it is.
    call:
      - {tool: StructuredOutput, input: {count: 3}}
      - {tool: Bash, input: {command: touch after}}
",
    );
    let mut agent = agent(&stage);
    let result = agent.allow_all();
    assert_eq!(result["structured_output"], json!({"count": 3}));
    assert_eq!((&result["subtype"], &result["result"]), (&json!("success"), &json!("Here it is.")));
    assert!(stage.workspace().join("after").exists());
    assert_eq!(agent.finish(), 0);
    let requests = stage.requests();
    assert_eq!(requests.len(), 1);
    let offered = requests[0]["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(offered["name"], "StructuredOutput");
    assert_eq!(offered["input_schema"]["required"], json!(["count"]));
}

#[test]
fn output_that_does_not_fit_is_explained_and_may_be_tried_again() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0}
    output: {count: many}
  - when: {contains: "Output does not match required schema: /count"}
    output: {count: 4}
"#,
    );
    let mut agent = agent(&stage);
    assert_eq!(agent.allow_all()["structured_output"], json!({"count": 4}));
    assert_eq!(agent.finish(), 0);
}

#[test]
fn after_five_that_do_not_fit_it_is_given_up() {
    let stage = Stage::new("replies: [{output: {}}]");
    let mut agent = agent(&stage);
    let result = agent.allow_all();
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!((&result["is_error"], &result["num_turns"]), (&json!(true), &json!(5)));
    assert_eq!(agent.told().len(), 5);
    assert_eq!(agent.finish(), 1);
}

#[test]
fn a_model_that_only_talks_is_nudged_once() {
    let stage = Stage::new(
        r"
replies:
  - {when: {turn: 0}, say: three}
  - {when: {turn: 1, contains: calling the tool StructuredOutput}, say: still three}
",
    );
    let mut agent = agent(&stage);
    let result = agent.allow_all();
    assert_eq!(result.get("structured_output"), None);
    assert_eq!((&result["subtype"], &result["result"]), (&json!("success"), &json!("still three")));
    assert_eq!(agent.finish(), 0);
}

#[test]
fn a_schema_that_cannot_be_used_stops_everything() {
    let stage = Stage::new("replies: [{say: x}]");
    for (name, text) in [("broken", "{"), ("array", r#"{"type":"array"}"#)] {
        let schema = stage.file(name, text);
        let mut agent = stage.unjudged(&["--json-schema-file", schema.to_str().unwrap()]);
        assert_eq!(agent.exit_code(), 2, "{name}");
    }
    let mut agent = stage.unjudged(&["--json-schema-file", "/nonexistent"]);
    assert_eq!(agent.exit_code(), 2);
    let mut agent = stage.unjudged(&["--tools", "Read,Fly"]);
    assert_eq!(agent.exit_code(), 2);
}
