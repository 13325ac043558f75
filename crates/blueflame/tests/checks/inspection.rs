//! Finished work in real repositories, read and judged.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use blueflame::checks::facts;
use blueflame::git::objects::Objects;
use blueflame_core::config;
use blueflame_core::ids::{Oid, Role};
use blueflame_core::inspection::{self, Inspection, TooMuch, Work};
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::{Policy, PolicyRules};
use blueflame_testkit::env::TestEnv;
use blueflame_testkit::repository::Repository;

const CONFIG: &str = r#"
schema_version: 2
permissions:
  allowed_paths: ["src/**", "tests/**"]
  blocked_paths: [".env*"]
validation:
  commit_format: { pattern: "^(feat|fix): .+" }
  require_tests: { enabled: true, source_patterns: ["src/**"], test_patterns: ["tests/**"] }
"#;

fn policy() -> Policy {
    let config = config::read(CONFIG.as_bytes()).into_result().unwrap().0;
    let locks = ["src", "tests"].map(|lock| LockPath::new(lock).unwrap());
    Policy::new(PolicyRules::of(&config, Role::Worker, &locks)).unwrap()
}

const AUTHOR: &str = "Ada <ada@example.com>";
/// After whatever the repositories of tests say.
const NOW: i64 = 4_000_000_000;

async fn gather(repository: &Repository<'_>, start: &str) -> Work {
    let head = repository.git(["rev-parse", "HEAD"]);
    let (start, head) = (Oid::new(start).unwrap(), Oid::new(head.trim()).unwrap());
    facts::gather(&Objects::of(&repository.path().join(".git")), &start, &head, AUTHOR, NOW)
        .await
        .unwrap()
}

async fn inspect(repository: &Repository<'_>, start: &str) -> Inspection {
    inspection::inspect(&policy(), &gather(repository, start).await)
}

fn begin(env: &TestEnv) -> (Repository<'_>, String) {
    let repository = env.repository("project");
    repository
        .write("src/a.rs", "fn a() {}\n")
        .write("tests/a.rs", "#[test]\nfn a() { assert!(b()); }\n");
    repository.write("README.md", "read me\n");
    let start = repository.commit("start");
    (repository, start)
}

#[tokio::test]
async fn an_ordinary_change_passes() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    repository.write("src/a.rs", "fn a() {}\nfn b() {}\n").commit("feat: add b");
    repository.write("src/new file.rs", "").write("tests/b.rs", "no newline").commit("fix: b");
    let work = gather(&repository, &start).await;
    let paths: Vec<&str> = work.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["src/a.rs", "src/new file.rs", "tests/b.rs"]);
    assert_eq!(work.changes[0].lines.added[0].text, "fn b() {}");
    assert_eq!(work.changes[0].lines.added[0].number, 2);
    assert_eq!(work.changes[0].after.as_ref().unwrap().size, 20);
    let messages: Vec<&str> = work.commits.iter().map(|commit| commit.message.as_str()).collect();
    assert_eq!(messages, ["feat: add b", "fix: b"]);
    assert_eq!(inspection::inspect(&policy(), &work), Inspection::default());
    assert_eq!(inspect(&repository, work.commits[1].name.as_str()).await, Inspection::default());
}

#[tokio::test]
async fn everything_that_git_can_hold_is_seen() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    let path = repository.path();
    symlink("/etc/passwd", path.join("src/link")).unwrap();
    std::fs::write(path.join(OsStr::from_bytes(b"src/b\xffd")), "x").unwrap();
    repository
        .write("src/two\nlines", "x")
        .write("src/tool", "\0binary")
        .write(".gitattributes", "* -diff\n");
    repository.write("src/.claude/settings.json", "{}").write("src/.env", "A=1");
    std::fs::remove_file(path.join("README.md")).unwrap();
    symlink("src/a.rs", path.join("README.md")).unwrap();
    repository.git(["add", "--all"]);
    let gitlink = format!("160000,{start},src/module");
    repository.git(["update-index", "--add", "--cacheinfo", &gitlink]);
    repository.git(["commit", "--quiet", "-m", "wip\n\nbody"]);
    let found = inspect(&repository, &start).await;
    let commit = repository.git(["rev-parse", "--short=12", "HEAD"]);
    let commit = commit.trim();
    assert_eq!(
        found.violations(),
        [
            "paths.protected: `.gitattributes` is never changed by agents. Leave it as it is.",
            "changes.kind: `README.md` is a symbolic link or submodule. Commit plain files.",
            "paths.protected: src/.claude/settings.json: `.claude` is never changed by agents. Leave it as it is.",
            "paths.blocked: `src/.env` matches the blocked path `.env*`. Leave it as it is; if the task needs it, say so in your answer.",
            "paths.strange: src/b\u{fffd}d: the path is not plain. Use plain names.",
            "changes.kind: `src/link` is a symbolic link or submodule. Commit plain files.",
            "changes.kind: `src/module` is a symbolic link or submodule. Commit plain files.",
            "paths.strange: src/two\\nlines: the path is not plain. Use plain names.",
            "changes.tests: the change as a whole: `src/.claude/settings.json` was changed without a test. Add or change a test that matches `tests/**`.",
            "changes.binary: `src/tool` is a binary file. Commit sources, not what is made from them.",
            &format!(
                "commit.format: the first line of the message, `wip`, does not have the form that is asked for. Make it match `^(feat|fix): .+`. (in commit {commit})"
            ),
        ]
    );
}

#[tokio::test]
async fn what_was_taken_back_is_still_in_the_history() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    let key = concat!("AKIA", "Z7Q2N4KD83HFMW5T");
    repository.write("src/a.rs", &format!("fn a() {{}}\n// {key}\n")).write(".env", "A=1");
    let first = repository.commit("feat: one");
    std::fs::remove_file(repository.path().join(".env")).unwrap();
    repository.write("src/a.rs", "fn a() {}\n").write("tests/c.rs", "c").commit("fix: two");
    let found = inspect(&repository, &start).await;
    let first = &first[..12];
    assert_eq!(
        found.violations(),
        [
            format!(
                "paths.blocked: `.env` matches the blocked path `.env*`. Leave it as it is; if the task needs it, say so in your answer. (in commit {first})"
            ),
            format!(
                "changes.secret: `src/a.rs` line 2 holds an AWS access key in commit {first}. Take it out of the history as well."
            ),
        ]
    );
    assert!(!found.violations().concat().contains(key), "the key itself was told");
}

#[tokio::test]
async fn another_history_is_refused() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    repository.git(["checkout", "--quiet", "--orphan", "other"]);
    repository.write("tests/c.rs", "c").commit("feat: from nothing");
    let work = gather(&repository, &start).await;
    assert!(!work.descends);
    assert_eq!(work.commits.len(), 1);
    assert_eq!(work.commits[0].changes.len(), 4, "against nothing");
    let found = inspection::inspect(&policy(), &work);
    assert_eq!(found.violations[0].rule, "changes.history");
}

/// The person's own settings change how diffs look, not what is seen.
#[tokio::test]
async fn settings_and_replaced_objects_hide_nothing() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    let key = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
    repository.write("src/a.rs", &format!("fn a() {{}}\n// {key}\n")).write("tests/c.rs", "c\n");
    repository.commit("feat: one");
    let expected = inspect(&repository, &start).await;
    assert_eq!(expected.violations.len(), 1);
    for (name, value) in [
        ("diff.external", "false"),
        ("diff.noprefix", "true"),
        ("diff.renames", "copies"),
        ("diff.algorithm", "histogram"),
        ("diff.submodule", "log"),
        ("diff.x.textconv", "true"),
        ("color.ui", "always"),
        ("log.showSignature", "true"),
        ("core.quotePath", "false"),
    ] {
        repository.git(["config", name, value]);
    }
    repository.write(".git/info/attributes", "* -diff diff=x binary\n");
    let secret = repository.git(["rev-parse", "HEAD:src/a.rs"]);
    let clean = repository.git(["rev-parse", "HEAD:tests/c.rs"]);
    repository.git(["replace", secret.trim(), clean.trim()]);
    let found = inspect(&repository, &start).await;
    let secrets = |found: &Inspection| -> Vec<String> {
        let all = found.violations();
        all.into_iter().filter(|text| text.starts_with("changes.secret")).collect()
    };
    assert_eq!(secrets(&found), secrets(&expected));
}

#[tokio::test]
async fn too_much_is_not_taken_unseen() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    repository.write("src/flood", &"0123456789abcde\n".repeat(4_300_000)).commit("feat: flood");
    let work = gather(&repository, &start).await;
    assert!(matches!(work.too_much[..], [TooMuch::Lines { commit: None, .. }]));
    // Of several commits, the one that does it is told.
    repository.write("src/more", "x").commit("feat: more");
    let work = gather(&repository, &start).await;
    let [TooMuch::Lines { commit: None, .. }, TooMuch::Lines { commit: Some(one), .. }] =
        &work.too_much[..]
    else {
        panic!("{:?}", work.too_much)
    };
    assert_eq!(*one, work.commits[0].name);
    assert_eq!(work.changes[0].path, "src/flood");
    let rules: Vec<String> = inspection::inspect(&policy(), &work)
        .violations
        .into_iter()
        .map(|finding| finding.rule)
        .collect();
    assert_eq!(rules, ["changes.tests", "changes.size", "changes.size", "changes.size"]);
}

#[tokio::test]
async fn commits_beyond_number_and_parents_beyond_number_are_too_much() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    for number in 0..201 {
        repository.git(["commit", "-q", "--allow-empty", "-m", &format!("feat: {number}")]);
    }
    let is_too_much = |work: &Work| {
        assert!(matches!(work.too_much[..], [TooMuch::Commits { .. }]), "{:?}", work.too_much);
        assert!(work.descends, "nobody looked far enough to say otherwise");
        let found = inspection::inspect(&policy(), work).violations;
        assert!(found.iter().any(|it| it.rule == "changes.size"), "{found:?}");
    };
    is_too_much(&gather(&repository, &start).await);
    // One commit, whose parents take more room than all commits may.
    let tree = repository.git(["rev-parse", "HEAD^{tree}"]);
    let parents = format!("parent {start}\n").repeat(210_000);
    let who = "A <a@example.com> 1700000000 +0000";
    let text = format!("tree {}\n{parents}author {who}\ncommitter {who}\n\nfeat: x\n", tree.trim());
    repository.write("commit", &text);
    let commit = repository.git(["hash-object", "-t", "commit", "-w", "commit"]);
    std::fs::remove_file(repository.path().join("commit")).unwrap();
    repository.git(["update-ref", "refs/heads/main", commit.trim()]);
    is_too_much(&gather(&repository, &start).await);
}

#[tokio::test]
async fn nothing_of_the_repository_is_touched() {
    let env = TestEnv::new();
    let (repository, start) = begin(&env);
    repository.write("src/run", "x");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(repository.path().join("src/run"), executable).unwrap();
    repository.write("tests/b.rs", "b").commit("feat: run");
    repository.write("src/a.rs", "dirty").write("untracked", "x");
    let state = || {
        let index = std::fs::read(repository.path().join(".git/index")).unwrap();
        (index, repository.git(["status", "--porcelain"]), repository.git(["count-objects", "-v"]))
    };
    let before = state();
    let found = inspect(&repository, &start).await;
    assert_eq!(state(), before);
    assert_eq!(found.remarks(), ["changes.mode: `src/run` was made executable."]);
}
