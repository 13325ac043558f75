//! Surroundings that sessions do not choose: every kind of repository, disks that
//! fill up, machines that fall asleep, shells that give little. Either it just
//! works, or it is refused in words that say what to do, with nothing lost.

mod asleep;
mod base;
mod clock;
mod directories;
mod disk;
mod machine;
mod repositories;
mod terminals;

use serde_json::Value;

use crate::script::{Script, bash, commit, plan, subject, task};
use crate::stage::{MANY, Running, Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// Two tasks of two groups that are done at once.
fn stage() -> Stage {
    with(Script::new(), "")
}

/// The same, and the first attempt at each waits for the file `go`.
fn waiting(more: &str) -> Stage {
    let waits = |task: &str, file: (&str, &str)| -> Vec<Value> {
        let mut calls = vec![bash("sh wait.sh go")];
        calls.extend(commit(task, &[file]));
        calls
    };
    let script = Script::new()
        .attempt("task-001", 1, &waits("task-001", ("src/a.txt", "a\n")))
        .attempt("task-002", 1, &waits("task-002", ("src/b.txt", "b\n")));
    with(script, more)
}

fn with(script: Script, more: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = script
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    Stage::new(&format!("{MANY}{more}")).plan(&plan(&tasks)).script(&script).decisions(APPROVE)
}

/// Both workers wait for `go`.
fn both_wait(running: &mut Running<'_>) {
    running.wait_for_event("agent.started", 2);
    let asked = || {
        let asked = running.stage.requests();
        ["task-001.a1", "task-002.a1"].iter().all(|name| asked.contains_key(*name))
    };
    wait_until("both workers got an answer", asked);
}

/// Both tasks are the last two commits of the base branch, and nothing is left.
#[track_caller]
fn everything_landed(stage: &Stage) {
    let landed = stage.landed();
    let last_two = &landed[landed.len().saturating_sub(2)..];
    assert_eq!(last_two, ["task-001", "task-002"].map(subject));
    stage.assert_tidy();
}

/// The wrapper that runs a command after these lines of a shell, in a mount
/// namespace of its own, where everything may be mounted.
fn in_a_namespace(lines: &str) -> Vec<String> {
    let script = format!("set -e\n{lines}\nexec \"$@\"\n");
    ["unshare", "-rm", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
}
