//! The person's own commands: they are told what happened, and whatever they do
//! the session goes on.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::script::{Script, bash, plan, subject, task};
use crate::stage::{MANY, Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [stop]\n";

/// One task that lands, and one that fails at once.
fn stage(hooks: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script =
        Script::new().works("task-001", &[("src/a.txt", "a\n")]).idles("task-002", 1).passes();
    let limits = "limits: {max_retries: 0}\n";
    Stage::new(&format!("{MANY}{limits}hooks:\n{hooks}"))
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE)
}

/// Each hook, by its event, with what came of it.
fn results(stage: &Stage) -> Vec<(String, Value)> {
    let started = stage.events("hook.started");
    let finished = stage.events("hook.finished");
    let result = |number: &Value| {
        let found = finished.iter().find(|it| it["number"] == *number);
        found.map_or(Value::Null, |it| it["result"].clone())
    };
    let name = |it: &Value| it["occasion"].as_object().unwrap().keys().next().unwrap().clone();
    started.iter().map(|it| (name(it), result(&it["number"]))).collect()
}

fn kept(stage: &Stage, name: &str) -> String {
    fs::read_to_string(stage.session().join("hooks").join(name)).unwrap()
}

fn landed_and_failed(stage: &Stage) {
    assert_eq!(stage.landed(), [subject("task-001")]);
    wait_until("no process is left", || stage.processes().is_empty());
}

#[test]
fn every_hook_is_told_what_it_is_about() {
    let tell =
        "'env | grep ^BLUEFLAME_ | sort; pwd; echo key=$ANTHROPIC_API_KEY$OTHER_KEY home=$HOME'";
    let stage = stage(&format!(
        "  post_plan: {tell}\n  pre_validation: {tell}\n  post_merge: {tell}\n  on_failure: {tell}\n"
    ));
    let another = "accounts: {other: {upstream: openai, credential_env: OTHER_KEY}}, record: true}";
    let config = stage.read("blueflame.yaml").replace("record: true}", another);
    assert!(config.contains(another), "{config}");
    stage.write("blueflame.yaml", &config);
    stage.git(&["commit", "-q", "--amend", "-a", "--no-edit"]);
    let mut command = stage.command(&[
        "run",
        "--task",
        "Do it.",
        "--plan",
        "../plan.yaml",
        "--decisions-file",
        "../decisions.yaml",
    ]);
    command.env("ANTHROPIC_API_KEY", "sk-not-for-hooks").env("OTHER_KEY", "sk-not-either");
    command.env("GIT_INDEX_FILE", "/nowhere");
    assert_eq!(command.output().unwrap().status.code(), Some(1));
    let passed = json!("passed");
    let mut seen = results(&stage);
    assert!(seen.iter().all(|(_, result)| *result == passed), "{seen:?}");
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["landed", "plan_approved", "task_failed", "validation_due"]);

    let id = stage.session_id();
    let repository = stage.repository();
    let repository = repository.display();
    let plan = kept(&stage, "001-post_plan.log");
    for line in [
        "BLUEFLAME_EVENT=post_plan".to_owned(),
        format!("BLUEFLAME_SESSION={id}"),
        format!("BLUEFLAME_REPOSITORY={repository}"),
        "BLUEFLAME_BASE_BRANCH=main".to_owned(),
        "BLUEFLAME_TASKS=task-001 task-002".to_owned(),
        format!("BLUEFLAME_TASKS_FILE={repository}/.blueflame/tasks.yaml"),
        format!("{repository}"),
        // The person's home, and not the key of the model.
        format!("key= home={}", stage.env.path("home").display()),
    ] {
        assert!(plan.lines().any(|it| it == line), "`{line}` is not in:\n{plan}");
    }
    let failed = kept(&stage, "002-on_failure.log");
    for line in [
        "BLUEFLAME_TASK=task-002",
        "BLUEFLAME_ATTEMPT=1",
        "BLUEFLAME_REASON=stopped without changing anything",
    ] {
        assert!(failed.lines().any(|it| it == line), "`{line}` is not in:\n{failed}");
    }
    let before = kept(&stage, "003-pre_validation.log");
    assert!(before.contains("BLUEFLAME_TASKS=task-001\n"), "{before}");
    let landed = kept(&stage, "004-post_merge.log");
    let commit = stage.git(&["rev-parse", "main"]);
    for line in [
        format!("BLUEFLAME_COMMIT={commit}"),
        "BLUEFLAME_CHANGESET=one.c1".to_owned(),
        "BLUEFLAME_PUBLISHED=1".to_owned(),
        "BLUEFLAME_CYCLE=1".to_owned(),
    ] {
        assert!(landed.lines().any(|it| it == line), "`{line}` is not in:\n{landed}");
    }
    landed_and_failed(&stage);
}

#[test]
fn a_hook_that_fails_is_told_and_changes_nothing() {
    let stage = stage("  post_plan: echo no network; exit 3\n  pre_validation: kill -9 $$\n");
    let told = stage.run().exits(1).says("the hook post_plan failed with exit code 3");
    let told = told.says("001-post_plan.log").says("the hook pre_validation was ended by signal 9");
    drop(told);
    assert_eq!(kept(&stage, "001-post_plan.log"), "no network\n");
    assert_eq!(results(&stage)[0].1, json!({"failed": {"reason": "failed with exit code 3"}}));
    landed_and_failed(&stage);
}

#[test]
fn a_hook_that_hangs_is_ended_with_all_that_it_started() {
    let hang = "(setsid sleep 1000 &) ; sleep 1000";
    let stage = stage(&format!("  pre_validation: '{hang}'\n  timeout: 1s\n"));
    stage.run().exits(1).says("took longer than 1 s");
    landed_and_failed(&stage);
}

#[test]
fn a_process_that_a_hook_leaves_behind_is_ended() {
    let leave = "(setsid sleep 1000 >/dev/null 2>&1 </dev/null &) ; echo started";
    let stage = stage(&format!("  post_merge: '{leave}'\n"));
    stage.run().exits(1);
    assert_eq!(results(&stage), [("landed".to_owned(), json!("passed"))]);
    landed_and_failed(&stage);
}

#[test]
fn a_hook_may_print_ten_megabytes() {
    let print = "head -c 10000000 /dev/zero | tr \"\\\\0\" x";
    let stage = stage(&format!("  post_plan: '{print}'\n"));
    stage.run().exits(1);
    assert_eq!(results(&stage), [("plan_approved".to_owned(), json!("passed"))]);
    assert_eq!(kept(&stage, "001-post_plan.log").len(), 10_000_000);
    let journal = fs::metadata(stage.session().join("journal.jsonl")).unwrap().len();
    assert!(journal < 100_000, "the journal has {journal} bytes");
    landed_and_failed(&stage);
}

/// A hook that says that it was run, and then waits.
fn counting(stage: &Stage) -> String {
    let runs = stage.env.path("runs");
    format!("echo run >> {}; sleep 1000", runs.display())
}

fn runs(stage: &Stage) -> usize {
    fs::read_to_string(stage.env.path("runs")).unwrap_or_default().lines().count()
}

/// A stage whose hook before validation never ends by itself.
fn waiting() -> Stage {
    let stage = stage("");
    let hook = counting(&stage);
    let config = stage.read("blueflame.yaml");
    let config = config.replace("hooks:\n", &format!("hooks:\n  pre_validation: '{hook}'\n"));
    stage.with_file("blueflame.yaml", &config)
}

#[test]
fn an_interrupt_ends_a_hook_and_it_is_not_run_again() {
    let stage = waiting();
    let mut running = stage.begin();
    running.wait_for_event("hook.started", 1);
    wait_until("the hook has begun", || runs(&stage) == 1);
    running.signal(Signal::INT);
    running.end().exits(130);
    wait_until("no process is left", || stage.processes().is_empty());
    assert_eq!(results(&stage), [("validation_due".to_owned(), json!("cut_short"))]);

    stage.resume().exits(1);
    assert_eq!(runs(&stage), 1);
    landed_and_failed(&stage);
}

#[test]
fn a_hook_ends_with_a_killed_orchestrator_and_is_not_run_again() {
    let stage = waiting();
    let mut running = stage.begin();
    running.wait_for_event("hook.started", 1);
    wait_until("the hook has begun", || runs(&stage) == 1);
    running.kill();
    wait_until("no process is left", || stage.processes().is_empty());
    assert_eq!(results(&stage), [("validation_due".to_owned(), Value::Null)]);

    stage.resume().exits(1);
    assert_eq!(runs(&stage), 1);
    landed_and_failed(&stage);
    let replay = stage.blueflame(&["replay", &stage.session_id()]);
    assert_eq!(replay.code, Some(0), "{replay}");
}

/// What an agent does is its own affair: no hook of the person's is run by it.
#[test]
fn a_task_that_gets_another_chance_is_no_failure() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let script = Script::new()
        .attempt("task-001", 1, &[bash("git status")])
        .works("task-001", &[("src/a.txt", "a\n")])
        .passes();
    let stage = Stage::new(&format!("{MANY}hooks: {{on_failure: 'exit 1'}}\n"))
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001").len(), 2);
    assert_eq!(results(&stage), []);
    stage.assert_tidy();
}
