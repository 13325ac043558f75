//! Every kind of repository: whole sessions in each.

use std::fs;

use super::{everything_landed, stage};
use crate::script::{Script, plan, subject, task};
use crate::stage::{BLUEFLAME, RESUME, Stage};

/// Puts the repository and what is beside it at another path. The stage finds it
/// by a link; the program finds itself where it really is.
fn move_to(stage: &Stage, place: &str) {
    let place = stage.env.path(place);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::rename(stage.repository(), &place).unwrap();
    std::os::unix::fs::symlink(&place, stage.repository()).unwrap();
    for name in ["plan.yaml", "script.yaml", "decisions.yaml"] {
        let beside = place.parent().unwrap().join(name);
        if !beside.exists() {
            fs::copy(stage.env.path(name), beside).unwrap();
        }
    }
}

#[test]
fn names_with_blanks_and_letters_of_any_alphabet() {
    let tasks = [task("task-001", "sizes", "src/größe.txt")];
    let script = Script::new().works("task-001", &[("src/größe.txt", "日本\n")]).passes();
    let stage = Stage::new("")
        .with_file("src/mit Lücke – 日本 'x' \"y\".txt", "of the person\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(super::APPROVE);
    move_to(&stage, "mein Projekt – 日本 'x' $HOME/project");
    stage.run().exits(0);
    assert_eq!(stage.landed(), [subject("task-001")]);
    assert_eq!(stage.read("src/größe.txt"), "日本\n");
    stage.assert_tidy();
}

#[test]
fn a_very_long_path() {
    let stage = stage();
    move_to(&stage, &format!("{}/{}/project", "x".repeat(200), "y".repeat(200)));
    stage.run().exits(0);
    everything_landed(&stage);
}

#[test]
fn a_shallow_clone() {
    let stage = stage();
    stage.git(&["commit", "-q", "--allow-empty", "-m", "chore: more"]);
    let origin = stage.env.path("origin");
    fs::rename(stage.repository(), &origin).unwrap();
    let mut clone = stage.env.command("git");
    clone.args(["clone", "-q", "--depth", "1"]).arg(format!("file://{}", origin.display()));
    clone.arg(stage.repository());
    stage.env.run(clone).success();
    stage.run().exits(0);
    everything_landed(&stage);
    assert_eq!(stage.git(&["rev-parse", "--is-shallow-repository"]), "true");
}

#[test]
fn other_ways_to_name_objects_and_to_keep_references() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let stage = stage();
        fs::remove_dir_all(stage.repository().join(".git")).unwrap();
        stage.git(&["init", "-q", "-b", "main", option]);
        stage.git(&["add", "--all"]);
        stage.git(&["commit", "-q", "-m", "chore: a small project"]);
        let ran = stage.run().exits(0);
        assert!(!ran.stderr.contains("no snapshots"), "{ran}");
        everything_landed(&stage);
    }
}

#[test]
fn a_linked_work_tree_and_a_detached_head() {
    let stage = stage();
    stage.git(&["checkout", "-q", "--detach"]);
    let linked = stage.env.path("linked");
    stage.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let mut command = stage.command(&stage.run_arguments());
    command.current_dir(&linked);
    let ran = stage.env.run(command);
    assert!(ran.status.success(), "{ran}");
    everything_landed(&stage);
    // Neither checkout was on the base branch, so neither changed.
    assert!(!stage.repository().join("src").exists() && !linked.join("src").exists());
}

#[test]
fn a_bare_repository_is_refused_with_what_to_do() {
    let stage = stage();
    let bare = stage.env.path("bare.git");
    stage.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let mut command = stage.env.command(BLUEFLAME);
    command.arg("init").current_dir(&bare);
    let ran = stage.env.run(command);
    assert_eq!(ran.code(), Some(3), "{ran}");
    assert!(ran.stderr.contains("is a bare repository: it has no files"), "{ran}");
    assert!(ran.stderr.contains("hint: clone it"), "{ran}");
}

#[test]
fn a_person_whom_git_does_not_know() {
    let stage = stage();
    let wrapper = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME"];
    let wrapper = wrapper.iter().flat_map(|name| ["-u", *name]);
    let wrapper: Vec<String> = ["env"]
        .into_iter()
        .chain(wrapper)
        .chain(["-u", "GIT_COMMITTER_EMAIL"])
        .map(str::to_owned)
        .collect();
    stage.start_under(&wrapper, &stage.run_arguments()).end().exits(0);
    everything_landed(&stage);
    assert!(stage.git(&["log", "-1", "--format=%an", "main"]).contains("Blue Flame"));
}

#[test]
fn a_sparse_checkout_stays_one() {
    let stage = stage().with_file("lib/a.txt", "a\n").with_file("docs/b.txt", "b\n");
    stage.git(&["sparse-checkout", "set", "--cone", "lib"]);
    stage.run().exits(0);
    everything_landed(&stage);
    assert!(!stage.repository().join("docs").exists() && !stage.repository().join("src").exists());
    assert_eq!(stage.git(&["sparse-checkout", "list"]), "lib");
    stage.git(&["sparse-checkout", "disable"]);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    stage.assert_tidy();
}

#[test]
fn line_ends_of_the_person() {
    let stage = stage();
    stage.git(&["config", "core.autocrlf", "true"]);
    stage.run().exits(0);
    everything_landed(&stage);
    assert_eq!(stage.read("src/a.txt"), "a\r\n");
    assert_eq!(stage.git(&["show", "main:src/a.txt"]), "a");
}

#[test]
fn a_repository_inside_the_repository_is_left_alone() {
    let stage = stage();
    let inner = stage.env.repository("project/inner");
    let commit = inner.write("file.txt", "inner\n").commit("chore: inner");
    stage.run().exits(0);
    assert_eq!(stage.landed(), ["task-001", "task-002"].map(subject));
    assert_eq!(stage.git(&["status", "--porcelain"]), "?? inner/");
    assert_eq!(inner.git(["rev-parse", "HEAD"]).trim(), commit);
}

#[test]
fn where_git_is_told_to_look_elsewhere_the_repository_at_hand_counts() {
    let stage = stage();
    let index = stage.env.path("another-index").display().to_string();
    let variables = [
        ("GIT_DIR", "/nonexistent"),
        ("GIT_WORK_TREE", "/"),
        ("GIT_INDEX_FILE", index.as_str()),
        ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
    ];
    stage.begin_with(&variables).end().exits(0);
    everything_landed(&stage);
    assert!(!stage.env.path("another-index").exists());
}

/// Two branches that cannot be brought together, on the base branch.
fn with_a_conflict() -> Stage {
    let stage = stage();
    stage.git(&["checkout", "-q", "-b", "other"]);
    stage.write("README.md", "of another\n");
    stage.git(&["commit", "-qam", "other"]);
    stage.git(&["checkout", "-q", "main"]);
    stage.write("README.md", "of mine\n");
    stage.git(&["commit", "-qam", "mine"]);
    stage
}

/// The person is in the middle of something that git keeps notes of: everything
/// lands, nothing of theirs is touched, and it is published when they are done.
fn in_the_middle_of(begin: &[&str], says: &str, abort: &[&str]) {
    let stage = with_a_conflict();
    let mut git = stage.env.command("git");
    git.args(begin).current_dir(stage.repository());
    assert!(!stage.env.run(git).status.success(), "{begin:?} did not stop");
    let own = |stage: &Stage| {
        let notes = stage.git(&["status", "--porcelain=v2", "--branch", "--untracked-files=all"]);
        (notes, stage.git(&["rev-parse", "HEAD"]), stage.read("README.md"))
    };
    let before = own(&stage);
    stage.run().exits(0).says(says).says("blueflame publish");
    assert_eq!(own(&stage), before, "{begin:?}");
    stage.git(abort);
    stage.blueflame(&["publish"]).exits(0);
    everything_landed(&stage);
}

#[test]
fn a_merge_of_the_persons_is_not_disturbed() {
    in_the_middle_of(&["merge", "-q", "other"], "a merge is not finished", &["merge", "--abort"]);
}

#[test]
fn a_rebase_of_the_persons_is_not_disturbed() {
    let says = "a rebase of `main` is not finished";
    in_the_middle_of(&["rebase", "-q", "other"], says, &["rebase", "--abort"]);
    let apply = ["rebase", "-q", "--apply", "other"];
    in_the_middle_of(&apply, says, &["rebase", "--abort"]);
}

#[test]
fn picking_and_taking_back_of_the_persons_is_not_disturbed() {
    let abort = ["cherry-pick", "--abort"];
    in_the_middle_of(&["cherry-pick", "other"], "a cherry-pick is not finished", &abort);
    let revert = ["revert", "--no-edit", "other"];
    in_the_middle_of(&revert, "a revert is not finished", &["revert", "--abort"]);
}

/// A checkout of the base branch in which something is looked for by halves.
#[test]
fn a_bisection_of_the_persons_is_not_disturbed() {
    let stage = stage();
    for number in 1..=4 {
        stage.git(&["commit", "-q", "--allow-empty", "-m", &format!("chore: number {number}")]);
    }
    stage.git(&["bisect", "start", "HEAD", "HEAD~4"]);
    let head = stage.git(&["rev-parse", "HEAD"]);
    stage.run().exits(0).says("bisect").says("blueflame publish");
    assert_eq!(stage.git(&["rev-parse", "HEAD"]), head);
    stage.git(&["bisect", "reset"]);
    stage.blueflame(&["publish"]).exits(0);
    everything_landed(&stage);
}

/// Lines in names, and bytes that are no text.
#[test]
fn names_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let stage = stage();
    let names: [&[u8]; 2] = [b"lib/one\ntwo.txt", b"lib/\xff\xfe.txt"];
    fs::create_dir(stage.repository().join("lib")).unwrap();
    for name in names {
        fs::write(stage.repository().join(std::ffi::OsStr::from_bytes(name)), "committed").unwrap();
    }
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "-q", "--amend", "--no-edit"]);
    let edited = stage.repository().join(std::ffi::OsStr::from_bytes(names[0]));
    fs::write(&edited, "of the person").unwrap();
    stage.run().exits(0);
    assert_eq!(stage.landed(), ["task-001", "task-002"].map(subject));
    assert_eq!(stage.git(&["status", "--porcelain"]), r#" M "lib/one\ntwo.txt""#);
    assert_eq!(fs::read_to_string(edited).unwrap(), "of the person");
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

#[test]
fn large_files_whose_program_is_not_installed_keep_it_from_being_published_only() {
    let stage = stage()
        .with_file("large.bin", POINTER)
        .with_file(".gitattributes", "*.bin filter=lfs -text\n");
    for (key, value) in [("process", "git-lfs-missing filter-process"), ("required", "true")] {
        stage.git(&["config", &format!("filter.lfs.{key}"), value]);
    }
    // So that git has to look at the file.
    fs::write(stage.repository().join("large.bin"), POINTER).unwrap();
    stage
        .run()
        .exits(0)
        .says("`git status` fails in")
        .says("when it works there, `blueflame publish`");
    assert_eq!(stage.landed(), Vec::<String>::new());
    stage.git(&["config", "--unset", "filter.lfs.process"]);
    stage.git(&["config", "filter.lfs.required", "false"]);
    stage.blueflame(&["publish"]).exits(0);
    assert_eq!(stage.read("large.bin"), POINTER);
    everything_landed(&stage);
}

#[test]
fn a_repository_of_somebody_else_is_for_the_person_to_trust() {
    // Only root can give a repository away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = stage();
    let mut chown = stage.env.command("chown");
    chown.args(["-R", "12345"]).arg(stage.repository());
    stage.env.run(chown).success();
    stage.run().exits(2).says("dubious ownership").says("safe.directory");
    let path = stage.repository().display().to_string();
    stage.git(&["config", "--global", "--add", "safe.directory", &path]);
    stage.run().exits(0);
    stage.start(&RESUME).end().exits(0).says("has ended: everything landed");
    everything_landed(&stage);
}
