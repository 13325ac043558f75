//! What ends a run that would go on: turns, money, length, a person.

use blueflame_core::money::Budget;
use serde_json::json;

use crate::canned::{Canned, calls, says};
use crate::stage::{Stage, until_gone};

#[test]
fn the_turn_limit_counts_answers_that_call_tools() {
    let stage = Stage::new("replies: [{call: [{tool: Bash, input: {command: echo x >> log}}]}]");
    let mut agent = stage.agent(&["--max-turns", "3"]);
    agent.prompt("go");
    let result = agent.allow_all();
    assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("error_max_turns"), &json!(3)));
    assert_eq!(result["errors"], json!(["Reached maximum number of turns (3)"]));
    assert_eq!(std::fs::read_to_string(stage.workspace().join("log")).unwrap(), "x\nx\nx\n");
    assert_eq!(stage.requests().len(), 3);
    assert_eq!(agent.finish(), 1);
}

#[test]
fn an_answer_within_the_turn_limit_is_a_success() {
    let stage = Stage::new(
        "replies: [{when: {turn: 0}, call: [{tool: Bash, input: {command: 'true'}}]}, {say: done}]",
    );
    let mut agent = stage.agent(&["--max-turns", "2"]);
    agent.prompt("go");
    assert_eq!(agent.allow_all()["result"], "done");
}

#[test]
fn a_spent_budget_ends_the_run_at_the_request_after_the_one_that_spent_it() {
    let script = "replies: [{call: [{tool: Bash, input: {command: 'true'}}], usage: {input: 400, output: 100}}]";
    let stage = Stage::with_budget(script, Budget::Tokens(1_200));
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    let result = agent.allow_all();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!(result["api_error_status"], 400);
    let message = result["result"].as_str().unwrap();
    assert!(message.contains("the budget of 1200 tokens is spent"), "{message}");
    assert_eq!(agent.of_subtype("api_retry"), [] as [&serde_json::Value; 0]);
    assert_eq!(result["usage"]["input_tokens"], 1_200);
    assert_eq!(stage.requests().len(), 3, "the third request crossed the limit");
    assert_eq!(agent.finish(), 1);
}

#[test]
fn an_interrupt_ends_a_request_and_the_conversation_goes_on() {
    let stage = Stage::new(
        "replies: [{when: {contains: again}, say: here}, {when: {contains: wait}, say: x, hang_after: 3}]",
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("please wait");
    agent.until(|event| event["subtype"] == "init");
    agent.interrupt();
    let result = agent.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!((&result["is_error"], &result["errors"]), (&json!(true), &json!(["interrupted"])));
    // Nothing is running now, so nothing is stopped.
    agent.interrupt();
    agent.prompt("again");
    assert_eq!(agent.result()["result"], "here");
    let body = &stage.requests()[0]["messages"];
    assert_eq!(body.as_array().unwrap().len(), 1, "both prompts stand in one message: {body}");
    assert_eq!(agent.finish(), 0);
}

#[test]
fn an_interrupt_ends_a_command_and_its_children() {
    let stage = Stage::new(
        r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: Bash, input: {command: "echo first"}}
      - {tool: Bash, input: {command: "sleep 300 & echo $! > pid.new && mv pid.new pid; wait"}}
      - {tool: Bash, input: {command: "echo never"}}
  - when: {turn: 1, contains: again}
    say: here again
"#,
    );
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    for _ in 0..2 {
        let question = agent.question();
        agent.answer(&question, "allow", "");
    }
    let path = stage.workspace().join("pid");
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    agent.interrupt();
    assert_eq!(agent.result()["subtype"], "error_during_execution");
    until_gone(std::fs::read_to_string(&path).unwrap().trim());
    // Every call has a result, so the model can be asked again.
    let interrupted = ("interrupted".to_owned(), true);
    assert_eq!(
        agent.told(),
        [("exit code 0\nfirst".to_owned(), false), interrupted.clone(), interrupted]
    );
    agent.prompt("again");
    assert_eq!(agent.result()["result"], "here again");
    assert_eq!(agent.finish(), 0);
}

#[test]
fn an_interrupt_ends_the_wait_for_a_verdict() {
    let stage = Stage::new("replies: [{call: [{tool: Bash, input: {command: touch here}}]}]");
    let mut agent = stage.agent(&[]);
    agent.prompt("go");
    let question = agent.question();
    agent.interrupt();
    agent.result();
    agent.answer(&question, "allow", "");
    assert_eq!(agent.finish(), 1);
    assert!(!stage.workspace().join("here").exists());
}

#[test]
fn an_answer_that_is_too_long_goes_on_and_its_parts_are_joined() {
    let canned = Canned::new(vec![says("one ", "max_tokens"), says("two", "end_turn")]);
    let mut agent = canned.agent(&[]);
    agent.prompt("go");
    let result = agent.result();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("one two"), &json!(2)));
    assert!(canned.requests()[1].contains("Go on exactly where it broke off"));
}

#[test]
fn answers_that_are_always_too_long_are_given_up() {
    let canned = Canned::new(vec![says("more", "max_tokens"); 4]);
    let mut agent = canned.agent(&[]);
    agent.prompt("go");
    let result = agent.result();
    assert_eq!((&result["is_error"], &result["stop_reason"]), (&json!(true), &json!("max_tokens")));
    let reason = agent.events.iter().rev().find(|event| event["type"] == "assistant").unwrap();
    assert_eq!(reason["error"], "max_output_tokens");
    assert_eq!(agent.finish(), 1);
}

#[test]
fn a_call_that_is_cut_off_is_not_made() {
    // As JSON the second one is whole, but it may not be all that was meant.
    for input in [r#"{"command":"touch he"#, r#"{"command":"touch he"}"#] {
        let canned = Canned::new(vec![calls("Bash", input, "max_tokens"), says("ok", "end_turn")]);
        let mut agent = canned.agent(&[]);
        agent.prompt("go");
        let result = agent.judge(|_, _| panic!("nothing to judge"));
        assert_eq!(result["result"], "ok");
        let (told, is_error) = &agent.told()[0];
        assert!(*is_error && told.contains("length limit"), "{told}");
    }
}

#[test]
fn a_refusal_is_an_error() {
    let canned = Canned::new(vec![says("I will not.", "refusal")]);
    let mut agent = canned.agent(&[]);
    agent.prompt("go");
    let result = agent.result();
    assert_eq!((&result["is_error"], &result["stop_reason"]), (&json!(true), &json!("refusal")));
    assert_eq!(result["result"], "I will not.");
    assert_eq!(agent.finish(), 1);
}
