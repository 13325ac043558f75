//! Work that a validator turns down, and validators that fail themselves.

use serde_json::{Value, json};

use crate::script::{Script, plan, subject, task};
use crate::stage::{MANY, Stage};

fn stage(script: Script, decisions: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = script
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    Stage::new(MANY).plan(&plan(&tasks)).script(&script).decisions(&format!(
        "plan: [approve]\nchangesets: {{'*': approve}}\nsession: [continue, continue]\n{decisions}"
    ))
}

/// What the worker of an attempt was told.
fn prompt(stage: &Stage, attempt: &str) -> String {
    let path = stage.session().join("attempts").join(attempt).join("spec.json");
    let spec: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    spec["order"]["prompt"].as_str().unwrap().to_owned()
}

#[test]
fn work_that_is_turned_down_is_done_again_with_notes() {
    let script = Script::new().turns_down("task-001", 1, "The letter is missing.");
    let stage = stage(script, "validation_failed: [{requeue: \"use the small letter\"}]\n");
    stage.run().exits(0);
    let told = prompt(&stage, "task-001.a2");
    assert!(told.contains("The letter is missing."), "{told}");
    assert!(told.contains("use the small letter"), "{told}");
    // The other one lands in the first cycle and is not touched again.
    assert_eq!(stage.landed(), [subject("task-002"), subject("task-001")]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn a_task_that_is_turned_down_can_be_edited() {
    let script = Script::new().turns_down("task-001", 1, "It belongs elsewhere.").attempt(
        "task-001",
        2,
        &crate::script::commit("task-001", &[("src/other.txt", "a\n")]),
    );
    let edit = "validation_failed: [{edit: {description: \"Write src/other.txt instead.\", \
                file_locks: [src/other.txt]}}]\n";
    let stage = stage(script, edit);
    stage.run().exits(0);
    assert!(prompt(&stage, "task-001.a2").contains("Write src/other.txt instead."));
    assert_eq!(stage.read("src/other.txt"), "a\n");
    assert!(!stage.repository().join("src/a.txt").exists());
    stage.assert_tidy();
}

#[test]
fn a_task_that_is_dropped_does_not_land() {
    let script = Script::new().turns_down("task-001", 1, "Not wanted.");
    let stage = stage(script, "validation_failed: [drop]\n");
    stage.run().exits(1);
    assert_eq!(stage.landed(), [subject("task-002")]);
}

/// A validator whose answer has no verdict in it.
fn malformed(script: Script) -> Script {
    let when = json!({"role": "validator", "task": "task-001"});
    script.reply(json!({"when": when, "say": "It looks fine to me."}))
}

#[test]
fn a_person_may_pass_what_no_validator_can_judge() {
    let stage = stage(malformed(Script::new()), "validator_failed: [manual-pass]\n");
    stage.run().exits(0);
    let gates = stage.gates();
    assert_eq!(gates.iter().filter(|it| *it == "validator_failed:task-001").count(), 1);
    assert_eq!(validators(&stage), 2);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    stage.assert_tidy();
}

#[test]
fn or_count_it_as_failed() {
    let stage = stage(malformed(Script::new()), "validator_failed: [skip]\n");
    stage.run().exits(1);
    assert_eq!(stage.landed(), [subject("task-002")]);
}

#[test]
fn or_let_others_try_again() {
    let stage = stage(malformed(Script::new()), "validator_failed: [retry, manual-pass]\n");
    stage.run().exits(0);
    assert_eq!(validators(&stage), 4);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    stage.assert_tidy();
}

/// How many validators looked at the first task.
fn validators(stage: &Stage) -> usize {
    let claimed = stage.events("agent.claimed");
    claimed.iter().filter(|it| it["work"]["validate"]["task"] == "task-001").count()
}

#[test]
fn work_that_fails_its_acceptance_is_done_again_with_the_output() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let bad = crate::script::commit("task-001", &[("src/a.txt", "bad\n")]);
    let script = Script::new()
        .attempt("task-001", 1, &bad)
        .works("task-001", &[("src/a.txt", "good\n")])
        .passes();
    let stage = Stage::new(&format!("{MANY}validation: {{acceptance: [\"sh check.sh\"]}}\n"))
        .with_file("check.sh", "grep good src/a.txt || { echo it is not good; exit 1; }\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n");
    stage.run().exits(0);
    let told = prompt(&stage, "task-001.a2");
    assert!(told.contains("it is not good"), "{told}");
    // No validator was paid to say the same.
    assert_eq!(validators(&stage), 1);
    assert_eq!(stage.read("src/a.txt"), "good\n");
    stage.assert_tidy();
}
