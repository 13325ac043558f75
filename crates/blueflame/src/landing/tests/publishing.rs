//! Publishing to the base branch, beside a person at work.

use std::os::unix::fs::symlink;

use super::*;

/// A change of every sort.
fn many(scene: &Scene<'_>) -> PublishOrder {
    let work = scene.work(
        "one",
        &scene.at("main"),
        &[(
            "feat(one): many",
            &[("a.txt", Some("x\n")), ("b.txt", None), ("dir/ü n.txt", Some("new\n"))],
        )],
    );
    scene.landed("auth.c1", &[work])
}

/// What a person has lying around, none of it in the way.
fn personal_things(scene: &Scene<'_>) {
    let repository = &scene.repository;
    repository.write("dir/c.txt", "staged\n").git(["add", "dir/c.txt"]);
    repository.write("dir/c.txt", "staged and changed again\n");
    repository.write("note to self.txt", "untracked\n");
    repository.write("secret.env", "ignored\n").write("build/out", "ignored too\n");
}

#[test]
fn a_branch_that_is_checked_out_moves_with_its_files() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.at("HEAD"), order.commit);
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(scene.path().join("dir/ü n.txt")).unwrap(), "new\n");
    assert!(!scene.path().join("b.txt").exists());

    let after = (scene.refs(), scene.fingerprint(scene.path()));
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!((scene.refs(), scene.fingerprint(scene.path())), after);
    assert!(!scene.landing.intent_path().exists());
}

#[test]
fn what_a_person_has_not_committed_stays_as_it_is() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    personal_things(&scene);
    let before = scene.fingerprint(scene.path());
    assert_eq!(scene.publish(&order), Publication::Published);
    let after = scene.fingerprint(scene.path());
    for name in ["dir/c.txt", "note to self.txt", "secret.env", "build/out", "the status"] {
        assert_eq!(after[Path::new(name)], before[Path::new(name)], "{name}");
    }
    let staged = scene.repository.git(["show", ":dir/c.txt"]);
    assert_eq!(staged, "staged\n");
}

type Row = (&'static str, fn(&Scene<'_>), &'static str);

/// One row for each thing that can be in the way: how it gets there, and the
/// name that the person is told.
#[test]
fn what_stands_in_the_way_is_named_and_left_alone() {
    let rows: [Row; 9] = [
        ("changed", |s| _ = s.repository.write("a.txt", "mine\n"), "a.txt"),
        ("staged", |s| _ = s.repository.write("a.txt", "mine\n").git(["add", "-A"]), "a.txt"),
        ("deleted", |s| fs::remove_file(s.path().join("a.txt")).unwrap(), "a.txt"),
        ("changed, to be deleted", |s| _ = s.repository.write("b.txt", "mine\n"), "b.txt"),
        ("untracked", |s| _ = s.repository.write("dir/ü n.txt", "mine\n"), "dir/ü n.txt"),
        ("the same, untracked", |s| _ = s.repository.write("dir/ü n.txt", "new\n"), "dir/ü n.txt"),
        ("ignored", |s| _ = s.repository.write("local.env", "SECRET\n"), "local.env"),
        ("ignored directory", |s| _ = s.repository.write("build/out", "mine\n"), "build"),
        ("a link", |s| symlink("/tmp", s.path().join("deep")).unwrap(), "deep"),
    ];
    for (case, put, named) in rows {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let base = scene.at("main");
        let work = scene.work(
            "one",
            &base,
            &[(
                "feat(one): many",
                &[
                    ("a.txt", Some("x\n")),
                    ("b.txt", None),
                    ("dir/ü n.txt", Some("new\n")),
                    ("local.env", Some("from the change\n")),
                    ("build", Some("a file\n")),
                    ("deep/er.txt", Some("a file\n")),
                ],
            )],
        );
        let order = scene.landed("auth.c1", &[work]);
        put(&scene);
        let before = scene.fingerprint(scene.path());
        let reason = scene.waits(&order);
        let expected = format!(
            "`{named}` in `$ROOT/project` would be overwritten; commit, stash or move it, then \
             `blueflame publish`"
        );
        assert_eq!(reason, expected, "{case}");
        assert_eq!(scene.fingerprint(scene.path()), before, "{case}");
        assert_eq!(scene.at("main"), base, "{case}");
        assert!(!scene.landing.intent_path().exists(), "{case}");
    }
}

#[test]
fn files_and_directories_may_change_places() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let work = scene.work(
        "one",
        &scene.at("main"),
        &[
            ("feat(one): away", &[("a.txt", None), ("dir/c.txt", None)]),
            ("feat(one): swap", &[("a.txt/inner", Some("1\n")), ("dir", Some("2\n"))]),
        ],
    );
    let order = scene.landed("auth.c1", &[work]);
    // An untracked file in a directory that should become a file.
    scene.repository.write("dir/mine", "mine\n");
    let before = scene.fingerprint(scene.path());
    assert!(scene.waits(&order).starts_with("git does not move `main`: "));
    assert_eq!(scene.fingerprint(scene.path()), before);
    fs::remove_file(scene.path().join("dir/mine")).unwrap();
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_is_checked_out_nowhere_is_just_moved() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    for how in [["switch", "--quiet", "--detach"], ["switch", "--quiet", "-c"]] {
        let mut command = env.command("git");
        command.current_dir(scene.path()).args(how);
        if how[2] == "-c" {
            command.arg("feature");
        }
        env.run(command).success();
        personal_things(&scene);
        let before = scene.fingerprint(scene.path());
        assert_eq!(scene.publish(&order), Publication::Published);
        assert_eq!(scene.at("main"), order.commit);
        assert_eq!(scene.fingerprint(scene.path()), before);
        let base = order.expected.as_str();
        scene.repository.git(["update-ref", "refs/heads/main", base]);
        scene.repository.git(["reset", "--quiet", "--hard"]);
    }
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_moves_there() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    let other = env.path("else where");
    let name = other.display().to_string();
    scene.repository.git(["switch", "--quiet", "-c", "feature"]);
    scene.repository.git(["worktree", "add", "--quiet", &name, "main"]);
    let here = scene.fingerprint(scene.path());
    fs::write(other.join("mine.txt"), "mine\n").unwrap();
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.fingerprint(scene.path()), here);
    assert_eq!(scene.repository.git(["-C", &name, "status", "--porcelain"]), "?? mine.txt\n");
    assert_eq!(fs::read_to_string(other.join("a.txt")).unwrap(), "x\n");
}

#[test]
fn a_checkout_that_is_gone_or_double_blocks() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    let other = env.path("other").display().to_string();
    scene.repository.git(["worktree", "add", "--quiet", "--force", &other, "main"]);
    assert!(scene.waits(&order).starts_with("`main` is checked out twice, in "));
    scene.repository.git(["switch", "--quiet", "--detach"]);
    fs::remove_dir_all(&other).unwrap();
    assert!(
        scene.waits(&order).starts_with("`main` is checked out in `$ROOT/other`, which is not")
    );
    scene.repository.git(["worktree", "prune"]);
    assert_eq!(scene.publish(&order), Publication::Published);
}

#[test]
fn nothing_is_published_into_the_middle_of_something() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let repository = &scene.repository;
    let start = scene.at("main");
    repository.git(["switch", "--quiet", "-c", "side", start.as_str()]);
    repository.write("a.txt", "side\n").commit("side");
    repository.git(["switch", "--quiet", "main"]);
    repository.write("a.txt", "main\n").commit("main");
    let order = many(&scene);
    let cases = [
        (["merge", "side"], "a merge is not finished in"),
        (["cherry-pick", "side"], "a cherry-pick is not finished in"),
        (["revert", "HEAD~1"], "a revert is not finished in"),
        (["rebase", "side"], "a rebase of `main` is not finished yet"),
    ];
    for (command, expected) in cases {
        let ran = repository.run("git", command);
        if command[0] != "revert" {
            assert!(!ran.status.success(), "{ran}");
        } else if ran.status.success() {
            // It did not conflict: begin one that stops.
            repository.git(["reset", "--quiet", "--hard", order.expected.as_str()]);
            repository.git(["revert", "--no-commit", "HEAD"]);
        }
        let before = scene.fingerprint(scene.path());
        let reason = scene.waits(&order);
        assert!(reason.starts_with(expected), "{command:?}: {reason}");
        assert_eq!(scene.fingerprint(scene.path()), before, "{command:?}");
        repository.git([command[0], "--abort"]);
    }
    repository.git(["bisect", "start"]);
    assert!(scene.waits(&order).contains("bisect"), "bisect");
    repository.git(["bisect", "reset"]);
    assert_eq!(scene.publish(&order), Publication::Published);
}

#[test]
fn a_lock_of_someone_else_is_respected() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    let lock = scene.path().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let reason = scene.waits(&order);
    assert!(reason.starts_with("`$ROOT/project/.git/index.lock` is there: "), "{reason}");
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
    assert_eq!(scene.publish(&order), Publication::Published);
}

#[test]
fn a_base_that_moved_is_reported_with_its_place() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    scene.repository.write("dir/c.txt", "person\n").commit("the person goes on");
    let base = scene.at("main");
    let moved = Publication::Moved { base: base.clone() };
    assert_eq!(scene.publish(&order), moved);
    scene.repository.git(["switch", "--quiet", "--detach"]);
    assert_eq!(scene.publish(&order), moved);
    assert_eq!(scene.at("main"), base);
}

#[test]
fn only_what_landed_is_published() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let tip = scene.tip();
    let one = [scene.edit("one", &tip.base, "a.txt", "x\n")];
    let fold = scene.folded("auth.c1", &tip, &one);
    let order = publish_order(&tip, &fold.commit);
    assert!(matches!(scene.landing.publish(&order), Err(LandingError::NotLanded { .. })));
}

/// The person's `reference-transaction` hook is heard; `post-merge`, and hooks
/// from the work tree, are not run.
#[test]
fn a_hook_may_refuse_and_no_other_runs() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    let hook = |dir: &str, name: &str, script: &str| {
        scene.repository.write(&format!("{dir}/{name}"), &format!("#!/bin/sh\n{script}\n"));
        let path = scene.path().join(dir).join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let trace = env.path("ran");
    let ran = format!("echo \"$0\" >> {}", trace.display());
    hook(".git/hooks", "post-merge", &ran);
    hook(".git/hooks", "reference-transaction", "grep -q refs/heads/main && exit 1; exit 0");
    let before = scene.fingerprint(scene.path());
    let reason = scene.waits(&order);
    assert!(reason.starts_with("git does not move `main`: "), "{reason}");
    assert_eq!(scene.fingerprint(scene.path()), before);
    assert_eq!(scene.at("main"), order.expected);

    hook("hooks", "reference-transaction", &ran);
    scene.repository.git(["config", "core.hooksPath", "hooks"]);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert!(!trace.exists());
}

#[test]
fn settings_of_the_person_do_not_change_what_publishing_means() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    for (key, value) in [
        ("merge.autoStash", "true"),
        ("merge.ff", "false"),
        ("branch.main.mergeOptions", "--squash --no-ff"),
        ("diff.noprefix", "true"),
        ("core.pager", "false"),
        ("color.ui", "always"),
    ] {
        scene.repository.git(["config", key, value]);
    }
    scene.repository.write("dir/c.txt", "mine\n");
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.at("main"), order.commit);
    assert_eq!(fs::read_to_string(scene.path().join("dir/c.txt")).unwrap(), "mine\n");
    assert_eq!(scene.repository.git(["stash", "list"]), "");
}

#[test]
fn a_repository_with_long_object_names_is_no_different() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    fs::remove_dir_all(repository.path().join(".git")).unwrap();
    repository.git(["init", "--quiet", "-b", "main", "--object-format=sha256"]);
    let scene = Scene::of(&env, repository);
    let order = many(&scene);
    assert_eq!(order.commit.as_str().len(), 64);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
}

#[test]
fn a_bare_repository_has_no_checkout_to_move() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let order = many(&scene);
    scene.repository.git(["config", "core.bare", "true"]);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.at("main"), order.commit);
}
