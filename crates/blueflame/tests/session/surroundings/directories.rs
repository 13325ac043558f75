//! Directories that may not be written, and workspaces that vanish.

use std::fs;

use serde_json::Value;

use super::{both_wait, everything_landed, in_a_namespace, stage, waiting};
use crate::script::{Script, subject};
use crate::stage::{RESUME, Stage};

/// The wrapper in which a directory of the repository is read-only.
fn read_only(stage: &Stage, directory: &str) -> Vec<String> {
    let path = stage.repository().join(directory);
    fs::create_dir_all(&path).unwrap();
    let path = path.display();
    in_a_namespace(&format!(
        "mount --bind '{path}' '{path}'\nmount -o remount,ro,bind '{path}' '{path}'"
    ))
}

#[test]
fn where_sessions_cannot_be_kept_none_begins() {
    for directory in [".", ".git", ".git/blueflame"] {
        let stage = stage();
        let wrapper = read_only(&stage, directory);
        let told = stage.start_under(&wrapper, &stage.run_arguments()).end().exits(3);
        told.says("Read-only file system").says("hint: sessions are kept there");
        assert_eq!(stage.sessions(), Vec::<std::path::PathBuf>::new());
        stage.run().exits(0);
        everything_landed(&stage);
    }
}

#[test]
fn where_no_workspace_can_be_made_the_session_stops_and_no_task_pays_for_it() {
    let stage = super::with(Script::new(), "limits: {max_retries: 0}\n");
    let wrapper = read_only(&stage, ".trees");
    let told = stage.start_under(&wrapper, &stage.run_arguments()).end().exits(3);
    told.says("Read-only file system").says("once that is put right, `blueflame resume ");
    // It is as true the next time, and however often.
    for _ in 0..7 {
        stage.start_under(&wrapper, &RESUME).end().exits(3).says("Read-only file system");
    }
    let status = stage.blueflame(&["status"]).exits(0);
    assert!(status.stdout.contains("suspended, because"), "{status}");
    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    everything_landed(&stage);
}

#[test]
fn where_no_object_can_be_written_finished_work_waits_and_is_not_done_again() {
    let stage = stage();
    let wrapper = read_only(&stage, ".git/objects");
    let told = stage.start_under(&wrapper, &stage.run_arguments()).end().exits(3);
    told.says("could not be taken over").says("`blueflame resume ");
    assert_eq!(stage.landed(), Vec::<String>::new());
    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    assert_eq!(stage.events("agent.lost"), Vec::<Value>::new());
    everything_landed(&stage);
}

#[test]
fn a_workspace_that_vanishes_is_nobodys_breach_and_the_work_is_done_again() {
    let stage = waiting("limits: {max_retries: 0}\n");
    let mut running = stage.begin();
    both_wait(&mut running);
    let trees = stage.repository().join(".trees").join(stage.session_id());
    fs::remove_dir_all(trees.join("task-001.a1")).unwrap();
    stage.signal("go");
    running.end().exits(0).says("was removed or moved; what was not saved is done again");
    assert_eq!(stage.outcomes("task-001"), ["killed", "finished"]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    everything_landed(&stage);
}

#[test]
fn all_workspaces_may_vanish_between_a_crash_and_the_resume() {
    let stage = waiting("limits: {max_retries: 0}\n");
    let mut running = stage.begin();
    both_wait(&mut running);
    running.kill();
    fs::remove_dir_all(stage.repository().join(".trees")).unwrap();
    stage.signal("go");
    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["killed", "finished"]);
    everything_landed(&stage);
}

#[test]
fn a_lock_that_was_left_in_a_workspace_costs_no_work() {
    let stage = waiting("");
    let mut running = stage.begin();
    both_wait(&mut running);
    fs::write(stage.written_in("task-001.a1").join(".git/index.lock"), "").unwrap();
    stage.signal("go");
    running.end().exits(0);
    // It could not commit, and what it wrote was there for the next one.
    assert_eq!(stage.outcomes("task-001"), ["uncommitted", "finished"]);
    everything_landed(&stage);
}

#[test]
fn a_lock_that_was_left_in_the_checkout_is_named_and_stays() {
    let stage = stage();
    stage.write(".git/index.lock", "");
    let log = stage.run().exits(0);
    log.says("index.lock` is there: another git works in").says("blueflame publish");
    assert_eq!(stage.landed(), Vec::<String>::new());
    assert_eq!(stage.read(".git/index.lock"), "");
    fs::remove_file(stage.repository().join(".git/index.lock")).unwrap();
    stage.blueflame(&["publish"]).exits(0);
    assert_eq!(stage.landed(), ["task-001", "task-002"].map(subject));
    stage.assert_tidy();
}
