//! A program of others, run to its end or to a deadline, whatever it does: its
//! whole process group ends with it, and only the start of what it says is kept.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::child_end;

/// How long the rest of what it said may take.
const DRAIN: Duration = Duration::from_secs(2);

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
    #[error("{0}")]
    Lost(io::Error),
}

/// Runs a program with nothing to read. At most so many bytes of each stream are
/// kept.
pub fn run(command: &mut Command, patience: Duration, most: u64) -> Result<Ran, RunError> {
    let mut child = command
        // So that all it starts can be ended with it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(RunError::NotStarted)?;
    let said = child.stdout.take().map(|pipe| drain(pipe, most));
    let complaint = child.stderr.take().map(|pipe| drain(pipe, most));
    let status = match child_end::wait_until(&mut child, Instant::now() + patience) {
        Ok(Some(status)) => Ok(status),
        Ok(None) => Err(RunError::TimedOut(patience)),
        Err(error) => Err(RunError::Lost(error)),
    };
    // What it left in the background, too: that holds the pipes. Its number is
    // still the group's while anything is in it.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = match status {
        Ok(status) => status,
        Err(why) => {
            let _ = child.wait();
            return Err(why);
        }
    };
    let text = |drained: Option<mpsc::Receiver<Vec<u8>>>| {
        let bytes = drained.and_then(|it| it.recv_timeout(DRAIN).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(Ran { status, stdout: text(said), stderr: text(complaint) })
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
