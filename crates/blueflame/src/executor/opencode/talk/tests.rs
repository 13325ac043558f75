//! What opencode says, and what is made of it.

use blueflame_core::money::Budget;
use serde_json::json;

use super::*;

fn talk(schema: Option<Value>) -> Talk {
    Talk::new(&Order {
        model: "m".into(),
        system: String::new(),
        prompt: "do it".into(),
        tools: Vec::new(),
        output_schema: schema,
        max_turns: None,
        budget: Budget::Unlimited,
        may_ask: false,
        skills: Vec::new(),
    })
}

fn hear(talk: &mut Talk, kind: &str, part: &Value) -> Vec<Step> {
    let event = json!({"type": kind, "timestamp": 1, "sessionID": "s", "part": part});
    talk.heard(event.to_string().as_bytes())
}

fn error(talk: &mut Talk, error: &Value) {
    let event = json!({"type": "error", "timestamp": 1, "sessionID": "s", "error": error});
    assert_eq!(talk.heard(event.to_string().as_bytes()), []);
}

fn step(talk: &mut Talk, reason: &str) {
    hear(talk, "step_start", &json!({}));
    let tokens = json!({"total": 121, "input": 70, "output": 15, "reasoning": 5,
                        "cache": {"read": 30, "write": 1}});
    hear(talk, "step_finish", &json!({"reason": reason, "tokens": tokens}));
}

#[test]
fn a_run_is_over_when_it_leaves_well_after_a_last_answer() {
    let mut talk = talk(None);
    step(&mut talk, "tool-calls");
    hear(&mut talk, "text", &json!({"text": "Done."}));
    step(&mut talk, "stop");
    assert_eq!(talk.account().end, Told::Nothing);
    talk.left(Some(0));
    let account = talk.account();
    assert_eq!((account.end, account.text.as_str()), (Told::Finished, "Done."));
    let usage = Usage { input: 140, output: 40, cache_read: 60, cache_write: 2 };
    assert_eq!(account.usage, Some(usage));
}

#[test]
fn other_ends_are_no_success() {
    let after = |reason: &str, code| {
        let mut talk = talk(None);
        if !reason.is_empty() {
            step(&mut talk, reason);
        }
        talk.left(code);
        talk.account().end
    };
    assert_eq!(after("stop", Some(1)), Told::Nothing);
    assert_eq!(after("stop", None), Told::Nothing);
    assert_eq!(after("", Some(0)), Told::Nothing);
    for reason in ["length", "unknown", "tool-calls"] {
        assert!(matches!(after(reason, Some(0)), Told::Failed { .. }), "{reason}");
    }
}

#[test]
fn errors_are_told_with_their_status_and_forgotten_when_it_goes_on() {
    let mut talk = talk(None);
    error(&mut talk, &json!({"name": "APIError", "data": {"message": "m", "statusCode": 529}}));
    let api = |status| Told::Api { status, message: "m".to_owned() };
    assert_eq!(talk.account().end, api(Some(529)));
    error(&mut talk, &json!({"name": "APIError", "data": {"message": "m"}}));
    assert_eq!(talk.account().end, api(None));
    error(&mut talk, &json!({"name": "ContextOverflowError"}));
    let message = "ContextOverflowError".to_owned();
    assert_eq!(talk.account().end, Told::Failed { message });
    talk.left(Some(0));
    assert!(matches!(talk.account().end, Told::Failed { .. }));
    step(&mut talk, "stop");
    talk.left(Some(0));
    assert_eq!(talk.account().end, Told::Finished);
}

#[test]
fn a_call_that_was_made_and_not_allowed_is_a_breach() {
    let used = |status: &str| json!({"tool": "bash", "callID": "c", "state": {"status": status}});
    let mut talk = talk(None);
    let shown = Step::Show(Sight::Used { tool: "bash".to_owned() });
    assert_eq!(hear(&mut talk, "tool_use", &used("error")), std::slice::from_ref(&shown));
    let steps = hear(&mut talk, "tool_use", &used("completed"));
    assert!(matches!(&steps[..], [Step::Breach { .. }]), "{steps:?}");
    talk.allowed.insert("c".to_owned());
    talk.at_work.insert("c".to_owned());
    assert!(talk.is_at_work());
    assert_eq!(hear(&mut talk, "tool_use", &used("completed")), [shown]);
    assert!(!talk.is_at_work());
}

#[test]
fn words_that_a_command_can_print_excuse_no_call_that_could_be_made() {
    let said = "Model tried to call unavailable tool 'invalid'. Available tools: bash.";
    let made = |tool: &str, input| Made { tool: tool.to_owned(), input };
    assert!(not_made(Some(&made("frob", json!({}))), said));
    assert!(not_made(Some(&made("read", json!("{broken"))), said));
    assert!(!not_made(Some(&made("frob", json!({}))), "frobbed"));
    assert!(!not_made(Some(&made("Bash", json!({"command": "printf x"}))), said));
    assert!(!not_made(None, said));
}

#[test]
fn the_last_message_is_the_structured_output_if_it_fits() {
    let schema = json!({"type": "object", "required": ["status"]});
    for (said, end, output) in [
        ("```json\n{\"status\": 1}\n```", Told::Finished, Some(json!({"status": 1}))),
        ("{\"other\": 1}", Told::BadOutput, None),
        ("It is fine.", Told::Finished, None),
    ] {
        let mut talk = talk(Some(schema.clone()));
        hear(&mut talk, "text", &json!({"text": said}));
        step(&mut talk, "stop");
        talk.left(Some(0));
        let account = talk.account();
        assert_eq!((account.end, account.output), (end, output), "{said}");
    }
}

#[test]
fn a_hook_that_asks_about_nothing_is_denied() {
    let mut talk = talk(None);
    for event in [
        json!({"hook_event_name": "PreToolUse", "tool_use_id": "forged", "tool_name": "bash"}),
        json!({"hook_event_name": "Stop"}),
        json!(7),
    ] {
        let steps = talk.hooked("t", &event);
        let denied = matches!(&steps[..], [Step::Rule { ruling: Ruling::Deny { .. }, .. }]);
        assert!(denied, "{event}: {steps:?}");
    }
}
