//! A small project for a session, and the environment of the programs in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the first commit can be found by.
pub const BEGIN: &str = "begin";

/// A repository below a directory, with this configuration and one commit.
pub fn begin(directory: &Path, config: &str) -> PathBuf {
    let project = directory.join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("blueflame.yaml"), config).unwrap();
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["commit", "-q", "-m", "begin"],
        &["tag", BEGIN],
    ] {
        git(&project, arguments);
    }
    project
}

/// Runs git in a directory, which is a home to it as well.
pub fn git(directory: &Path, arguments: &[&str]) {
    let mut git = environment(Command::new("git"), directory);
    git.args(["-c", "advice.detachedHead=false"]);
    assert!(git.args(arguments).current_dir(directory).status().unwrap().success());
}

/// Nothing of the person's own.
pub fn environment(mut command: Command, home: &Path) -> Command {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.com")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.com");
    command
}
