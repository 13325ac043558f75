//! The state is found from everywhere in a repository, and only there.

use std::path::Path;
use std::process::Command;

use blueflame::file_system::Remote;
use blueflame::git::GitError;
use blueflame::store::{Store, StoreError};
use blueflame_testkit::TestEnv;

use crate::child::{Role, say};

/// The role: looks for the store in a directory.
pub fn find(directory: &Path) {
    match Store::find(directory) {
        Ok(store) => say(&store.root().display().to_string()),
        Err(error) => say(&error.to_string()),
    }
}

#[test]
fn every_work_tree_and_subdirectory_has_the_same_store() {
    let env = TestEnv::new();
    let main = env.repository("project");
    main.write("deep/down/file", "x").commit("start");
    main.git(["worktree", "add", "--quiet", "../linked", "-b", "side"]);
    let expected = main.path().join(".git/blueflame");
    for directory in ["project", "project/deep/down", "project/.git", "linked", "linked/deep"] {
        let store = Store::find(&env.path(directory)).unwrap();
        assert_eq!(store.root(), expected, "from {directory}");
    }
    assert!(!expected.exists(), "looking for it made it");
}

#[test]
fn a_bare_repository_has_a_store_too() {
    let env = TestEnv::new();
    let main = env.repository("project");
    main.git(["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let store = Store::find(&env.path("bare.git")).unwrap();
    assert_eq!(store.root(), env.path("bare.git/blueflame"));
}

#[test]
fn row_48_making_the_store_twice_changes_nothing() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let id = crate::sample::session();
    let listed = || repository.run("find", [".git/blueflame", "-printf", "%p %T@\n"]).success();
    let make = || {
        let store = Store::find(repository.path()).unwrap().for_writing(Remote::Refuse).unwrap();
        store.begin(&id).unwrap()
    };
    let first = make();
    let before = listed();
    assert_eq!(make(), first);
    assert_eq!(listed(), before);
}

#[test]
fn outside_of_a_repository_the_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = Store::find(dir.path()).unwrap_err();
    assert!(matches!(refused, StoreError::Git(GitError::NotARepository { .. })));
    let expected = format!("`{}` is not a git repository", dir.path().display());
    assert_eq!(refused.to_string(), expected);
    let gone = dir.path().join("gone");
    assert!(matches!(Store::find(&gone), Err(StoreError::Git(GitError::NotStarted { .. }))));
}

#[test]
fn without_git_that_is_what_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("PATH", dir.path());
    let mut role = Role::start_as(command, "find-store", dir.path());
    assert_eq!(role.hear().unwrap(), "git is not installed, or not in PATH");
}
