//! Sessions that are stopped or killed, and go on.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::script::{Script, bash, commit, plan, subject, task, write};
use crate::stage::{MANY, Running, Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// Waits until a file of the test is there, and then works.
fn waits(task: &str, for_file: &str, files: &[(&str, &str)]) -> Vec<Value> {
    let mut calls = vec![bash(&format!("sh wait.sh {for_file}"))];
    calls.extend(commit(task, files));
    calls
}

/// Three tasks of two groups; the first two workers wait for the file `go`.
fn stage(more: &str) -> Stage {
    let tasks = [
        task("task-001", "one", "src/a.txt"),
        task("task-002", "one", "src/b.txt"),
        task("task-003", "two", "src/c.txt").needs(&["task-001"]),
    ];
    let script = Script::new()
        .attempt("task-001", 1, &waits("task-001", "go", &[("src/a.txt", "a\n")]))
        .attempt("task-002", 1, &waits("task-002", "go", &[("src/b.txt", "b\n")]))
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .works("task-003", &[("src/c.txt", "c\n")])
        .passes();
    Stage::new(&format!("{MANY}{more}")).plan(&plan(&tasks)).script(&script).decisions(APPROVE)
}

fn everything_landed(stage: &Stage) {
    let expected = ["task-001", "task-002", "task-003"].map(subject);
    assert_eq!(stage.landed(), expected);
    stage.assert_tidy();
}

/// Both workers that wait have begun to wait.
fn both_wait(running: &mut Running<'_>) {
    running.wait_for_event("agent.started", 2);
    let asked = || {
        let asked = running.stage.requests();
        ["task-001.a1", "task-002.a1"].iter().all(|name| asked.contains_key(*name))
    };
    wait_until("both workers got an answer", asked);
}

#[test]
fn an_interrupt_saves_the_work_and_resume_lands_everything() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let unfinished = [write("src/a.txt", "half of it\n"), bash("sh wait.sh never")];
    let goes_on =
        [bash(&format!("git add src/a.txt && git commit -q -m '{}'", subject("task-001")))];
    let script = Script::new()
        .attempt("task-001", 1, &unfinished)
        .attempt("task-001", 2, &goes_on)
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let stage = Stage::new(MANY).plan(&plan(&tasks)).script(&script).decisions(APPROVE);
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 2);
    let written = stage.written_in("task-001.a1");
    wait_until("it has written half of it", || written.join("src/a.txt").exists());
    running.signal(Signal::INT);
    running.end().exits(130).says("blueflame resume");
    wait_until("no process is left", || stage.processes().is_empty());
    assert_eq!(stage.outcomes("task-001"), ["killed"]);
    let worker = stage.events("agent.claimed")[0]["agent"].clone();
    let snapshots = stage.events("agent.snapshot");
    assert_eq!(snapshots.iter().filter(|it| it["agent"] == worker).count(), 1);
    assert_eq!(stage.landed(), Vec::<String>::new());

    stage.resume().exits(0);
    // The second attempt writes nothing: it commits what the first one left.
    assert_eq!(stage.read("src/a.txt"), "half of it\n");
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    stage.assert_tidy();
}

#[test]
fn running_agents_are_adopted_after_a_kill_in_development() {
    let stage = stage("");
    let mut running = stage.begin();
    both_wait(&mut running);
    let before = stage.events("agent.started");
    running.kill();

    let mut running = stage.go_on();
    running.wait_for_event("session.resumed", 1);
    stage.signal("go");
    running.end().exits(0);
    // The very same processes were followed to their end.
    let exited = stage.events("agent.exited");
    for agent in &before {
        assert_eq!(exited.iter().filter(|it| it["agent"] == agent["agent"]).count(), 1);
    }
    assert_eq!(stage.events("agent.started")[..2], before[..]);
    assert_eq!(stage.events("agent.lost"), Vec::<Value>::new());
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    everything_landed(&stage);
}

#[test]
fn what_agents_finished_while_nobody_watched_is_collected() {
    let stage = stage("");
    let mut running = stage.begin();
    both_wait(&mut running);
    running.kill();
    stage.signal("go");
    wait_until("the agents are done", || stage.processes().is_empty());

    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    let requests = stage.requests();
    assert_eq!((requests["task-001.a1"], requests["task-002.a1"]), (2, 2));
    everything_landed(&stage);
}

#[test]
fn agents_that_died_with_their_orchestrator_are_replaced() {
    let stage = stage("");
    let mut running = stage.begin();
    both_wait(&mut running);
    let pids = stage.events("agent.started");
    running.kill();
    for pid in &pids {
        let pid = i32::try_from(pid["process"]["pid"].as_i64().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
    // Second attempts do not wait. Commands of the first ones, which nobody
    // waits for any more, must not live on for ever.
    stage.resume().exits(0);
    assert_eq!(stage.events("agent.lost").len(), 2);
    everything_landed(&stage);
}

#[test]
fn an_attempt_process_that_stands_still_is_ended_and_replaced() {
    let stage = stage("limits: {heartbeat_interval: 1s}\n");
    let mut running = stage.begin();
    both_wait(&mut running);
    let first = stage.events("agent.started")[0].clone();
    let pid = i32::try_from(first["process"]["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    running.wait_for_event("agent.lost", 1);
    assert_eq!(stage.events("agent.lost")[0]["agent"], first["agent"]);
    // The other one said nothing either, and is there.
    stage.signal("go");
    running.end().exits(0).says("gave no sign of life");
    assert_eq!(stage.events("agent.lost").len(), 1);
    everything_landed(&stage);
}

/// A session that is killed after each of these events, in one go: each time the
/// next orchestrator gets as far as the next event. On a busy machine one may get
/// further before it is killed; then the next is killed as soon as it began.
fn killed_after(stage: &Stage, events: &[&str]) {
    let mut running = stage.begin();
    let mut seen = 0;
    for event in events {
        let at = |journal: &[Value]| {
            Some(seen + journal.iter().skip(seen).position(|it| it["t"] == *event)?)
        };
        running.wait_for(event, |journal| at(journal).is_some());
        running.kill();
        seen = at(&stage.journal()).unwrap() + 1;
        running = stage.go_on();
    }
    running.end().exits(0);
}

/// What must hold however often an orchestrator died.
fn nothing_ran_twice(stage: &Stage) {
    // Of all agents that asked the model anything, each has its result in the
    // journal, and no work was done by two of them.
    let exited = stage.events("agent.exited");
    let claimed = stage.events("agent.claimed");
    let mut done: Vec<String> = Vec::new();
    for agent in &claimed {
        let ended = exited.iter().find(|it| it["agent"] == agent["agent"]);
        if let Some(ended) = ended {
            assert_eq!(ended["outcome"]["kind"], "finished", "{ended}");
            done.push(agent["work"].to_string());
        }
    }
    let all = done.len();
    done.sort();
    done.dedup();
    assert_eq!(done.len(), all, "some work was done twice: {done:?}");
    assert_eq!(stage.requests().len(), all, "someone worked unseen: {:?}", stage.requests());
}

#[test]
fn an_orchestrator_may_die_at_any_moment_of_development() {
    let stage = stage("");
    stage.signal("go");
    killed_after(
        &stage,
        &[
            "session.started",
            "gate.answered",
            "agent.claimed",
            "agent.started",
            "agent.exited",
            "inspection.started",
            "inspection.finished",
        ],
    );
    nothing_ran_twice(&stage);
    everything_landed(&stage);
}

#[test]
fn an_orchestrator_may_die_at_any_moment_of_validation() {
    let stage = stage("validation: {acceptance: [\"test -e README.md\"]}\n");
    stage.signal("go");
    killed_after(
        &stage,
        &[
            "validation.started",
            "acceptance.started",
            "acceptance.finished",
            "agent.claimed",
            "agent.started",
            "agent.exited",
        ],
    );
    nothing_ran_twice(&stage);
    everything_landed(&stage);
}

#[test]
fn an_orchestrator_may_die_at_any_moment_of_the_merge() {
    let stage = stage("merge: {verify: [\"test -d src\"]}\n");
    stage.signal("go");
    killed_after(
        &stage,
        &[
            "merge.planned",
            "fold.started",
            "fold.finished",
            "verify.started",
            "verify.finished",
            "gate.opened",
            "gate.answered",
            "land.started",
            "land.finished",
            "publish.started",
            "publish.finished",
        ],
    );
    nothing_ran_twice(&stage);
    everything_landed(&stage);
}

#[test]
fn a_merger_is_adopted_too() {
    let tasks =
        [task("task-001", "one", "src/shared.txt"), task("task-002", "two", "src/shared.txt")];
    let merge = json!({"role": "merger", "turn": 0});
    let report = json!({"role": "merger"});
    let calls = waits("task-002", "go", &[("src/shared.txt", "one and two\n")]);
    let script = Script::new()
        .works("task-001", &[("src/shared.txt", "one\n")])
        .works("task-002", &[("src/shared.txt", "two\n")])
        .reply(json!({"when": merge, "call": calls}))
        .reply(json!({"when": report, "output": {"status": "resolved", "notes": "Both.", "issues": []}}))
        .passes();
    let stage = Stage::new(MANY)
        .with_file("src/shared.txt", "none\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    let mut running = stage.begin();
    running.wait_for("a merger", |journal| {
        let merger =
            |it: &&Value| it["d"]["agent"].as_str().is_some_and(|it| it.starts_with("merger"));
        journal.iter().filter(merger).any(|it| it["t"] == "agent.started")
    });
    running.kill();
    let mut running = stage.go_on();
    running.wait_for_event("session.resumed", 1);
    stage.signal("go");
    running.end().exits(0);
    assert_eq!(stage.read("src/shared.txt"), "one and two\n");
    nothing_ran_twice(&stage);
    stage.assert_tidy();
}

#[test]
fn an_interrupt_while_a_check_runs_leaves_nothing_of_it() {
    let stage = stage("merge: {verify: [\"sh wait.sh verified\"]}\n");
    stage.signal("go");
    let mut running = stage.begin();
    running.wait_for_event("verify.started", 1);
    wait_until("the check runs", || stage.processes().iter().any(|line| line.contains("wait.sh")));
    running.signal(Signal::INT);
    running.end().exits(130);
    wait_until("the check is gone", || stage.processes().is_empty());
    assert_eq!(stage.landed(), Vec::<String>::new());

    stage.signal("verified");
    stage.resume().exits(0);
    nothing_ran_twice(&stage);
    everything_landed(&stage);
}

#[test]
fn an_interrupt_while_a_workspace_is_prepared_costs_nothing() {
    let more = "worktree: {prepare: [\"sh wait.sh prepared\"]}\nlimits: {max_retries: 0}\n";
    let stage = stage(more);
    stage.signal("go");
    let mut running = stage.begin();
    running.wait_for_event("agent.claimed", 2);
    let prepares = |line: &String| line.contains("wait.sh");
    wait_until("both are prepared", || stage.processes().into_iter().filter(prepares).count() >= 2);
    running.signal(Signal::INT);
    running.end().exits(130);
    wait_until("nothing runs any more", || stage.processes().is_empty());
    let failed = stage.events("agent.start_failed");
    let faults: Vec<&Value> = failed.iter().map(|it| &it["fault"]).collect();
    assert_eq!(faults, ["stopped", "stopped"]);

    stage.signal("prepared");
    stage.resume().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_session_goes_on_with_the_executor_it_began_with() {
    let stage = stage("");
    // What the file names is not installed here.
    let config = stage.read("blueflame.yaml").replace("default: embedded", "default: claude");
    let stage = stage.with_file("blueflame.yaml", &config);
    stage.run().exits(3);
    let mut arguments = vec!["run", "--executor", "embedded", "--task", "Do it."];
    arguments.extend(["--plan", "../plan.yaml", "--decisions-file", "../decisions.yaml"]);
    let mut running = stage.start(&arguments);
    both_wait(&mut running);
    running.signal(Signal::INT);
    running.end().exits(130);
    stage.signal("go");
    stage.resume().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_second_orchestrator_is_turned_away() {
    let stage = stage("");
    let mut running = stage.begin();
    both_wait(&mut running);
    let told = stage.resume().exits(6).says("another orchestrator holds this repository");
    told.says(&stage.session_id()).says(&format!("{}", running.pid()));
    stage.run().exits(6);
    // Whoever only looks is welcome.
    for command in ["status", "log", "cost", "replay"] {
        stage.blueflame(&[command]).exits(0);
    }
    stage.signal("go");
    running.end().exits(0);
    assert_eq!(stage.sessions().len(), 1);
    everything_landed(&stage);
}

#[test]
fn a_second_interrupt_kills_and_what_is_recorded_is_not_lost() {
    let stage = stage("");
    let mut running = stage.begin();
    both_wait(&mut running);
    running.signal(Signal::INT);
    running.wait_for_event("session.stop_requested", 1);
    running.signal(Signal::INT);
    running.end().exits(130);
    wait_until("everyone is gone", || stage.processes().is_empty());
    stage.resume().exits(0);
    everything_landed(&stage);
}
