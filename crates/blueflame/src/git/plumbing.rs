//! git without its conveniences: calls that depend on nothing but their
//! arguments, each with a deadline.
//!
//! No hook, pager, file system monitor, housekeeping or replaced object takes
//! part.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use blueflame_core::ids::Oid;

use super::ended::{self, DEADLINE, Ended, Input};
use super::objects::Objects;
use super::{GitError, command};

const SETTINGS: [&str; 9] = [
    "gc.auto=0",
    "maintenance.auto=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    // Someone else's short work on a ref is waited for.
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=5000",
];

/// One repository, or one of its work trees.
#[derive(Clone, Debug)]
pub struct Plumbing {
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    objects: Objects,
}

/// How a call ended.
#[derive(Debug)]
pub struct Ran {
    pub line: String,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// A call about to be made.
#[derive(Debug)]
pub struct Call<'a> {
    plumbing: &'a Plumbing,
    settings: Vec<String>,
    arguments: Vec<OsString>,
    env: Vec<(&'static str, String)>,
    input: Input,
    deadline: Duration,
}

impl Plumbing {
    /// The repository itself, without any work tree.
    pub fn of_repository(objects: Objects) -> Self {
        let dir = objects.git_dir().to_owned();
        let env = vec![("GIT_DIR".into(), dir.clone().into_os_string())];
        Plumbing { dir, env, objects }
    }

    /// One checkout, with the surroundings of this one.
    #[must_use]
    pub fn in_worktree(&self, dir: impl Into<PathBuf>) -> Self {
        let env = self.env.iter().filter(|(name, _)| name != "GIT_DIR").cloned().collect();
        Plumbing { dir: dir.into(), env, objects: self.objects.clone() }
    }

    /// With a variable in the environment of every call.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    pub fn call<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Call<'_> {
        Call {
            plumbing: self,
            settings: SETTINGS.iter().map(|&setting| setting.to_owned()).collect(),
            arguments: arguments.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            env: Vec::new(),
            input: Input::Nothing,
            deadline: DEADLINE,
        }
    }
}

impl Call<'_> {
    /// With more arguments.
    #[must_use]
    pub fn words<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Gives the call an open file as its standard input, which it keeps
    /// open for as long as it runs.
    #[must_use]
    pub fn holding(mut self, file: File) -> Self {
        self.input = Input::File(file);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn setting(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Without our own settings: for asking what the person has set.
    #[must_use]
    pub fn as_configured(mut self) -> Self {
        self.settings.clear();
        self
    }

    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs it to its end and takes any exit for an answer.
    pub fn run(self) -> Result<Ran, GitError> {
        let line = self.line();
        let mut words: Vec<OsString> = vec!["--no-pager".into(), "--literal-pathspecs".into()];
        for setting in &self.settings {
            words.extend(["-c".into(), setting.into()]);
        }
        words.extend(self.arguments);
        let mut git = command(&self.plumbing.dir, &words);
        git.env("GIT_NO_REPLACE_OBJECTS", "1");
        git.envs(self.plumbing.env.iter().map(|(name, value)| (name, value)));
        git.envs(self.env);
        let Ended { status, stdout, stderr } = ended::run(git, &line, self.input, self.deadline)?;
        let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
        Ok(Ran { line, status, stdout, stderr })
    }

    /// Runs it to a successful end.
    pub fn answer(self) -> Result<Ran, GitError> {
        let ran = self.run()?;
        if ran.status.success() { Ok(ran) } else { Err(ran.failure()) }
    }

    fn line(&self) -> String {
        let words: Vec<_> = self.arguments.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The answer, or `None` if it says that there is nothing, which is exit code 1.
    /// A git that failed otherwise or was killed has said neither.
    pub fn if_any(self) -> Result<Option<Ran>, GitError> {
        match self.code() {
            Some(0) => Ok(Some(self)),
            Some(1) => Ok(None),
            _ => Err(self.failure()),
        }
    }

    pub fn failure(self) -> GitError {
        GitError::Failed {
            command: self.line,
            status: self.status.to_string(),
            message: self.stderr,
        }
    }

    pub fn strange(&self) -> GitError {
        let shown: String = String::from_utf8_lossy(&self.stdout).chars().take(200).collect();
        GitError::Strange { command: self.line.clone(), answer: format!("{shown:?}") }
    }

    /// The output as one line of text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    pub fn oid(&self) -> Result<Oid, GitError> {
        Oid::new(self.text()).map_err(|_| self.strange())
    }

    /// The fields of an output that ends each one with a zero byte.
    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let end = self.stdout.strip_suffix(b"\0").unwrap_or(&self.stdout);
        let fields = (!end.is_empty()).then(|| end.split(|byte| *byte == 0));
        fields.into_iter().flatten()
    }
}
