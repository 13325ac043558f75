//! The example of docs/executors.md, an agent program of the person's own; as it is
//! and with parts of its duty left out.

use std::fs;
use std::path::PathBuf;

use blueflame::attempt::sealed::Ending;
use blueflame::search_path;
use blueflame_core::config::{CustomExecutor, Dialect};
use blueflame_core::money::{Budget, Usage};
use blueflame_core::outcome::Outcome;
use serde_json::json;

use crate::install;
use crate::stage::{BLUEFLAME, Stage};

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/custom-agent.mjs")
}

/// The example with one text in the place of another; `None` without node.
fn altered(from: &str, to: &str) -> Option<Stage> {
    written(Dialect::Plain, &[(from, to)])
}

/// The example with some texts in the places of others.
fn written(dialect: Dialect, changes: &[(&str, &str)]) -> Option<Stage> {
    if search_path::find("node", &std::env::var_os("PATH").unwrap()).is_none() {
        let required = std::env::var_os("BLUEFLAME_REQUIRE_AGENTS").is_some();
        assert!(!required, "node is missing");
        install::say("SKIPPED an example agent: there is no node\n");
        return None;
    }
    let mut text = fs::read_to_string(example()).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let program = tempfile::tempdir().unwrap().keep().join("agent.mjs");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::metadata(example()).unwrap().permissions()).unwrap();
    let command = vec![program.display().to_string()];
    let custom = CustomExecutor { command, dialect };
    Some(Stage::with_program("mine", &program).with(|spec| spec.custom = Some(custom)))
}

fn unchanged() -> Option<Stage> {
    altered("", "")
}

const WRITES: &str = "
replies:
  - when: {role: worker, turn: 0}
    call: [{tool: Write, input: {file_path: hello.txt, content: hello}}]
  - when: {turn: 1}
    call: [{tool: Bash, input: {command: \"git add hello.txt && git commit -q -m 'feat(task-001): greet'\"}}]
  - say: All done.
";

#[test]
fn the_example_works_and_commits() {
    let Some(stage) = unchanged() else { return };
    let run = stage.script(WRITES).run();
    let Ending::Stopped { text, .. } = &run.sealed.ending else { panic!("{}", run.story()) };
    assert_eq!(text, "All done.");
    assert_eq!(run.git(&["log", "-1", "--format=%s %an"]), "feat(task-001): greet Ada");
    assert_eq!((run.sealed.calls, run.sealed.denied), (2, 0), "{}", run.story());
    assert!(run.sealed.spend.usage.total() > 0);
    let told = run.told(0);
    assert!(told.contains("You work on a small project.") && told.contains("Do the task."));
}

#[test]
fn a_denied_call_is_explained() {
    let Some(stage) = unchanged() else { return };
    let script = "
replies:
  - when: {turn: 0}
    call: [{tool: Write, input: {file_path: forbidden.md, content: x}}]
  - when: {contains: paths.}
    say: Then I will not.
";
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!((run.sealed.calls, run.sealed.denied), (1, 1));
    assert_eq!(run.file("forbidden.md"), None);
}

#[test]
fn its_last_message_is_the_structured_output() {
    for (script, end) in [
        ("replies: [{output: {status: pass}}]", "stopped"),
        ("replies: [{output: {status: maybe}}]", "malformed"),
        ("replies: [{say: It is fine.}]", "malformed"),
    ] {
        let Some(stage) = unchanged() else { return };
        let schema = json!({
            "type": "object",
            "properties": {"status": {"enum": ["pass", "fail"]}},
            "required": ["status"],
        });
        let run = stage.with(|spec| spec.order.output_schema = Some(schema)).script(script).run();
        assert_eq!(run.end(), end, "{}", run.story());
        let expected = json!({"status": "pass"});
        assert_eq!(run.output(), (end == "stopped").then_some(&expected));
    }
}

#[test]
fn a_budget_stops_it() {
    let Some(stage) = unchanged() else { return };
    let script = "
replies:
  - call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
";
    let run = stage.script(script).with(|spec| spec.limits.cap = Budget::Tokens(2_500)).run();
    assert_eq!(run.end(), "budget", "{}", run.story());
    assert_eq!(run.sealed.spend.usage.total(), 3_000);
}

#[test]
fn one_that_fails_says_why() {
    let Some(stage) = unchanged() else { return };
    let run = stage.script("replies: [{fail: {status: 400, message: no}}]").run();
    let Ending::Failed(Outcome::Crashed { detail }) = &run.sealed.ending else {
        panic!("{}", run.story())
    };
    assert!(detail.contains("the model answered 400"), "{detail}");
}

#[test]
fn one_that_never_asks_is_not_answered() {
    let broken = "const broken = objection({ hook_event_name: \"SessionStart\" });";
    let Some(stage) = altered(broken, "const broken = undefined;") else { return };
    let run = stage.script(WRITES).run();
    run.was_never_armed();
    assert_eq!(run.file("hello.txt"), None);
}

#[test]
fn one_that_asks_only_once_is_caught() {
    let Some(stage) = altered("const objected = objection({", "const objected = void ({") else {
        return;
    };
    stage.script(WRITES).run().was_caught();
}

#[test]
fn one_that_does_not_obey_is_caught() {
    let obeys = "if (objected !== undefined) return";
    let Some(stage) = altered(obeys, "if (false) return") else { return };
    let script = "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: \"echo x > forbidden.md\"}}]
  - say: Done.
";
    stage.script(script).run().was_caught();
}

#[test]
fn the_token_is_not_for_its_commands() {
    let Some(stage) = unchanged() else { return };
    let stage = stage.with(|spec| spec.policy.allowed_commands.push("sh show.sh".into()));
    fs::write(stage.workspace.join("show.sh"), "env | grep ^BLUEFLAME_ | cut -d= -f1 | sort")
        .unwrap();
    let script = "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: sh show.sh}}]
  - say: Done.
";
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let told = run.last_message();
    assert!(told.contains("BLUEFLAME_HOOK") && !told.contains("BLUEFLAME_TOKEN"), "{told}");
}

/// What the example has to say instead, in the words of codex: what it begins to do,
/// its last message, and that it is done.
const LIKE_CODEX: [(&str, &str); 3] = [
    ("const text = ", "const say = (it) => process.stdout.write(JSON.stringify(it) + '\\n');\nconst text = "),
    (
        "  if (call.name === \"Write\")",
        "  say({type: 'item.started', item: {type: 'command_execution'}});\n  if (call.name === \"Write\")",
    ),
    (
        "process.stdout.write(content);",
        "say({type: 'item.completed', item: {type: 'agent_message', text: content}});
         say({type: 'turn.completed', usage: {input_tokens: 9, cached_input_tokens: 4, output_tokens: 2}});",
    ),
];

/// The same in the words of opencode.
const LIKE_OPENCODE: [(&str, &str); 3] = [
    LIKE_CODEX[0],
    (
        "content: use(call) });",
        "content: use(call) });
         say({type: 'tool_use', part: {tool: call.name, callID: call.id, state: {status: 'completed'}}});",
    ),
    (
        "process.stdout.write(content);",
        "say({type: 'text', part: {text: content}});
         say({type: 'step_finish', part: {reason: 'stop', tokens: {input: 5, output: 2, cache: {read: 4}}}});",
    ),
];

#[test]
fn it_may_tell_of_its_run_as_codex_and_opencode_do() {
    for (dialect, changes) in
        [(Dialect::CodexJson, LIKE_CODEX), (Dialect::OpencodeJson, LIKE_OPENCODE)]
    {
        let Some(stage) = written(dialect, &changes) else { return };
        let run = stage.script(WRITES).run();
        let Ending::Stopped { text, .. } = &run.sealed.ending else { panic!("{}", run.story()) };
        assert_eq!(text, "All done.");
        assert_eq!(run.git(&["log", "-1", "--format=%s"]), "feat(task-001): greet");
        let own = Usage { input: 5, output: 2, cache_read: 4, cache_write: 0 };
        assert_eq!(run.sealed.own_usage, Some(own), "{}", run.story());
        assert_eq!((run.sealed.calls, run.sealed.denied), (2, 0), "{}", run.story());

        // The last message is the structured output here, too.
        let Some(stage) = written(dialect, &changes) else { return };
        let stage = stage.with(|spec| spec.order.output_schema = Some(json!({"type": "object"})));
        let run = stage.script("replies: [{output: {status: pass}}]").run();
        assert_eq!(run.output(), Some(&json!({"status": "pass"})), "{}", run.story());
    }
}

/// Whichever words it uses, a call that nobody judged ends it.
#[test]
fn other_words_do_not_excuse_a_call_that_nobody_judged() {
    let careless = ("const objected = objection({", "const objected = void ({");
    for (dialect, changes) in
        [(Dialect::CodexJson, LIKE_CODEX), (Dialect::OpencodeJson, LIKE_OPENCODE)]
    {
        let changes: Vec<(&str, &str)> = changes.into_iter().chain([careless]).collect();
        let Some(stage) = written(dialect, &changes) else { return };
        stage.script(WRITES).run().was_caught();
    }
}

/// The embedded agent in the place of somebody's own that speaks as claude does.
fn like_claude() -> Stage {
    let directory = tempfile::tempdir().unwrap().keep();
    let program = directory.join("mine");
    let text = format!(
        "#!/bin/sh\nexport ANTHROPIC_BASE_URL=\"${{BLUEFLAME_GATEWAY%/v1}}\"\n\
         export ANTHROPIC_AUTH_TOKEN=\"$BLUEFLAME_TOKEN\"\n\
         exec '{BLUEFLAME}' __agent --model \"$BLUEFLAME_MODEL\" --tools \"$BLUEFLAME_TOOLS\" \
         --system-prompt-file \"$BLUEFLAME_SYSTEM\"\n"
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::metadata(example()).unwrap().permissions()).unwrap();
    let command = vec![program.display().to_string()];
    let custom = CustomExecutor { command, dialect: Dialect::ClaudeStream };
    Stage::with_program("mine", &program).with(|spec| {
        spec.custom = Some(custom);
        spec.sandbox.read.push(BLUEFLAME.into());
    })
}

#[test]
fn it_may_have_its_calls_judged_as_claude_does() {
    let run = like_claude().script(WRITES).run();
    let Ending::Stopped { text, .. } = &run.sealed.ending else { panic!("{}", run.story()) };
    assert_eq!(text, "All done.");
    assert_eq!((run.sealed.calls, run.sealed.denied), (2, 0), "{}", run.story());
    assert_eq!(Some(run.sealed.spend.usage), run.sealed.own_usage);

    let forbidden = "
replies:
  - when: {turn: 0}
    call: [{tool: Write, input: {file_path: forbidden.md, content: x}}]
  - say: Then I will not.
";
    let run = like_claude().script(forbidden).run();
    assert_eq!((run.sealed.calls, run.sealed.denied), (1, 1), "{}", run.story());
    assert_eq!(run.file("forbidden.md"), None);

    let schema = json!({"type": "object", "required": ["status"]});
    for (said, end) in [("'{\"status\": 1}'", "stopped"), ("'{}'", "malformed")] {
        let schema = schema.clone();
        let stage = like_claude().with(|spec| spec.order.output_schema = Some(schema));
        let run = stage.script(&format!("replies: [{{say: {said}}}]")).run();
        assert_eq!(run.end(), end, "{}", run.story());
    }
}
