//! A place of its own for each test: a directory, a home and an environment that
//! know nothing of the machine or the person running the tests.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;

use crate::repository::Repository;

/// The date of every commit, so that object names are the same in every run.
const DATE: &str = "2026-01-02T03:04:05+00:00";

const FIXED: [(&str, &str); 11] = [
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("NO_COLOR", "1"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_AUTHOR_NAME", "Ada"),
    ("GIT_AUTHOR_EMAIL", "ada@example.com"),
    ("GIT_AUTHOR_DATE", DATE),
    ("GIT_COMMITTER_NAME", "Ada"),
    ("GIT_COMMITTER_EMAIL", "ada@example.com"),
    ("GIT_COMMITTER_DATE", DATE),
];

/// A directory that is gone when the test is, with a home and nothing else in it.
#[derive(Debug)]
pub struct TestEnv {
    root: PathBuf,
    _removed_at_the_end: TempDir,
}

impl Default for TestEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl TestEnv {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().canonicalize().expect("it was just made");
        for name in ["home", "tmp"] {
            std::fs::create_dir(root.join(name)).expect("an empty directory takes names");
        }
        TestEnv { root, _removed_at_the_end: directory }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// An empty git repository in the directory `name`, on the branch `main`.
    pub fn repository(&self, name: &str) -> Repository<'_> {
        Repository::init(self, name)
    }

    /// A command in this environment, which has `PATH` and fixed values and
    /// nothing else. It starts in the root and reads an empty input.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(FIXED)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, mut command: Command) -> Ran {
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => panic!("cannot run {command:?}: {error}"),
        };
        let name = Path::new(command.get_program()).file_name().unwrap_or_default();
        let words = std::iter::once(name).chain(command.get_args());
        Ran {
            line: self.stable(&words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")),
            status: output.status,
            stdout: self.stable(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.stable(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// The text without the one thing that differs from run to run.
    fn stable(&self, text: &str) -> String {
        text.replace(&self.root.display().to_string(), "$ROOT")
    }
}

/// How a program ended and what it said. The root of the environment is written
/// as `$ROOT`, so the whole of it can be compared with a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    line: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The standard output of a program that succeeded.
    #[track_caller]
    pub fn success(self) -> String {
        assert!(self.status.success(), "{self}");
        self.stdout
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.line)?;
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => writeln!(f, "exit {code}")?,
            (None, signal) => writeln!(f, "killed by signal {}", signal.unwrap_or_default())?,
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                let newline = if text.ends_with('\n') { "" } else { "\n(no newline at the end)\n" };
                write!(f, "--- {name}\n{text}{newline}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(env: &TestEnv, script: &str) -> Ran {
        let mut command = env.command("sh");
        command.args(["-c", script]);
        env.run(command)
    }

    #[test]
    fn a_run_shows_everything_that_happened() {
        let env = TestEnv::new();
        let ran = shell(&env, "echo out; pwd >&2; printf half; exit 3");
        let shown = "$ sh -c echo out; pwd >&2; printf half; exit 3\nexit 3\n\
                     --- stdout\nout\nhalf\n(no newline at the end)\n--- stderr\n$ROOT\n";
        assert_eq!(ran.to_string(), shown);
        assert_eq!(ran.code(), Some(3));
        assert!(shell(&env, "kill -9 $$").to_string().contains("killed by signal 9"));
    }

    #[test]
    fn nothing_of_the_person_comes_through() {
        let env = TestEnv::new();
        let names = shell(&env, "env | cut -d= -f1 | sort | tr '\\n' ' '").success();
        let strangers: Vec<&str> = names
            .split_whitespace()
            .filter(|name| !FIXED.iter().any(|(fixed, _)| fixed == name))
            .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
            .collect();
        assert_eq!(strangers, ["GIT_CEILING_DIRECTORIES", "HOME", "PATH", "TMPDIR"]);
    }
}
