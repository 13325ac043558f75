//! A git repository for a test: made from nothing, the same in every run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::env::{Ran, TestEnv};

/// A repository with a work tree, in the environment of one test.
#[derive(Clone, Debug)]
pub struct Repository<'a> {
    env: &'a TestEnv,
    path: PathBuf,
}

impl<'a> Repository<'a> {
    pub(crate) fn init(env: &'a TestEnv, name: &str) -> Self {
        let repository = Repository { env, path: env.path(name) };
        std::fs::create_dir_all(&repository.path).expect("the environment takes new directories");
        repository.git(["init", "--quiet", "-b", "main"]);
        repository
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of the work tree, with the directories it needs.
    pub fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path.join(name);
        let parent = path.parent().expect("a file in the repository has a directory");
        std::fs::create_dir_all(parent).expect("the work tree takes new directories");
        std::fs::write(&path, text).expect("the work tree takes new files");
        self
    }

    /// Commits everything in the work tree and gives the name of the commit.
    pub fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Runs git here and gives what it prints; the test fails if git does.
    #[track_caller]
    pub fn git<const N: usize>(&self, arguments: [&str; N]) -> String {
        let mut command = self.command("git");
        command.args(arguments);
        self.env.run(command).success()
    }

    /// Runs a program here, such as `env!("CARGO_BIN_EXE_blueflame")`.
    pub fn run<const N: usize>(&self, program: &str, arguments: [&str; N]) -> Ran {
        let mut command = self.command(program);
        command.args(arguments);
        self.env.run(command)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.env.command(program);
        command.current_dir(&self.path);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_steps_make_the_same_commits() {
        let [first, second] = [TestEnv::new(), TestEnv::new()].map(|env| {
            let repository = env.repository("project");
            repository.write("src/main.rs", "fn main() {}\n").commit("start")
        });
        assert_eq!(first, second);
    }

    #[test]
    fn it_starts_on_main_with_a_clean_work_tree() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("a", "1").commit("one");
        assert_eq!(repository.git(["branch", "--show-current"]), "main\n");
        assert_eq!(repository.git(["status", "--porcelain"]), "");
        assert_eq!(repository.run("git", ["frobnicate"]).code(), Some(1));
    }
}
