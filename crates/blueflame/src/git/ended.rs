//! A git that is run to its end, or to its deadline.
//!
//! It is told what it reads, and says what it has to say, through files that are on no
//! disk and not through pipes: nothing that it leaves running can hold up the answer. It
//! runs in a process group of its own: an interrupt from the keyboard does not cut it in
//! half.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
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

impl Input {
    fn open(self) -> Result<Stdio, GitError> {
        Ok(match self {
            Input::Nothing => Stdio::null(),
            Input::Bytes(bytes) => {
                let mut stdin = memory()?;
                stdin.write_all(&bytes).and_then(|()| stdin.rewind()).map_err(GitError::Memory)?;
                stdin.into()
            }
            Input::File(file) => file.into(),
        })
    }
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
    git: Command,
    words: &str,
    input: Input,
    deadline: Duration,
) -> Result<Ended, GitError> {
    let stdin = input.open()?;
    let stdout = memory()?;
    let writer = stdout.try_clone().map_err(GitError::Memory)?;
    Running::start(git, words, stdin, writer, Some(stdout))?
        .end(Instant::now() + deadline, deadline)
}

/// Runs two of them, of which the second reads what the first one writes: as much as there
/// may be, it is in nobody's memory.
pub(super) fn run_into(
    (first, words): (Command, &str),
    input: Input,
    (second, its_words): (Command, &str),
    deadline: Duration,
) -> Result<[Ended; 2], GitError> {
    let (reader, writer) = io::pipe().map_err(GitError::Memory)?;
    let (stdin, stdout) = (input.open()?, memory()?);
    let its_writer = stdout.try_clone().map_err(GitError::Memory)?;
    let until = Instant::now() + deadline;
    let first = Running::start(first, words, stdin, writer, None)?;
    let second = Running::start(second, its_words, reader.into(), its_writer, Some(stdout));
    // Nobody reads what a first one without a second one writes: it ends by that.
    let (second, first) =
        (second.and_then(|it| it.end(until, deadline)), first.end(until, deadline));
    Ok([first?, second?])
}

/// A git that has begun.
struct Running {
    child: Child,
    words: String,
    /// What it says, if that is for us.
    stdout: Option<File>,
    stderr: File,
    dir: PathBuf,
}

impl Running {
    fn start(
        mut git: Command,
        words: &str,
        stdin: Stdio,
        writer: impl Into<Stdio>,
        stdout: Option<File>,
    ) -> Result<Running, GitError> {
        let stderr = memory()?;
        let dir = git.get_current_dir().unwrap_or(Path::new(".")).to_owned();
        git.stdin(stdin)
            .stdout(writer)
            .stderr(stderr.try_clone().map_err(GitError::Memory)?)
            .process_group(0);
        match git.spawn() {
            Ok(child) => Ok(Running { child, words: words.to_owned(), stdout, stderr, dir }),
            Err(source) if source.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
                Err(GitError::NotInstalled)
            }
            Err(source) => Err(GitError::NotStarted { command: words.to_owned(), dir, source }),
        }
    }

    /// Waits for its end, up to a moment that is so long after the beginning.
    fn end(mut self, until: Instant, deadline: Duration) -> Result<Ended, GitError> {
        let command = self.words;
        match wait(&mut self.child, until) {
            Ok(Some(status)) => {
                let stdout = self.stdout.as_mut().map(whole).transpose()?.unwrap_or_default();
                Ok(Ended { status, stdout, stderr: whole(&mut self.stderr)? })
            }
            Ok(None) => Err(GitError::TooSlow { command, seconds: deadline.as_secs() }),
            Err(source) => Err(GitError::NotStarted { command, dir: self.dir, source }),
        }
    }
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
fn wait(child: &mut Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = child_end::wait_until(child, until)? {
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
    fn one_reads_what_the_other_writes_and_each_is_heard() {
        let (first, second) = (shell("cat; echo one >&2; exit 3"), shell("wc -c; echo two >&2"));
        let input = Input::Bytes(vec![b'.'; 1 << 20]);
        let ended = run_into((first, "a"), input, (second, "b"), DEADLINE).unwrap();
        let codes = ended.each_ref().map(|it| it.status.code());
        assert_eq!(codes, [Some(3), Some(0)]);
        let [first, second] = ended.map(|it| (it.stdout, it.stderr));
        assert_eq!(first, (Vec::new(), b"one\n".to_vec()));
        assert_eq!(second, (b"1048576\n".to_vec(), b"two\n".to_vec()));
    }

    #[test]
    fn neither_is_left_running_without_the_other() {
        // The one writes for ever, and the other does not read on.
        let (first, second) = (shell("exec yes"), shell("head -n 1"));
        let [first, second] =
            run_into((first, "yes"), Input::Nothing, (second, "head"), DEADLINE).unwrap();
        assert_eq!((first.status.code(), second.stdout), (None, b"y\n".to_vec()));
        // Both wait for each other.
        let (first, second) = (shell("sleep 600"), shell("cat"));
        let soon = Duration::from_millis(200);
        let ended = run_into((first, "sleep"), Input::Nothing, (second, "cat"), soon);
        assert!(matches!(ended, Err(GitError::TooSlow { .. })), "{ended:?}");
        // There is no second one.
        let none = Command::new("/nonexistent/git");
        let ended = run_into((shell("exec yes"), "yes"), Input::Nothing, (none, "none"), DEADLINE);
        assert!(ended.is_err(), "{ended:?}");
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
