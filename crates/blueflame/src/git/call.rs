//! One call of git: put together step by step, run to its end or its deadline.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use blueflame_core::ids::Oid;

use super::GitError;
use super::ended::{self, DEADLINE, Ended, Input};

/// Settings that keep git from running or starting anything by itself.
const QUIET: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "i18n.commitEncoding=UTF-8",
    "protocol.version=2",
];

/// A call that has not been made yet.
#[derive(Clone, Debug)]
pub struct Call {
    dir: PathBuf,
    variables: Vec<(&'static str, OsString)>,
    settings: Vec<OsString>,
    words: Vec<OsString>,
    input: Vec<u8>,
    plain: bool,
    deadline: Duration,
    /// Our own program, and the workspace that it goes into first.
    within: Option<(PathBuf, PathBuf)>,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    dir: PathBuf,
    command: String,
}

impl Call {
    /// Git with the person's own configuration.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Self {
        Call {
            dir: dir.into(),
            variables: Vec::new(),
            settings: Vec::new(),
            words: Vec::new(),
            input: Vec::new(),
            plain: false,
            deadline: DEADLINE,
            within: None,
        }
    }

    /// Git that behaves the same for everyone: no configuration but that of the
    /// git directory, nothing from the environment, no hooks, no maintenance.
    pub fn plain(git_dir: &Path) -> Self {
        let mut call = Call::in_dir(git_dir).variable("GIT_DIR", git_dir);
        call.plain = true;
        call
    }

    /// The same, for a git directory that is yet to be made.
    pub fn plain_without_git_dir(dir: &Path) -> Self {
        let mut call = Call::in_dir(dir);
        call.plain = true;
        call
    }

    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// Works on the files in a directory.
    #[must_use]
    pub fn work_tree(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.dir);
        self.variable("GIT_WORK_TREE", path)
    }

    #[must_use]
    pub fn setting(mut self, setting: impl AsRef<OsStr>) -> Self {
        self.settings.push(setting.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(OsString::from));
        self
    }

    /// What git reads from its standard input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Has our own program go into a workspace first.
    #[must_use]
    pub fn within(mut self, blueflame: &Path, workspace: &Path) -> Self {
        self.within = Some((blueflame.to_owned(), workspace.to_owned()));
        self
    }

    /// Runs it; how it ended is part of the answer.
    pub fn run(self) -> Result<Answer, GitError> {
        let (git, command) = (self.command(), self.shown());
        let ended = ended::run(git, &command, given(self.input), self.deadline)?;
        Ok(Answer::of(ended, self.dir, command))
    }

    /// Runs it together with another, which reads what this one writes; how both ended.
    pub fn run_into(self, other: Call) -> Result<[Answer; 2], GitError> {
        let (first, second) = (self.shown(), other.shown());
        let [one, two] = ended::run_into(
            (self.command(), &first),
            given(self.input),
            (other.command(), &second),
            self.deadline.max(other.deadline),
        )?;
        Ok([Answer::of(one, self.dir, first), Answer::of(two, other.dir, second)])
    }

    /// Its words, for a message.
    fn shown(&self) -> String {
        let shown: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        shown.join(" ")
    }

    /// Runs it, and wants it to succeed.
    pub fn done(self) -> Result<(), GitError> {
        self.run()?.success().map(drop)
    }

    /// What it prints when it succeeds.
    pub fn bytes(self) -> Result<Vec<u8>, GitError> {
        self.run()?.success()
    }

    /// The text that it prints when it succeeds, without the end of the line.
    pub fn line(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.bytes()?).trim_end_matches('\n').to_owned())
    }

    /// The one object name that it prints when it succeeds.
    pub fn oid(self) -> Result<Oid, GitError> {
        self.run()?.oid()
    }

    fn command(&self) -> Command {
        let words = self.settings.iter().flat_map(|setting| [OsStr::new("-c"), setting]);
        let quiet = QUIET.iter().flat_map(|setting| ["-c", setting]).map(OsStr::new);
        let quiet = quiet.filter(|_| self.plain);
        let words: Vec<&OsStr> =
            quiet.chain(words).chain(self.words.iter().map(OsString::as_os_str)).collect();
        let mut command = match &self.within {
            Some((blueflame, workspace)) => {
                super::command_within(blueflame, workspace, &self.dir, &words)
            }
            None => super::command(&self.dir, &words),
        };
        if self.plain {
            let inherited = std::env::vars_os().map(|(name, _)| name);
            for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")) {
                if name != "GIT_EXEC_PATH" {
                    command.env_remove(name);
                }
            }
            command
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_ATTR_NOSYSTEM", "1")
                .env("GIT_OPTIONAL_LOCKS", "0")
                .env("GIT_TERMINAL_PROMPT", "0")
                .env("GIT_NO_REPLACE_OBJECTS", "1")
                .env("GIT_NO_LAZY_FETCH", "1")
                .env("GIT_ALLOW_PROTOCOL", "file")
                .env("GIT_DEFAULT_REF_FORMAT", "files");
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn given(input: Vec<u8>) -> Input {
    if input.is_empty() { Input::Nothing } else { Input::Bytes(input) }
}

impl Answer {
    fn of(ended: Ended, dir: PathBuf, command: String) -> Answer {
        let Ended { status, stdout, stderr } = ended;
        Answer { status, stdout, stderr, dir, command }
    }

    /// What it printed, if it succeeded.
    pub fn success(self) -> Result<Vec<u8>, GitError> {
        if self.status.success() { Ok(self.stdout) } else { Err(self.failure()) }
    }

    /// What it printed, or `None` if it says that there is nothing, which is exit
    /// code 1. A git that failed otherwise or was killed has said neither.
    pub fn if_any(self) -> Result<Option<Vec<u8>>, GitError> {
        if self.status.code() == Some(1) { Ok(None) } else { self.success().map(Some) }
    }

    /// The one object name that it printed, if it succeeded.
    pub fn oid(self) -> Result<Oid, GitError> {
        let command = self.command.clone();
        let answer = String::from_utf8_lossy(&self.success()?).trim_end().to_owned();
        Oid::new(answer.as_str()).map_err(|_| GitError::Strange { command, answer })
    }

    /// What it printed makes no sense.
    pub fn strange(&self, part: &[u8]) -> GitError {
        let answer = String::from_utf8_lossy(part).into_owned();
        GitError::Strange { command: self.command.clone(), answer }
    }

    /// That it did not succeed.
    pub fn failure(self) -> GitError {
        let message = String::from_utf8_lossy(&self.stderr).trim().to_owned();
        if message.contains("not a git repository") {
            return GitError::NotARepository { dir: self.dir };
        }
        let status = self.status.to_string();
        GitError::Failed { command: self.command, status, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_what_it_reads() {
        let dir = tempfile::tempdir().unwrap();
        Call::plain_without_git_dir(dir.path())
            .words(&["init", "-q", "--bare", "."])
            .done()
            .unwrap();
        let call = Call::plain(dir.path()).words(&["hash-object", "--stdin"]).input("hello\n");
        assert_eq!(call.oid().unwrap().as_str(), "ce013625030ba8dba906f756967f9e9ca394464a");
        let call = Call::plain(dir.path()).words(&["rev-parse", "--git-dir"]);
        assert!(matches!(call.oid(), Err(GitError::Strange { .. })));
    }
}
