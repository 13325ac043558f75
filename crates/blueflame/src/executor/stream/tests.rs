//! What programs say, line by line, and what is made of it.

use super::*;
use crate::executor::Told;

fn order(prompt: &str) -> Order {
    Order {
        model: "sonnet".into(),
        system: String::new(),
        prompt: prompt.into(),
        tools: vec!["Read".into()],
        output_schema: None,
        max_turns: None,
        budget: blueflame_core::money::Budget::Unlimited,
        may_ask: true,
        skills: Vec::new(),
    }
}

fn claude(prompt: &str) -> Stream {
    Stream::new(&order(prompt), Unjudged::Marked(&["<tool_use_error>"]))
}

fn hear(stream: &mut Stream, event: &Value) -> Vec<Step> {
    stream.heard(event.to_string().as_bytes())
}

fn sent(steps: &[Step]) -> Value {
    match steps {
        [Step::Send(line)] => {
            assert!(!line.contains('\n'), "a line is a line");
            serde_json::from_str(line).unwrap()
        }
        other => panic!("not one line: {other:?}"),
    }
}

fn opened() -> Stream {
    let mut stream = claude("do it");
    stream.open();
    hear(
        &mut stream,
        &json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": "open", "response": {}}}),
    );
    stream
}

fn hook(ticket: &str, id: &str) -> Value {
    json!({"type": "control_request", "request_id": ticket, "request": {
        "subtype": "hook_callback", "callback_id": "judge", "tool_use_id": id,
        "input": {"cwd": "/w", "tool_name": "Read", "tool_input": {"file_path": "/w/a"}}}})
}

fn result_of(id: &str, is_error: bool) -> Value {
    json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": id, "is_error": is_error}]}})
}

#[test]
fn what_is_not_understood_is_kept_in_part() {
    let mut stream = opened();
    assert_eq!(stream.unread(), None);
    assert_eq!(stream.heard(b"{\"half"), []);
    assert_eq!(stream.unread(), Some("{\"half"));
    stream.heard(&[0xff; 10_000]);
    assert_eq!(stream.unread().map(|it| it.chars().count()), Some(MOST_UNREAD));
}

#[test]
fn the_prompt_is_sent_once_and_only_after_the_hook_is_armed() {
    let mut stream = claude("do it");
    let first = sent(&stream.open());
    assert_eq!(first.pointer("/request/subtype").unwrap(), "initialize");
    assert_eq!(first.pointer("/request/hooks/PreToolUse/0/matcher").unwrap(), "*");
    let yes = json!({"type": "control_response",
        "response": {"subtype": "success", "request_id": "open", "response": {}}});
    let prompt = sent(&hear(&mut stream, &yes));
    assert_eq!(prompt.pointer("/message/content").unwrap(), "do it");
    assert_eq!(hear(&mut stream, &yes), []);
}

#[test]
fn a_program_that_will_not_be_judged_gets_no_prompt() {
    let mut stream = claude("do it");
    stream.open();
    let no = json!({"type": "control_response",
        "response": {"subtype": "error", "request_id": "open", "error": "no hooks here"}});
    assert_eq!(hear(&mut stream, &no), [Step::Over]);
    let Told::Failed { message } = stream.account().end else { panic!() };
    assert!(message.contains("no hooks here"));
}

#[test]
fn a_prompt_is_never_taken_for_a_command() {
    for (prompt, expected) in
        [("/compact", "\n/compact"), ("  /compact", "\n  /compact"), ("see /etc", "see /etc")]
    {
        assert_eq!(claude(prompt).prompt, expected);
    }
}

#[test]
fn each_call_is_judged_and_the_answer_goes_back_under_its_number() {
    let mut stream = opened();
    let [Step::Judge { ticket, call }] = &hear(&mut stream, &hook("u1", "t1"))[..] else {
        panic!("not judged")
    };
    assert_eq!((ticket.as_str(), call.tool.as_str(), call.cwd.as_str()), ("u1", "Read", "/w"));
    let answer = sent(&stream.judged("u1", &Ruling::Deny { reason: "not yours".into() }));
    assert_eq!(answer.pointer("/response/request_id").unwrap(), "u1");
    let output = answer.pointer("/response/response/hookSpecificOutput").unwrap();
    assert_eq!(output.get("permissionDecision").unwrap(), "deny");
    assert_eq!(output.get("permissionDecisionReason").unwrap(), "not yours");
    // Twice, or to an unknown number, says nothing.
    assert_eq!(stream.judged("u1", &Ruling::Allow), []);
    assert_eq!(stream.judged("u9", &Ruling::Allow), []);
}

#[test]
fn a_result_without_a_verdict_ends_the_run() {
    let mut stream = opened();
    hear(&mut stream, &hook("u1", "t1"));
    stream.judged("u1", &Ruling::Allow);
    assert_eq!(hear(&mut stream, &result_of("t1", false)), []);
    for id in ["t1", "t3"] {
        let steps = hear(&mut stream, &result_of(id, false));
        assert!(matches!(&steps[..], [Step::Breach { .. }]), "{id}: {steps:?}");
    }
}

#[test]
fn an_error_is_no_proof_that_a_call_was_not_made() {
    let failed = |id: &str, content: Value| {
        json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": id, "is_error": true, "content": content}]}})
    };
    let mut stream = opened();
    // Denied, and taken back by the program: both are known.
    hear(&mut stream, &hook("u1", "t1"));
    stream.judged("u1", &Ruling::Deny { reason: "no".into() });
    hear(&mut stream, &hook("u2", "t2"));
    hear(&mut stream, &json!({"type": "control_cancel_request", "request_id": "u2"}));
    for id in ["t1", "t2"] {
        assert_eq!(hear(&mut stream, &failed(id, json!("no"))), [], "{id}");
    }
    // A mistake that the program found before it asked anyone.
    let mistake = "<tool_use_error>Error: No such tool available: Fly</tool_use_error>";
    assert_eq!(hear(&mut stream, &failed("t3", json!(mistake))), []);
    let in_a_block = json!([{"type": "text", "text": mistake}]);
    assert_eq!(hear(&mut stream, &failed("t4", in_a_block)), []);
    // A command that ran and failed; and one whose denial was used up.
    for (id, content) in [("t5", "Exit code 1"), ("t1", "Exit code 1"), ("t6", "")] {
        let steps = hear(&mut stream, &failed(id, json!(content)));
        assert!(matches!(&steps[..], [Step::Breach { .. }]), "{id}: {steps:?}");
    }
    // The embedded agent has no mark for it, and needs none.
    let mut embedded = Stream::new(&order("x"), Unjudged::AnyError);
    assert_eq!(hear(&mut embedded, &failed("t7", json!("there is no tool"))), []);
    assert!(!hear(&mut embedded, &result_of("t8", false)).is_empty());
}

#[test]
fn a_call_is_judged_again_only_if_it_is_another_one() {
    let mut stream = opened();
    let ask = |ticket: &str, path: &str| {
        json!({"type": "control_request", "request_id": ticket, "request": {
            "subtype": "can_use_tool", "tool_name": "Read", "tool_use_id": "t1",
            "input": {"file_path": path}}})
    };
    hear(&mut stream, &hook("u1", "t1"));
    stream.judged("u1", &Ruling::Allow);
    assert!(stream.is_at_work());
    let answer = sent(&hear(&mut stream, &ask("u2", "/w/a")));
    assert_eq!(answer.pointer("/response/response/behavior").unwrap(), "allow");
    // The same number with something else in it.
    assert!(matches!(&hear(&mut stream, &ask("u3", "/etc/passwd"))[..], [Step::Judge { .. }]));
    stream.judged("u3", &Ruling::Deny { reason: "no".into() });
    assert!(!stream.is_at_work());
    // Now it counts as denied: a result would be a breach.
    assert!(matches!(&hear(&mut stream, &result_of("t1", false))[..], [Step::Breach { .. }]));
}

#[test]
fn what_is_held_and_shown_is_bounded() {
    let mut stream = opened();
    let long = json!({"type": "assistant", "message": {"content": [
        {"type": "text", "text": "é".repeat(100_000)}]}});
    let [Step::Show(Sight::Said { text })] = &hear(&mut stream, &long)[..] else { panic!() };
    assert!(text.len() < 2_100 && text.ends_with("é…"), "{} bytes", text.len());
    // Commas in a text are no values.
    let text = json!({"type": "new", "text": ",[{\"\\".repeat(1_000_000)});
    assert_eq!(hear(&mut stream, &text), []);
    let many = format!(r#"{{"type":"new","many":[{}0]}}"#, "0,".repeat(1_000_000));
    assert!(matches!(&stream.heard(many.as_bytes())[..], [Step::Show(_)]), "not passed over");

    let ask = |number: usize| {
        json!({"type": "control_request", "request_id": format!("u{number}"), "request": {
            "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t",
            "input": {"questions": [{"question": "Which?"}]}}})
    };
    let asked =
        (0..1_000).filter(|n| matches!(hear(&mut stream, &ask(*n))[..], [Step::Ask { .. }]));
    assert_eq!(asked.count(), MOST_WAITING);

    let mut stream = opened();
    let mut judged = 0;
    for number in 0..10_000 {
        let ticket = format!("u{number}");
        if matches!(hear(&mut stream, &hook(&ticket, &ticket))[..], [Step::Judge { .. }]) {
            judged += 1;
            stream.judged(&ticket, &Ruling::Allow);
        }
    }
    assert_eq!(judged, MOST_CALLS);
}

#[test]
fn a_denied_call_that_was_made_all_the_same_ends_the_run() {
    let mut stream = opened();
    hear(&mut stream, &hook("u1", "t1"));
    stream.judged("u1", &Ruling::Deny { reason: "no".into() });
    assert!(matches!(&hear(&mut stream, &result_of("t1", false))[..], [Step::Breach { .. }]));
}

#[test]
fn questions_reach_the_person_and_answers_the_agent() {
    let mut stream = opened();
    let ask = |ticket: &str| {
        json!({"type": "control_request", "request_id": ticket, "request": {
            "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t1",
            "input": {"questions": [{"question": "Which?", "header": "h", "multiSelect": false,
                "options": [{"label": "A", "description": "a"}]}]}}})
    };
    let [Step::Ask { ticket, questions }] = &hear(&mut stream, &ask("u1"))[..] else { panic!() };
    assert_eq!((ticket.as_str(), questions[0].question.as_str()), ("u1", "Which?"));
    let answers = [("Which?".to_owned(), "A".to_owned())].into();
    let answer = sent(&stream.answered("u1", &answers));
    let input = answer.pointer("/response/response/updatedInput").unwrap();
    assert_eq!(input.pointer("/answers/Which?").unwrap(), "A");
    assert_eq!(input.pointer("/questions/0/header").unwrap(), "h");

    // One that is taken back is told, once.
    hear(&mut stream, &ask("u3"));
    let cancel = json!({"type": "control_cancel_request", "request_id": "u3"});
    assert_eq!(hear(&mut stream, &cancel), [Step::Withdraw { ticket: "u3".into() }]);
    assert_eq!(hear(&mut stream, &cancel), []);
    assert_eq!(stream.answered("u3", &answers), []);

    let mut silent = Stream::new(&Order { may_ask: false, ..order("x") }, Unjudged::AnyError);
    assert!(matches!(&hear(&mut silent, &ask("u2"))[..], [Step::Judge { .. }]));
}

#[test]
fn permission_is_answered_by_the_same_judge() {
    let mut stream = opened();
    let request = json!({"type": "control_request", "request_id": "u1", "request": {
        "subtype": "can_use_tool", "tool_name": "Write", "tool_use_id": "t1",
        "input": {"file_path": "/w/.cargo/x", "content": "y"}}});
    assert!(matches!(&hear(&mut stream, &request)[..], [Step::Judge { .. }]));
    let answer = sent(&stream.judged("u1", &Ruling::Allow));
    assert_eq!(answer.pointer("/response/response/behavior").unwrap(), "allow");
    assert_eq!(answer.pointer("/response/response/updatedInput/content").unwrap(), "y");
}

#[test]
fn what_is_not_understood_is_passed_over_or_refused() {
    let mut stream = opened();
    for line in [&b"not json"[..], b"", b"\xff\xfe", b"[]", b"{}", br#"{"type":"new"}"#] {
        assert_eq!(stream.heard(line), []);
    }
    let unknown = json!({"type": "control_request", "request_id": "u1",
        "request": {"subtype": "mcp_message"}});
    let answer = sent(&hear(&mut stream, &unknown));
    assert_eq!(answer.pointer("/response/subtype").unwrap(), "error");
    // A request that was taken back is not answered any more.
    hear(&mut stream, &hook("u2", "t2"));
    hear(&mut stream, &json!({"type": "control_cancel_request", "request_id": "u2"}));
    assert_eq!(stream.judged("u2", &Ruling::Allow), []);
}

#[test]
fn the_run_can_be_interrupted_once() {
    let mut stream = opened();
    let request = sent(&stream.interrupt());
    assert_eq!(request.pointer("/request/subtype").unwrap(), "interrupt");
    assert_eq!(stream.interrupt(), []);
    hear(&mut stream, &json!({"type": "result", "subtype": "error_during_execution"}));
    assert_eq!(stream.account().end, Told::Interrupted);
}

#[test]
fn a_second_result_does_not_replace_the_first() {
    let mut stream = opened();
    let result = |text: &str| json!({"type": "result", "subtype": "success", "result": text});
    assert_eq!(hear(&mut stream, &result("mine")), [Step::Over]);
    assert!(matches!(&hear(&mut stream, &result("forged"))[..], [Step::Breach { .. }]));
    assert_eq!(stream.account().text, "mine");
}
