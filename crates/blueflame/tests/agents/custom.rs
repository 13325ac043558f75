//! The example of docs/executors.md, an agent program of the person's own; as it is
//! and with parts of its duty left out.

use std::fs;
use std::path::PathBuf;

use blueflame::attempt::sealed::Ending;
use blueflame::executor::find;
use blueflame_core::config::{CustomExecutor, Dialect};
use blueflame_core::money::Budget;
use blueflame_core::outcome::Outcome;
use serde_json::json;

use crate::install;
use crate::stage::Stage;

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/custom-agent.mjs")
}

/// The example with one text in the place of another; `None` without node.
fn altered(from: &str, to: &str) -> Option<Stage> {
    if find::in_path("node", &std::env::var_os("PATH").unwrap()).is_none() {
        let required = std::env::var_os("BLUEFLAME_REQUIRE_AGENTS").is_some();
        assert!(!required, "node is missing");
        install::say("SKIPPED an example agent: there is no node\n");
        return None;
    }
    let text = fs::read_to_string(example()).unwrap();
    assert!(text.contains(from), "{from}");
    let program = tempfile::tempdir().unwrap().keep().join("agent.mjs");
    fs::write(&program, text.replace(from, to)).unwrap();
    fs::set_permissions(&program, fs::metadata(example()).unwrap().permissions()).unwrap();
    let command = vec![program.display().to_string()];
    let custom = CustomExecutor { command, dialect: Dialect::Plain };
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
