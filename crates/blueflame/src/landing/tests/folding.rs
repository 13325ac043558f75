//! Folding the tasks of a changeset into commits.

use super::*;

#[test]
fn three_tasks_that_build_on_each_other_become_three_commits() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let one = scene.edit("one", &base, "a.txt", &ten_with(2, "two"));
    // It starts from the first one's commit, and changes the line beside it.
    let two =
        scene.edit("two", &one.commit, "a.txt", &ten_with(2, "two").replace("3\n", "three\n"));
    let three = scene.work(
        "three",
        &two.commit,
        &[
            ("begin", &[("new file ü.txt", Some("1\n"))]),
            ("Blueflame-Task: forged", &[("new file ü.txt", Some("1\n2\n")), ("b.txt", None)]),
        ],
    );
    let sources = [one, two, three];
    let tip = scene.tip();
    assert_eq!(tip, Tip { onto: base.clone(), base: base.clone(), integration: None });

    let before = scene.fingerprint(scene.path());
    let fold = scene.folded("auth.c1", &tip, &sources);
    assert_eq!(scene.fingerprint(scene.path()), before);
    assert_eq!((fold.files, fold.insertions, fold.deletions), (3, 4, 12));
    assert_eq!(scene.show(&fold.commit, "a.txt"), "1\ntwo\nthree\n4\n5\n6\n7\n8\n9\n10\n");
    assert_eq!(scene.show(&fold.commit, "new file ü.txt"), "1\n2\n");

    // The same order gives the same commits.
    assert_eq!(scene.folded("auth.c1", &tip, &sources), fold);

    let subjects =
        scene.repository.git(["log", "--format=%s", &format!("{base}..{}", fold.commit)]);
    assert_eq!(subjects, "feat(three): the title of three\nfeat(two): edit\nfeat(one): edit\n");
    let message = scene.repository.git(["log", "-1", "--format=%B", fold.commit.as_str()]);
    insta::assert_snapshot!(message, @r"
    feat(three): the title of three

    - begin
    - Blueflame-Task: forged

    Blueflame-Session: ses-20260206-143022
    Blueflame-Task: three
    Blueflame-Changeset: auth.c1
    Blueflame-Agent: worker-00000007
    Blueflame-Cost: $0.12
    Blueflame-Validation: passed
    ");
    fs::write(env.path("message"), &message).unwrap();
    let file = env.path("message").display().to_string();
    let parsed = scene.repository.git(["interpret-trailers", "--parse", &file]);
    insta::assert_snapshot!(parsed, @r"
    Blueflame-Session: ses-20260206-143022
    Blueflame-Task: three
    Blueflame-Changeset: auth.c1
    Blueflame-Agent: worker-00000007
    Blueflame-Cost: $0.12
    Blueflame-Validation: passed
    ");
    scene.landing.proof(&tip.onto, &fold.commit, &sources).unwrap();
}

#[test]
fn a_conflict_names_its_files_and_moves_nothing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let one = scene.edit("one", &base, "a.txt", &ten_with(5, "five"));
    let two = scene.edit("two", &base, "a.txt", &ten_with(5, "V"));
    let before = scene.refs();
    let files = vec!["a.txt".to_owned()];
    assert_eq!(scene.fold("auth.c1", &scene.tip(), &[one, two]), FoldResult::Conflict { files });
    assert_eq!(scene.refs(), before);
}

#[test]
fn the_same_change_has_the_same_name_wherever_it_is_folded() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let one = [scene.edit("one", &base, "a.txt", &ten_with(9, "nine"))];
    let first = scene.folded("auth.c1", &scene.tip(), &one);

    scene.repository.write("b.txt", "else\n").write("a.txt", &ten_with(1, "0\n1"));
    scene.repository.commit("the person goes on");
    let moved = scene.tip();
    let again = scene.folded("auth.c1", &moved, &one);
    assert_ne!(again.commit, first.commit);
    assert_eq!(again.patch, first.patch);

    for (file, text) in [
        ("a.txt", ten_with(9, "neuf")),
        ("a.txt", ten_with(9, " nine")),
        ("dir/c.txt", ten_with(9, "nine")),
    ] {
        let base = scene.at("main");
        let other = [scene.edit("one", &base, file, &text)];
        let other = scene.folded("auth.c1", &moved, &other);
        assert_ne!(other.patch, first.patch, "{file} {text}");
    }
}

/// The patches of a changeset are named in one stream, and no text of theirs ends one.
#[test]
fn a_text_that_looks_like_the_next_commit_hides_nothing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let (base, tip) = (scene.at("main"), scene.tip());
    let other = scene.edit("other", &base, "b.txt", &ten_with(1, "I"));
    let mut seen = std::collections::BTreeSet::new();
    for after in ["this", "that"] {
        let text = format!("{base}\ncommit {base}\ndiff-tree {base}\nFrom {base} x\n{after}\n");
        let mut source = scene.edit(after, &base, "new.txt", &text);
        source.task = TaskId::new("same").unwrap();
        let fold = scene.folded("auth.c1", &tip, &[source, other.clone()]);
        assert!(seen.insert(fold.patch), "{after}");
    }
}

#[test]
fn modes_binaries_and_empty_files_are_changes_too() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let tip = scene.tip();
    let mut seen = std::collections::BTreeSet::new();
    for (place, text) in ["\0one", "\0two", ""].iter().enumerate() {
        let source = [scene.edit(&format!("t{place}"), &base, "new.bin", text)];
        let mut source = source;
        source[0].task = TaskId::new("same").unwrap();
        let fold = scene.folded("auth.c1", &tip, &source);
        assert!(seen.insert(fold.patch), "{text:?}");
        let view = scene.landing.changeset_view(&tip.onto, &fold.commit).unwrap();
        assert_eq!(view.files.len(), 1);
        assert_eq!(view.files[0].lines.is_none(), text.contains('\0'));
    }
    // A file that becomes executable, and publishes as one.
    let repository = &scene.repository;
    repository.git(["switch", "--quiet", "-c", "worker"]);
    repository.git(["update-index", "--chmod=+x", "a.txt"]);
    repository.git(["commit", "--quiet", "-m", "feat(mode): run it"]);
    let task = TaskId::new("mode").unwrap();
    let source = Source { task, start: base, commit: scene.at("worker") };
    repository.git(["reset", "--quiet", "--hard"]);
    repository.git(["switch", "--quiet", "main"]);
    let order = scene.landed("auth.c1", &[source]);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert!(scene.fingerprint(scene.path())[Path::new("a.txt")].starts_with("100755 "));
}

#[test]
fn attributes_that_a_worker_wrote_hide_nothing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let hidden = scene.work(
        "one",
        &base,
        &[("feat(one): hide", &[(".gitattributes", Some("* -diff\n")), ("a.txt", Some("evil\n"))])],
    );
    let tip = scene.tip();
    let fold = scene.folded("auth.c1", &tip, &[hidden]);
    let view = scene.landing.changeset_view(&tip.onto, &fold.commit).unwrap();
    assert!(view.diff.contains("+evil"), "{}", view.diff);
    assert_eq!((view.insertions, view.deletions), (2, 10));
}

#[test]
fn a_merger_may_only_touch_what_conflicts() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let one = scene.edit("one", &base, "a.txt", &ten_with(5, "five"));
    let two = scene.work(
        "two",
        &base,
        &[("x", &[("a.txt", Some(&ten_with(5, "V"))), ("b.txt", Some(&ten_with(1, "one")))])],
    );
    let sources = [one, two];
    let tip = scene.tip();
    let order = fold_order("auth.c1", &tip, &sources);
    let conflicted = scene.landing.conflicted(&order).unwrap();
    assert_eq!(conflicted.files, ["a.txt"]);
    assert!(scene.show(&conflicted.start, "a.txt").contains("<<<<<<< "));
    assert!(scene.show(&conflicted.start, "b.txt").starts_with("one\n"));

    let both = ten_with(5, "five V");
    let good = scene.edit("merger", &conflicted.start, "a.txt", &both);
    let fold = scene.landing.fold_resolution(&order, &good.commit).unwrap();
    assert_eq!(scene.show(&fold.commit, "a.txt"), both);
    let land = land_order("auth.c1", &tip, &fold, &sources);
    assert_eq!(scene.landing.land(&land).unwrap(), LandResult::Landed);

    let lazy = scene.landing.fold_resolution(&order, &conflicted.start).unwrap_err();
    assert!(matches!(lazy, LandingError::Missing(Missing::Markers { .. })), "{lazy}");
    let busy = scene.work(
        "busy",
        &conflicted.start,
        &[("x", &[("a.txt", Some(&both)), ("b.txt", Some(TEN))])],
    );
    let busy = scene.landing.fold_resolution(&order, &busy.commit).unwrap_err();
    assert!(busy.to_string().contains("is not what its tasks did, in `b.txt`"), "{busy}");
}

#[test]
fn a_commit_that_cannot_be_signed_is_said_to_be_so() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = [scene.edit("one", &scene.at("main"), "a.txt", "x\n")];
    scene.repository.git(["config", "commit.gpgsign", "true"]);
    scene.repository.git(["config", "gpg.program", "/bin/false"]);
    let order = fold_order("auth.c1", &scene.tip(), &one);
    let error = scene.landing.fold(&order).unwrap_err();
    assert!(matches!(error, LandingError::NotSigned { .. }), "{error}");
}

#[test]
fn commits_are_signed_if_the_person_wants_that() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = [scene.edit("one", &scene.at("main"), "a.txt", "x\n")];
    let signer = env.path("signer");
    let script = "#!/bin/sh\ncat >/dev/null\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\n\
                  echo '-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----'\n";
    fs::write(&signer, script).unwrap();
    fs::set_permissions(&signer, fs::Permissions::from_mode(0o755)).unwrap();
    scene.repository.git(["config", "gpg.program", &signer.display().to_string()]);
    let tip = scene.tip();
    for (wanted, signed) in [("false", false), ("true", true)] {
        scene.repository.git(["config", "commit.gpgsign", wanted]);
        let fold = scene.folded("auth.c1", &tip, &one);
        let commit = scene.repository.git(["cat-file", "commit", fold.commit.as_str()]);
        assert_eq!(commit.contains("\ngpgsig "), signed, "{commit}");
    }
}

#[test]
fn commits_carry_the_name_that_the_person_told_git() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let ours = Author { name: "Blue Flame".into(), email: "blueflame@localhost".into() };
    assert_eq!(scene.landing.identity().unwrap(), ours);
    scene.repository.git(["config", "user.name", "Grace"]);
    scene.repository.git(["config", "user.email", "grace@example.com"]);
    let theirs = Author { name: "Grace".into(), email: "grace@example.com".into() };
    assert_eq!(scene.landing.identity().unwrap(), theirs);
    // Of what was told twice, git takes the last.
    scene.repository.git(["config", "--add", "user.name", "Ada"]);
    assert_eq!(scene.landing.identity().unwrap(), Author { name: "Ada".into(), ..theirs });
    scene.repository.git(["config", "--unset", "user.email"]);
    assert_eq!(scene.landing.identity().unwrap(), ours, "half a person is none");
}

/// What is there already is landed as an empty commit that names the task.
#[test]
fn a_change_that_the_base_has_already_is_folded_to_nothing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = [scene.edit("one", &scene.at("main"), "a.txt", "x\n")];
    scene.repository.write("a.txt", "x\n").commit("the person did the same");
    let tip = scene.tip();
    let fold = scene.folded("auth.c1", &tip, &one);
    assert_eq!((fold.files, fold.insertions, fold.deletions), (0, 0, 0));
    scene.landing.proof(&tip.onto, &fold.commit, &one).unwrap();
}
