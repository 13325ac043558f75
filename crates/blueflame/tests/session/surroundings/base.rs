//! The base branch is deleted, renamed or rewritten, and the repository moves.

use std::fs;

use rustix::process::Signal;

use super::{both_wait, everything_landed, waiting};
use crate::script::subject;
use crate::stage::{Stage, wait_until};

/// A session that was stopped while both workers were at work.
fn stopped() -> Stage {
    let stage = waiting("");
    let mut running = stage.begin();
    both_wait(&mut running);
    running.signal(Signal::INT);
    running.end().exits(130);
    stage.signal("go");
    stage
}

#[test]
fn a_base_that_is_deleted_meanwhile_stops_the_session_until_it_is_back() {
    let stage = waiting("");
    let mut running = stage.begin();
    both_wait(&mut running);
    stage.git(&["checkout", "-q", "--detach"]);
    stage.git(&["branch", "-q", "-D", "main"]);
    stage.signal("go");
    let told = running.end().exits(3).says("the base branch `main` does not exist");
    told.says("once that is put right, `blueflame resume ");
    stage.git(&["branch", "main"]);
    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    everything_landed(&stage);
}

#[test]
fn a_base_that_is_gone_before_anyone_starts_costs_no_task_a_retry() {
    let stage = waiting("limits: {max_retries: 0}\n");
    stage.decide("plan: []\n");
    stage.run().exits(4);
    let moved_away = stage.git(&["rev-parse", "main"]);
    stage.decide(super::APPROVE);
    let mut running = stage.go_on();
    running.wait_for_event("session.resumed", 1);
    // However early this comes, nobody is to blame for it.
    stage.git(&["checkout", "-q", "--detach"]);
    stage.git(&["branch", "-q", "-D", "main"]);
    stage.signal("go");
    running.end().exits(3).says("`main` does not exist");
    stage.git(&["branch", "main", &moved_away]);
    stage.resume().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_base_that_is_renamed_while_nobody_runs_is_named_with_what_there_is() {
    let stage = stopped();
    stage.git(&["branch", "-m", "main", "trunk"]);
    stage.resume().exits(2).says("the repository has `trunk`");
    stage.git(&["branch", "-m", "trunk", "main"]);
    stage.resume().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_base_that_is_rewritten_is_followed() {
    let during = waiting("");
    let mut running = during.begin();
    both_wait(&mut running);
    during.git(&["commit", "-q", "--amend", "-m", "chore: said better"]);
    during.signal("go");
    running.end().exits(0);
    everything_landed(&during);

    let between = stopped();
    between.git(&["commit", "-q", "--amend", "-m", "chore: said better"]);
    between.resume().exits(0);
    everything_landed(&between);
    for stage in [during, between] {
        let first = stage.git(&["log", "--reverse", "--format=%s", "main"]);
        assert!(first.starts_with("chore: said better\n"), "{first}");
    }
}

/// Takes the repository elsewhere; the stage finds it again by a link.
fn move_it(stage: &Stage) {
    let elsewhere = stage.env.path("elsewhere");
    fs::rename(stage.repository(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, stage.repository()).unwrap();
}

#[test]
fn a_repository_may_move_between_the_stop_and_the_resume() {
    let stage = stopped();
    move_it(&stage);
    stage.resume().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_repository_may_move_away_from_under_agents_that_nobody_watches() {
    let stage = waiting("limits: {max_retries: 0}\n");
    let mut running = stage.begin();
    both_wait(&mut running);
    running.kill();
    move_it(&stage);
    stage.signal("go");
    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["killed", "finished"]);
    assert_eq!(stage.landed(), ["task-001", "task-002"].map(subject));
    wait_until("no process is left", || stage.processes().is_empty());
}
