//! Agents of sessions that nobody runs. An orchestrator that was killed leaves them
//! at work, for the next one to adopt; if another session begins instead, they are
//! stopped, so that nobody works and spends unseen. What they did is sealed as ever,
//! and whoever goes on with their session finds it.

use std::fs;
use std::time::{Duration, Instant};

use blueflame_core::ids::SessionId;
use rustix::process::Signal;

use super::prepare::GRACE;
use crate::attempt::directory::{Directory, Standing};
use crate::process_tree;
use crate::store::{SessionDir, Store, StoreError};

/// How much longer than an agent may take to stop we wait for its seal.
const SEALING: Duration = Duration::from_secs(10);

/// How long one that was killed may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// A session whose agents were still at work, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub session: SessionId,
    pub agents: usize,
}

/// Stops every agent of every session but one's own. The caller holds the repository's
/// lock, so nobody follows them.
pub fn stop(store: &Store, own: &SessionId) -> Result<Vec<Stopped>, StoreError> {
    let mut stopped = Vec::new();
    for session in store.sessions()?.into_iter().filter(|it| it != own) {
        let strays = at_work(&store.session(&session));
        if !strays.is_empty() {
            stopped.push(Stopped { session, agents: strays.len() });
        }
        end(strays);
    }
    Ok(stopped)
}

/// The attempts that somebody runs. Those that left something behind when they were
/// killed are cleared away.
fn at_work(session: &SessionDir) -> Vec<Directory> {
    let entries = fs::read_dir(session.attempts()).into_iter().flatten().flatten();
    let attempts = entries.map(|entry| Directory::open(&entry.path()));
    let open = attempts.filter(|it| it.process_file().exists() && !it.result_file().exists());
    open.filter(|attempt| match attempt.standing() {
        Ok(Standing::Running(_)) => true,
        Ok(Standing::Lost { .. }) => {
            let _ = attempt.end_leftovers();
            false
        }
        Ok(Standing::NotStarted | Standing::Ended(_)) | Err(_) => false,
    })
    .collect()
}

/// Asks all of them at once, and ends those that do not listen.
fn end(attempts: Vec<Directory>) {
    let running = |attempt: &Directory| match attempt.standing() {
        Ok(Standing::Running(Some(registered))) => Some(registered.process),
        _ => None,
    };
    for process in attempts.iter().filter_map(running) {
        let _ = process_tree::signal(&process, Signal::TERM);
    }
    let until = Instant::now() + GRACE + SEALING;
    for attempt in attempts {
        if let Some(process) = running(&attempt) {
            let left = until.saturating_duration_since(Instant::now());
            let _ = process_tree::wait_for_end(&process, left);
        }
        if !matches!(attempt.standing(), Ok(Standing::Running(_))) {
            continue;
        }
        if let Some(process) = running(&attempt) {
            let _ = process_tree::kill_and_wait(&process, KILL_PATIENCE);
        }
        let _ = attempt.end_leftovers();
    }
}
