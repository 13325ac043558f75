//! A git that is run to its end, or to its deadline.
//!
//! It is told what it reads, and says what it has to say, through files that are on no
//! disk and not through pipes: nothing that it leaves running can hold up the answer. It
//! runs in a process group of its own: an interrupt from the keyboard does not cut it in
//! half.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

use super::GitError;
use crate::child_end;

/// No call takes longer, or it is given up.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

/// What a call that was stopped gets to remove its lock files.
const GRACE: Duration = Duration::from_secs(5);

/// What it reads.
#[derive(Debug)]
pub(super) enum Input {
    Nothing,
    Bytes(Vec<u8>),
    /// An open file, which it keeps open for as long as it runs.
    File(File),
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a git that is called by these words.
pub(super) fn run(
    mut git: Command,
    words: &str,
    input: Input,
    deadline: Duration,
) -> Result<Ended, GitError> {
    let dir = git.get_current_dir().unwrap_or(Path::new(".")).to_owned();
    let not_started = |source: io::Error| {
        if source.kind() == io::ErrorKind::NotFound && dir.is_dir() {
            GitError::NotInstalled
        } else {
            GitError::NotStarted { command: words.to_owned(), dir: dir.clone(), source }
        }
    };
    let (mut stdout, mut stderr) = (memory()?, memory()?);
    match input {
        Input::Nothing => {}
        Input::Bytes(bytes) => {
            let mut stdin = memory()?;
            stdin.write_all(&bytes).and_then(|()| stdin.rewind()).map_err(GitError::Memory)?;
            git.stdin(stdin);
        }
        Input::File(file) => {
            git.stdin(Stdio::from(file));
        }
    }
    git.stdout(stdout.try_clone().map_err(GitError::Memory)?)
        .stderr(stderr.try_clone().map_err(GitError::Memory)?)
        .process_group(0);
    let mut child = git.spawn().map_err(not_started)?;
    let Some(status) = wait(&mut child, deadline).map_err(not_started)? else {
        return Err(GitError::TooSlow { command: words.to_owned(), seconds: deadline.as_secs() });
    };
    Ok(Ended { status, stdout: whole(&mut stdout)?, stderr: whole(&mut stderr)? })
}

/// Room for what a call is told or says: a file that is on no disk.
pub(super) fn memory() -> Result<File, GitError> {
    let fd = memfd_create(c"git", MemfdFlags::CLOEXEC);
    fd.map(File::from).map_err(|error| GitError::Memory(error.into()))
}

fn whole(file: &mut File) -> Result<Vec<u8>, GitError> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(GitError::Memory)?;
    Ok(bytes)
}

/// Waits for the end, or ends it with all that it started, which is in its group:
/// politely at first, so that git removes its lock files.
fn wait(child: &mut Child, deadline: Duration) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = child_end::wait_until(child, Instant::now() + deadline)? {
        return Ok(Some(status));
    }
    let group = Pid::from_child(child);
    for signal in [Signal::TERM, Signal::KILL] {
        // It has not been waited for, so the number still means this group.
        let _ = kill_process_group(group, signal);
        if child_end::wait_until(child, Instant::now() + GRACE)?.is_some() {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir("/").stdin(Stdio::null());
        shell
    }

    #[test]
    fn it_is_told_what_it_reads_and_what_it_leaves_running_holds_nobody_up() {
        let begun = Instant::now();
        let git = shell("cat; echo oh >&2; sleep 600 & exit 3");
        let ended = run(git, "cat", Input::Bytes(b"hello".into()), DEADLINE).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!((&ended.stdout[..], &ended.stderr[..]), (&b"hello"[..], &b"oh\n"[..]));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn one_that_hangs_may_tidy_up_and_is_ended_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("lock");
        let script = format!(
            "touch '{lock}'; trap 'rm \"{lock}\"; exit 1' TERM; sleep 600 & wait",
            lock = lock.display()
        );
        let ended = run(shell(&script), "hang", Input::Nothing, Duration::from_millis(500));
        assert!(matches!(ended, Err(GitError::TooSlow { .. })), "{ended:?}");
        assert!(!lock.exists());
    }

    #[test]
    fn one_that_is_not_there_is_told_from_a_place_that_is_not() {
        let run = |git| run(git, "status", Input::Nothing, DEADLINE).unwrap_err();
        let mut none = Command::new("/nonexistent/git");
        assert!(matches!(
            run({
                none.current_dir("/");
                none
            }),
            GitError::NotInstalled
        ));
        let mut nowhere = shell("true");
        nowhere.current_dir("/nonexistent");
        assert!(matches!(run(nowhere), GitError::NotStarted { .. }));
    }
}
