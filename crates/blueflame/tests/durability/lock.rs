//! One orchestrator for each repository, whatever becomes of it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use blueflame::failure::{Failure, Kind};
use blueflame::file_system::Remote;
use blueflame::repo_lock::{Holder, LockError, RepoLock};
use blueflame::store::{Store, WritableStore};
use blueflame_testkit::TestEnv;
use rustix::process::{Pid, Signal, kill_process};

use crate::child::{Role, say, wait_to_be_dismissed};
use crate::sample::{at, session};

fn store(repository: &Path) -> WritableStore {
    Store::find(repository).unwrap().for_writing(Remote::Refuse).unwrap()
}

fn take(store: &WritableStore) -> Result<RepoLock, LockError> {
    RepoLock::take(store, &Holder::this_process(session(), at(0)))
}

/// The role: takes the lock, says how that went, and holds it until dismissed.
pub fn hold(repository: &Path) {
    match take(&store(repository)) {
        Ok(lock) => {
            say("held");
            wait_to_be_dismissed();
            lock.release().unwrap();
        }
        Err(error) => say(&error.to_string()),
    }
}

/// The role: takes the lock, and starts a process that lives longer than itself,
/// as an agent may.
pub fn hold_and_start_another(repository: &Path) {
    let _lock = take(&store(repository)).unwrap();
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[expect(clippy::zombie_processes, reason = "it has to outlive this process")]
    let child = command.spawn().unwrap();
    say(&child.id().to_string());
    wait_to_be_dismissed();
}

#[test]
fn a_second_orchestrator_is_told_who_is_first() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let mut first = Role::start("lock", repository.path());
    assert_eq!(first.hear().unwrap(), "held");

    // In another process, and in this one.
    let mut second = Role::start("lock", repository.path());
    let refused = second.hear().unwrap();
    let store = store(repository.path());
    let error = take(&store).unwrap_err();
    assert_eq!(error.to_string(), refused);
    let LockError::Held { holder: Some(holder) } = &error else { panic!("{error:?}") };
    let Holder { host, pid, .. } = holder;
    assert_ne!(*pid, std::process::id());
    assert_eq!(
        refused,
        format!(
            "another orchestrator holds this repository: process {pid} on `{host}` runs session \
             `ses-20261115-090000` since 2026-11-18T11:06:40Z"
        )
    );
    assert_eq!(Failure::from(error).kind(), Kind::Held);

    // Given back in good order, it is free and nothing was taken over.
    first.dismiss();
    let lock = take(&store).unwrap();
    assert_eq!(lock.took_over_from(), None);
}

#[test]
fn after_a_kill_the_next_one_takes_over_at_once_and_knows_it() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let store = store(repository.path());
    let mut first = Role::start("lock", repository.path());
    assert_eq!(first.hear().unwrap(), "held");
    let LockError::Held { holder } = take(&store).unwrap_err() else { panic!("not held") };
    first.kill();

    let lock = take(&store).unwrap();
    assert_eq!(lock.took_over_from(), holder.as_ref());
    lock.release().unwrap();
    assert_eq!(take(&store).unwrap().took_over_from(), None);
}

#[test]
fn a_child_that_outlives_the_holder_does_not_keep_the_lock() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let mut first = Role::start("lock-and-spawn", repository.path());
    let sleeper = first.hear().unwrap().parse().unwrap();
    first.kill();
    let sleeper = Pid::from_raw(sleeper).unwrap();
    assert!(rustix::process::test_kill_process(sleeper).is_ok(), "it should be alive still");
    assert!(take(&store(repository.path())).unwrap().took_over_from().is_some());
    kill_process(sleeper, Signal::KILL).unwrap();
}

#[test]
fn the_file_stays_the_same_file() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let store = store(repository.path());
    let path = store.store().lock_file();
    let mut inodes = Vec::new();
    for _ in 0..3 {
        let lock = take(&store).unwrap();
        inodes.push(fs::metadata(&path).unwrap().ino());
        lock.release().unwrap();
        inodes.push(fs::metadata(&path).unwrap().ino());
    }
    inodes.dedup();
    assert_eq!(inodes.len(), 1, "the lock file was replaced");
}

#[test]
fn nonsense_in_the_file_does_not_keep_anyone_out() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let store = store(repository.path());
    for nonsense in [&b"{\"host\":"[..], b"\xff\xfe", &[0; 512], &[b'x'; 5000]] {
        fs::write(store.store().lock_file(), nonsense).unwrap();
        assert_eq!(take(&store).unwrap().took_over_from(), None);
        // Dropped and not given back, so the next one learns of it.
        let lock = take(&store).unwrap();
        assert_eq!(lock.took_over_from().unwrap().pid, std::process::id());
    }
}
