//! What an orchestrator that was killed left at work, when another session begins
//! instead of going on with its own.

use crate::script::{Script, bash, commit, plan, subject, task};
use crate::stage::{MANY, Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// Two tasks whose first attempts wait for `go`; none may fail even once.
fn stage() -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let mut script = Script::new();
    for (id, file) in [("task-001", "src/a.txt"), ("task-002", "src/b.txt")] {
        let mut calls = vec![bash("sh wait.sh go")];
        calls.extend(commit(id, &[(file, "x\n")]));
        script = script.attempt(id, 1, &calls).works(id, &[(file, "x\n")]);
    }
    Stage::new(&format!("{MANY}limits: {{max_retries: 0}}\n"))
        .plan(&plan(&tasks))
        .script(&script.passes())
        .decisions(APPROVE)
}

#[test]
fn agents_of_a_session_that_was_left_are_stopped_by_the_next_one_and_lose_nothing() {
    let stage = stage();
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 2);
    let waiting = || stage.processes().iter().filter(|line| line.contains("wait.sh")).count() == 2;
    wait_until("both wait", waiting);
    running.kill();
    let first = stage.session_id();

    stage.decide("plan: []\n");
    let note = format!("2 agents of session {first} worked on without an orchestrator");
    stage.run().exits(4).says(&note).says("2 workspaces of earlier sessions left");
    wait_until("no process is left", || stage.processes().is_empty());

    stage.decide(APPROVE);
    stage.signal("go");
    let resume = ["resume", &first, "--decisions-file", "../decisions.yaml"];
    let told = stage.blueflame(&resume).exits(0);
    assert!(!told.stderr.contains("worked on without"), "{told}");
    assert_eq!(stage.landed(), ["task-001", "task-002"].map(subject));
    // The other session can still go on.
    assert_eq!(stage.sessions().len(), 2);
    assert!(stage.workspaces().is_empty());
}
