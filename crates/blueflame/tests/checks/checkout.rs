//! Clean checkouts, and acceptance on them.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use blueflame::checks::acceptance::{failures, run_acceptance};
use blueflame::checks::checkout::CleanCheckout;
use blueflame::checks::command::CommandResult;
use blueflame_core::ids::Oid;
use blueflame_testkit::env::TestEnv;
use blueflame_testkit::repository::Repository;
use tokio::sync::watch;

use super::commands::surroundings;

fn oid(text: &str) -> Oid {
    Oid::new(text).unwrap()
}

/// Everything about the person's repository that a checkout could disturb.
fn state(repository: &Repository<'_>) -> Vec<String> {
    let index = std::fs::read(repository.path().join(".git/index")).unwrap();
    vec![
        format!("{index:?}"),
        repository.git(["status", "--porcelain=v2", "--branch"]),
        repository.git(["worktree", "list", "--porcelain"]),
        repository.git(["for-each-ref"]),
        repository.git(["config", "--list", "--local"]),
        repository.git(["count-objects", "-v"]),
    ]
}

#[tokio::test]
async fn a_checkout_holds_the_commit_and_nothing_of_the_person() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    repository.write("a.txt", "one\n").write("dir/b.txt", "two\n");
    let commit = repository.commit("one");
    repository.write("a.txt", "later\n").commit("two");
    repository.write("a.txt", "dirty\n").write("untracked", "x").write("staged", "y");
    repository.git(["add", "staged"]);
    let marker = env.path("hook-ran");
    let hook = repository.path().join(".git/hooks/post-checkout");
    repository
        .write(".git/hooks/post-checkout", &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = state(&repository);

    let place = env.path("place");
    let common = repository.path().join(".git");
    let checkout = CleanCheckout::of(&common, &oid(&commit), &place).await.unwrap();
    let directory = checkout.directory().to_owned();
    let mut names: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".git", "a.txt", "dir"]);
    assert_eq!(std::fs::read_to_string(directory.join("a.txt")).unwrap(), "one\n");
    let mut git = env.command("git");
    git.args(["status", "--porcelain=v2", "--branch"]).current_dir(&directory);
    let status = env.run(git).success();
    assert_eq!(status, format!("# branch.oid {commit}\n# branch.head (detached)\n"));

    std::fs::create_dir_all(directory.join("made/deep")).unwrap();
    std::fs::write(directory.join("made/deep/file"), "x").unwrap();
    let read_only = std::fs::Permissions::from_mode(0o500);
    std::fs::set_permissions(directory.join("made/deep"), read_only).unwrap();
    drop(checkout);
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "something was left");
    assert!(!marker.exists(), "a hook of the person ran");
    assert_eq!(state(&repository), before);
}

#[tokio::test]
async fn a_checkout_that_fails_leaves_nothing() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    repository.write("a", "1").commit("one");
    let place = env.path("place");
    let common = repository.path().join(".git");
    let nobody = oid(&"5".repeat(40));
    let error = CleanCheckout::of(&common, &nobody, &place).await.unwrap_err().to_string();
    assert!(error.contains("checkout --quiet"), "{error}");
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "something was left");
    assert!(CleanCheckout::of(&env.path("none"), &nobody, &place).await.is_err());
}

#[tokio::test]
async fn a_repository_with_long_names_is_checked_out_too() {
    let env = TestEnv::new();
    let mut git = env.command("git");
    git.args(["init", "--quiet", "--object-format=sha256", "long"]);
    env.run(git).success();
    std::fs::write(env.path("long/a"), "1").unwrap();
    let mut git = env.command("sh");
    git.args(["-c", "cd long && git add a && git commit -qm a && git rev-parse HEAD"]);
    let commit = env.run(git).success();
    let common = env.path("long/.git");
    let checkout =
        CleanCheckout::of(&common, &oid(commit.trim()), &env.path("place")).await.unwrap();
    assert_eq!(std::fs::read_to_string(checkout.directory().join("a")).unwrap(), "1");
    checkout.remove().unwrap();
}

#[tokio::test]
async fn acceptance_runs_everything_on_the_commit() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let commit = repository.write("a.txt", "good\n").commit("one");
    repository.write("a.txt", "bad\n");
    let common = repository.path().join(".git");
    let checkout = CleanCheckout::of(&common, &oid(&commit), &env.path("place")).await.unwrap();
    let commands =
        ["grep good a.txt", "echo why >&2; exit 7", "test -d .git", "sleep 9"].map(str::to_owned);
    let mut stop = watch::channel(false).1;
    let limit = Duration::from_millis(1_500);
    let results = run_acceptance(&checkout, &commands, limit, &surroundings(&env), &mut stop).await;
    let passed: Vec<bool> = results.iter().map(CommandResult::passed).collect();
    assert_eq!(passed, [true, false, true, false]);
    assert_eq!(
        failures(&results),
        [
            "`echo why >&2; exit 7` failed with exit code 7:\n  why",
            "`sleep 9` took longer than 1.5 s and was stopped",
        ]
    );
}
