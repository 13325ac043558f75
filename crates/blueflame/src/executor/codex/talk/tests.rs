//! What codex says, and what is made of it.

use super::*;
use blueflame_core::money::Budget;

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

fn hear(talk: &mut Talk, event: &Value) -> Vec<Step> {
    talk.heard(event.to_string().as_bytes())
}

fn made(tool: &str, input: Value) -> Made {
    Made { tool: tool.to_owned(), input }
}

fn bash(command: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": command}})
}

fn told(event: &Value) -> hooked::Told<'_> {
    let tool = text(event, "/tool_name").unwrap_or_default();
    hooked::Told { tool, input: &event["tool_input"], cwd: "/w" }
}

#[test]
fn a_command_is_judged_where_the_model_wants_it_run() {
    let place = |input: Value| {
        let calls = wanted(&made("exec_command", input), told(&bash("make"))).unwrap();
        assert_eq!((calls.len(), &calls[0].input), (1, &json!({"command": "make"})));
        calls[0].cwd.clone()
    };
    assert_eq!(place(json!({"cmd": "make"})), "/w");
    assert_eq!(place(json!({"cmd": "make", "workdir": "src"})), "/w/src");
    assert_eq!(place(json!({"cmd": "make", "workdir": "/etc", "shell": "bash"})), "/etc");
}

#[test]
fn what_the_hook_does_not_tell_is_looked_at() {
    for input in [
        json!({"cmd": "rm -rf /"}),
        json!({"cmd": "make", "shell": "/w/evil"}),
        json!({"cmd": "make", "tty": true}),
        json!({"cmd": "make", "login": true}),
        json!("make"),
    ] {
        assert!(
            wanted(&made("exec_command", input.clone()), told(&bash("make"))).is_err(),
            "{input}"
        );
    }
    let patch = |told: &str| json!({"tool_name": "apply_patch", "tool_input": {"command": told}});
    let text = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    let asked = made("apply_patch", json!(text));
    assert_eq!(wanted(&asked, told(&patch(text))).unwrap()[0].tool, "Write");
    assert!(wanted(&asked, told(&patch("other"))).is_err());
    // A patch within a command is no patch to the policy.
    let inside = wanted(&made("exec_command", json!({"cmd": text})), told(&patch(text))).unwrap();
    assert_eq!(inside[0].tool, "exec_command");
}

#[test]
fn a_hook_that_asks_about_nothing_is_denied() {
    let mut talk = talk(None);
    for event in [
        json!({"hook_event_name": "PreToolUse", "tool_use_id": "forged", "tool_name": "Bash"}),
        json!({"hook_event_name": "PreToolUse"}),
        json!({"hook_event_name": "PermissionRequest"}),
        json!({}),
        json!(7),
    ] {
        let steps = talk.hooked("t", &event);
        let denied = matches!(&steps[..], [Step::Rule { ruling: Ruling::Deny { .. }, .. }]);
        assert!(denied, "{event}: {steps:?}");
    }
}

#[test]
fn more_calls_than_were_allowed_are_a_breach() {
    let mut talk = talk(None);
    talk.allowed = 1;
    let began = json!({"type": "item.started", "item": {"type": "command_execution"}});
    assert!(matches!(hear(&mut talk, &began)[..], [Step::Show(_)]));
    assert!(talk.is_at_work());
    hear(&mut talk, &json!({"type": "item.completed", "item": {"type": "command_execution"}}));
    assert!(!talk.is_at_work());
    assert!(matches!(hear(&mut talk, &began)[..], [Step::Breach { .. }]));
}

#[test]
fn the_end_is_told_with_its_figures() {
    let mut talk = talk(None);
    hear(
        &mut talk,
        &json!({"type": "item.completed", "item": {"type": "agent_message", "text": "Hi"}}),
    );
    let usage = json!({"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7});
    let steps = hear(&mut talk, &json!({"type": "turn.completed", "usage": usage}));
    assert_eq!(steps, [Step::Over]);
    let account = talk.account();
    let usage = Usage { input: 40, output: 7, cache_read: 60, cache_write: 0 };
    assert_eq!(
        (account.end, account.text.as_str(), account.usage),
        (Told::Finished, "Hi", Some(usage))
    );
}

#[test]
fn failures_have_their_status() {
    for (message, end) in [
        ("unexpected status 401 Unauthorized: bad key, url: x", Some(401)),
        ("exceeded retry limit, last status: 429 Too Many Requests", Some(429)),
        ("stream disconnected before completion: x", None),
    ] {
        let mut talk = talk(None);
        hear(&mut talk, &json!({"type": "turn.failed", "error": {"message": message}}));
        let expected = Told::Api { status: end, message: message.to_owned() };
        assert_eq!(talk.account().end, expected);
    }
    let mut talk = talk(None);
    hear(&mut talk, &json!({"type": "turn.failed", "error": {"message": "odd"}}));
    assert_eq!(talk.account().end, Told::Failed { message: "odd".to_owned() });
}

#[test]
fn output_has_to_fit_its_schema() {
    let schema = json!({"type": "object", "required": ["ok"]});
    for (said, end, output) in [
        (r#"{"ok":1}"#, Told::Finished, Some(json!({"ok": 1}))),
        ("```json\n{\"ok\":1}\n```", Told::Finished, Some(json!({"ok": 1}))),
        (r#"{"no":1}"#, Told::BadOutput, None),
        ("I am done.", Told::Finished, None),
        ("[1]", Told::Finished, None),
    ] {
        let mut talk = talk(Some(schema.clone()));
        talk.text = said.to_owned();
        hear(&mut talk, &json!({"type": "turn.completed"}));
        let account = talk.account();
        assert_eq!((account.end, account.output), (end, output), "{said}");
    }
}
