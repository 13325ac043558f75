//! A git that stays: one process that answers question after question, so that not
//! each of them has to wait for a program to start.
//!
//! It ends with whoever asks it, however that ends: it reads its questions from a pipe
//! that only they hold. One that fails, or takes too long, is not asked again.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process_group};

use super::GitError;
use super::call::memory;
use crate::child_end;

/// No answer takes longer, or it is given up.
const DEADLINE: Duration = Duration::from_secs(60);

/// The most that is asked before the answers are read: less than a pipe holds, so that
/// neither waits for the other.
pub(super) const MOST_ASKED: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct Resident {
    name: &'static str,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<Timed>,
    /// What it complains about, of which so much has been read.
    complaints: File,
    read: u64,
}

impl Resident {
    pub(super) fn start(name: &'static str, mut git: Command) -> Result<Resident, GitError> {
        let complaints = memory()?;
        let dir = git.get_current_dir().map(Path::to_owned).unwrap_or_default();
        let not_started = |source: io::Error| {
            if source.kind() == io::ErrorKind::NotFound && dir.is_dir() {
                GitError::NotInstalled
            } else {
                let dir = dir.clone();
                GitError::NotStarted { command: name.to_owned(), dir, source }
            }
        };
        git.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone().map_err(GitError::Memory)?)
            // An interrupt from the keyboard is not for it.
            .process_group(0);
        let mut child = git.spawn().map_err(not_started)?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(not_started(io::Error::other("without its pipes")));
        };
        let answers = BufReader::new(Timed { answers, until: Instant::now() });
        Ok(Resident { name, child, questions, answers, complaints, read: 0 })
    }

    /// Whether it is still there.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks for as many answers as are read next; at most [`MOST_ASKED`] bytes.
    pub(super) fn ask(&mut self, questions: &[u8]) -> Result<(), GitError> {
        self.answers.get_mut().until = Instant::now() + DEADLINE;
        self.questions.write_all(questions).map_err(|error| self.failed(&error))
    }

    /// The next line, without its end.
    pub(super) fn line(&mut self) -> Result<String, GitError> {
        let mut line = Vec::new();
        match self.answers.read_until(b'\n', &mut line) {
            Ok(_) if line.pop() == Some(b'\n') => Ok(String::from_utf8_lossy(&line).into_owned()),
            Ok(_) => Err(self.failed(&io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The next so many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<Vec<u8>, GitError> {
        let mut bytes = vec![0; count];
        let read = self.answers.read_exact(&mut bytes);
        read.map_err(|error| self.failed(&error)).map(|()| bytes)
    }

    /// What it has complained about since this was last asked.
    pub(super) fn complaints(&mut self) -> Result<String, GitError> {
        let end = self.complaints.metadata().map_err(GitError::Memory)?.len();
        let mut text = vec![0; usize::try_from(end - self.read).unwrap_or(usize::MAX)];
        // The place at which git goes on writing is left as it is.
        self.complaints.read_exact_at(&mut text, self.read).map_err(GitError::Memory)?;
        self.read = end;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    pub(super) fn strange(&self, answer: &str) -> GitError {
        GitError::Strange { command: self.name.to_owned(), answer: answer.to_owned() }
    }

    fn failed(&mut self, error: &io::Error) -> GitError {
        let command = self.name.to_owned();
        if error.kind() == io::ErrorKind::TimedOut {
            return GitError::TooSlow { command, seconds: DEADLINE.as_secs() };
        }
        let message = self.complaints().unwrap_or_default();
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => error.to_string(),
        };
        GitError::Failed { command, status, message }
    }

    pub(super) fn kill(&mut self) {
        // Unless it has been waited for, the number still means this group.
        if self.lives() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Answers that are waited for up to a moment.
#[derive(Debug)]
struct Timed {
    answers: ChildStdout,
    until: Instant,
}

impl io::Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut watched = [PollFd::new(&self.answers, PollFlags::IN)];
        child_end::wait_for_any(&mut watched, Some(self.until))?;
        if watched[0].revents().is_empty() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.answers.read(buffer)
    }
}
