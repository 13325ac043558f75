//! A git that stays: one process that answers question after question, so that not
//! each of them has to wait for a program to start.
//!
//! It ends with whoever asks it, however that ends: it reads its questions from a pipe
//! that only they hold. One that fails, or takes too long, is not asked again.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};

use super::ended::{DEADLINE, memory};
use super::{GitError, isolated};
use crate::child_end::Timed;

/// What answers one kind of question about one repository.
#[derive(Debug)]
pub(super) struct Resident {
    git_dir: PathBuf,
    words: &'static [&'static str],
    /// Whoever has a question while it answers another waits for that: most answers are
    /// there long before a second process would be.
    process: Mutex<Option<Process>>,
}

impl Resident {
    /// Nothing is started before something is asked.
    pub(super) fn of(git_dir: &Path, words: &'static [&'static str]) -> Resident {
        let git_dir = std::path::absolute(git_dir).unwrap_or_else(|_| git_dir.to_owned());
        Resident { git_dir, words, process: Mutex::default() }
    }

    pub(super) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Asks it as soon as it has nothing else to do. If it could not answer, it is not
    /// asked again.
    pub(super) fn ask<T, E: From<GitError>>(
        &self,
        question: impl FnOnce(&mut Process) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // One that was killed while it had nothing to do is no loss.
        let kept = process.take().and_then(|mut git| git.lives().then_some(git));
        let mut git = kept.map_or_else(|| self.start(), Ok)?;
        let answer = question(&mut git)?;
        *process = Some(git);
        Ok(answer)
    }

    fn start(&self) -> Result<Process, GitError> {
        let mut git = isolated::command(&self.git_dir, self.words);
        // Whoever looks for a git at work in the repository means others.
        git.current_dir("/");
        Process::start(self.words.join(" "), git)
    }
}

#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<Timed<ChildStdout>>,
    /// What it complains about, of which so much has been read.
    complaints: File,
    read: u64,
}

impl Process {
    fn start(name: String, mut git: Command) -> Result<Process, GitError> {
        let complaints = memory()?;
        let dir = git.get_current_dir().map(Path::to_owned).unwrap_or_default();
        let not_started = |source: io::Error| {
            if source.kind() == io::ErrorKind::NotFound && dir.is_dir() {
                GitError::NotInstalled
            } else {
                let dir = dir.clone();
                GitError::NotStarted { command: name.clone(), dir, source }
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
        let answers = BufReader::new(Timed { from: answers, until: Instant::now() });
        Ok(Process { name, child, questions, answers, complaints, read: 0 })
    }

    /// Whether it is still there.
    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks for as many answers as are read next. They must not fill a pipe before all
    /// is asked, or each would wait for the other.
    pub(super) fn tell(&mut self, questions: &[u8]) -> Result<(), GitError> {
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
        GitError::Strange { command: self.name.clone(), answer: answer.to_owned() }
    }

    fn failed(&mut self, error: &io::Error) -> GitError {
        let command = self.name.clone();
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

    fn kill(&mut self) {
        // Unless it has been waited for, the number still means this group.
        if self.lives() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use blueflame_testkit::TestEnv;

    use super::*;

    #[test]
    fn one_that_was_killed_is_replaced_and_one_that_failed_is_not_asked_again() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let git_dir = repository.path().join(".git");
        let resident = Resident::of(&git_dir, &["cat-file", "--batch-command"]);
        let ask = || {
            resident.ask(|git| {
                git.tell(b"info HEAD\n")?;
                Ok::<_, GitError>((git.child.id(), git.line()?))
            })
        };
        let (first, answer) = ask().unwrap();
        assert_eq!(answer, "HEAD missing");
        assert_eq!(ask().unwrap().0, first, "the same one");
        resident.process.lock().unwrap().as_mut().unwrap().kill();
        let (second, answer) = ask().unwrap();
        assert!(second != first && answer == "HEAD missing");
        let failed = resident.ask(|git| Err::<(), _>(git.strange("?")));
        assert!(failed.is_err());
        assert_ne!(ask().unwrap().0, second);
        // It has nothing to say to this, and says why.
        let error = resident.ask(|git| {
            git.tell(b"nonsense\n")?;
            git.line()
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("unknown command"), "{error}");
    }
    #[test]
    fn who_asks_while_it_answers_another_waits_and_is_answered_by_the_same() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let git_dir = repository.path().join(".git");
        let resident = Resident::of(&git_dir, &["cat-file", "--batch-command"]);
        let ask = |name: &str| {
            resident.ask(|git| {
                git.tell(format!("info {name}\n").as_bytes())?;
                assert_eq!(git.line()?, format!("{name} missing"));
                Ok::<_, GitError>(git.child.id())
            })
        };
        let ask = &ask;
        let asked: Vec<u32> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16)
                .map(|number| scope.spawn(move || ask(&format!("refs/heads/{number}")).unwrap()))
                .collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert!(asked.iter().all(|pid| *pid == asked[0]), "{asked:?}");
    }
}
