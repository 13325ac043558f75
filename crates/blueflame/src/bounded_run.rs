//! A program of others, run to its end, to a deadline or until the person has had
//! enough, whatever it does: its whole process group ends with it, and only the start
//! of what it says is kept.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::child_end;
use crate::interrupts::Interrupts;
use crate::process_tree;

/// How long the rest of what it said may take.
const DRAIN: Duration = Duration::from_secs(2);

/// What all that a program starts has in its environment, with a value of its own.
const MARK: &str = "BLUEFLAME_RUN";

/// How long it has to put things in order once it was told to end.
const GRACE: Duration = Duration::from_secs(2);

/// How long it may take until nothing of a program is left.
const LEFTOVERS: Duration = Duration::from_secs(5);

/// How far a program may go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'s> {
    pub patience: Duration,
    /// How many bytes of each stream are kept.
    pub most: u64,
    /// What ends it before.
    pub stop: Option<&'s Interrupts>,
}

/// What it did.
#[derive(Clone, Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Why it did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{0}")]
    NotStarted(io::Error),
    #[error("it was not done in {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Lost(io::Error),
}

/// Runs a program with nothing to read. If it does not come to its end, nothing that
/// it started is left, also of what left its group.
pub fn run(command: &mut Command, bounds: Bounds<'_>) -> Result<Ran, RunError> {
    let Bounds { patience, most, stop } = bounds;
    if stop.is_some_and(Interrupts::heard) {
        return Err(RunError::Interrupted);
    }
    let mark = mark();
    let mut child = command
        .env(MARK, &mark)
        // So that all it starts can be ended with it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(RunError::NotStarted)?;
    let said = child.stdout.take().map(|pipe| drain(pipe, most));
    let complaint = child.stderr.take().map(|pipe| drain(pipe, most));
    let until = Instant::now() + patience;
    let status = match child_end::wait_until_or_beside(&mut child, until, stop.map(AsFd::as_fd)) {
        Ok(Some(status)) => Ok(status),
        Ok(None) if stop.is_some_and(Interrupts::heard) => Err(RunError::Interrupted),
        Ok(None) => Err(RunError::TimedOut(patience)),
        Err(error) => Err(RunError::Lost(error)),
    };
    // What it left in the background, too: that holds the pipes. Its number is
    // still the group's while anything is in it.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        if status.is_err() {
            // It may be in the middle of writing something of the person's.
            let _ = kill_process_group(group, Signal::TERM);
            let _ = child_end::wait_until(&mut child, Instant::now() + GRACE);
        }
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = match status {
        Ok(status) => status,
        Err(why) => {
            let _ = child.wait();
            let _ = process_tree::end_marked(MARK, &mark, LEFTOVERS);
            return Err(why);
        }
    };
    let text = |drained: Option<mpsc::Receiver<Vec<u8>>>| {
        let bytes = drained.and_then(|it| it.recv_timeout(DRAIN).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Ran { status, stdout: text(said), stderr: text(complaint) })
}

/// No other program is marked so.
fn mark() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Numbers of processes are used again, but not at the same time.
    let started = process_tree::identify(process::id()).map_or(0, |it| it.start_time);
    format!("{}-{started}-{number}", process::id())
}

/// Reads a pipe to its end, of which only the start is kept. Whoever holds the
/// pipe for ever keeps a thread, and nobody else.
fn drain(pipe: impl Read + Send + 'static, most: u64) -> mpsc::Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut pipe = pipe.take(most);
        let _ = pipe.read_to_end(&mut kept);
        let _ = tell.send(kept);
        // It must not hang because nobody reads on.
        let _ = io::copy(&mut pipe.into_inner(), &mut io::sink());
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_out_of_time_may_put_things_in_order() {
        let place = tempfile::tempdir().unwrap();
        let done = place.path().join("done");
        let script = "trap 'echo in order > \"$0\"; exit' TERM; sleep 60 & wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&done);
        let bounds = Bounds { patience: Duration::from_millis(500), most: 10, stop: None };
        let ended = run(&mut command, bounds).unwrap_err();
        assert!(matches!(ended, RunError::TimedOut(_)), "{ended}");
        assert_eq!(std::fs::read_to_string(done).unwrap(), "in order\n");
    }
}
