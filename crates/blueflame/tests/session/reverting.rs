//! Taking back what landed: by the way that work takes, or not at all.

use std::fs;

use crate::script::{Script, plan, subject, task};
use crate::stage::{Stage, wait_until};
use crate::terminal::Terminal;

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// Three changesets on the base branch; the second and the third change the
/// same file, one after the other.
fn landed(more: &str) -> Stage {
    let tasks = [
        task("task-001", "one", "src/a.txt"),
        task("task-002", "two", "src/b.txt"),
        task("task-003", "three", "src/b.txt").needs(&["task-002"]),
    ];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .works("task-003", &[("src/b.txt", "b, and more\n")])
        .passes();
    let stage = Stage::new(more).plan(&plan(&tasks)).script(&script).decisions(APPROVE);
    stage.signal("verified");
    stage.run().exits(0);
    assert_eq!(stage.landed().len(), 3);
    stage
}

fn exists(stage: &Stage, name: &str) -> bool {
    stage.repository().join(name).exists()
}

#[test]
fn a_changeset_is_taken_back_on_top_of_the_rest_and_can_be_had_again() {
    let stage = landed("merge: {verify: [\"! grep -r BROKEN src\"]}\n");
    stage.write("untracked.txt", "mine\n");
    let told = stage.blueflame(&["revert", "--yes", "one.c1"]).exits(0);
    let told = told.says("/one.c1 changes 1 file, +0 -1:").says("  src/a.txt  +0 -1");
    told.says("one.c1 is taken back by revert-one.c1").says("`main` is at ");
    assert!(!exists(&stage, "src/a.txt"));
    assert_eq!(stage.read("src/b.txt"), "b, and more\n");
    assert_eq!(stage.read("untracked.txt"), "mine\n");
    let id = stage.session_id();
    assert_eq!(stage.landed().last().unwrap(), &format!("revert: {id}/one.c1"));
    let log = stage.blueflame(&["log"]).exits(0).stdout;
    for line in [
        "the person asked to take one.c1 back, as revert-one.c1",
        "revert-one.c1: the merged tree passed",
        "revert-one.c1: landed",
    ] {
        assert!(log.contains(line), "{log}");
    }
    let status = stage.blueflame(&["status"]).exits(0).stdout;
    assert!(status.contains("one.c1 was taken back, by revert-one.c1"), "{status}");

    let told = stage.blueflame(&["revert", "--yes", "one.c1"]).exits(2);
    told.says("`one.c1` was taken back already, by `revert-one.c1`");
    stage.blueflame(&["revert", "--yes", "revert-one.c1"]).exits(0);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    stage.blueflame(&["revert", "--yes", &format!("{id}/one.c1")]).exits(0).says("revert2-one.c1");
    assert!(!exists(&stage, "src/a.txt"));
    fs::remove_file(stage.repository().join("untracked.txt")).unwrap();
    stage.assert_tidy();
}

#[test]
fn what_later_work_builds_on_is_refused_and_the_files_are_named() {
    let stage = landed("");
    let before = stage.git(&["rev-parse", "main"]);
    let told = stage.blueflame(&["revert", "--yes", "two.c1"]).exits(1);
    let told = told.says("later work changed the same places in `src/b.txt`");
    told.says("/three.c1").says("git revert --no-commit");
    assert_eq!(stage.git(&["rev-parse", "main"]), before);
    assert_eq!(stage.events("revert.requested").len(), 0);
    // In the other order it works.
    stage.blueflame(&["revert", "--yes", "three.c1"]).exits(0);
    stage.blueflame(&["revert", "--yes", "two.c1"]).exits(0);
    assert!(!exists(&stage, "src/b.txt"));
    stage.assert_tidy();
}

#[test]
fn without_it_the_check_is_red_and_nothing_changes() {
    let stage = landed("merge: {verify: [\"test -e .bare || test -e src/a.txt\"]}\n");
    let before = stage.git(&["rev-parse", "main"]);
    let told = stage.blueflame(&["revert", "--yes", "one.c1"]).exits(1);
    told.says("does not pass its check").says("nothing was changed");
    assert_eq!(stage.git(&["rev-parse", "main"]), before);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    // Mended by the person, it goes through, under the same name.
    stage.write(".bare", "");
    stage.git(&["add", ".bare"]);
    stage.git(&["commit", "-q", "-m", "the person's"]);
    stage.blueflame(&["revert", "--yes", "one.c1"]).exits(0).says("by revert-one.c1");
    assert!(!exists(&stage, "src/a.txt"));
    stage.assert_tidy();
}

#[test]
fn nobody_to_ask_is_no_yes() {
    let stage = landed("");
    let before = stage.git(&["rev-parse", "main"]);
    let told = stage.blueflame(&["revert", "one.c1"]).exits(4);
    told.says("nobody is there to say whether to take `one.c1` back").says("--yes");
    assert_eq!(stage.git(&["rev-parse", "main"]), before);
    assert_eq!(stage.events("revert.requested").len(), 0);
}

#[test]
fn at_a_terminal_the_person_sees_the_change_and_has_the_last_word() {
    let stage = landed("");
    let before = stage.git(&["rev-parse", "main"]);
    // Enter is no yes.
    for answer in ["n\n", "\n"] {
        let mut terminal = Terminal::start(stage.command(&["revert", "one.c1"]), (100, 30));
        let page = terminal.read_until("take one.c1 back? [y/N] ");
        assert!(page.contains("src/a.txt  +0 -1"), "{page}");
        terminal.type_in(answer);
        let (rest, code) = terminal.finish();
        assert_eq!(code, Some(4), "{rest}");
        assert!(rest.contains("nothing was changed"), "{rest}");
    }
    assert_eq!(stage.git(&["rev-parse", "main"]), before);
    let mut terminal = Terminal::start(stage.command(&["revert", "one.c1"]), (100, 30));
    terminal.read_until("take one.c1 back? [y/N] ");
    terminal.type_in("y\n");
    let (rest, code) = terminal.finish();
    assert_eq!(code, Some(0), "{rest}");
    assert!(!exists(&stage, "src/a.txt"));
    stage.assert_tidy();
}

#[test]
fn what_did_not_land_cannot_be_taken_back() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let stage = Stage::new("")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {one: approve, two: skip}\nsession: [stop]\n");
    stage.run().exits(4);
    let told = stage.blueflame(&["revert", "--yes", "two.c1"]).exits(2);
    told.says("no landed changeset is called `two.c1`").says("skipped by the person");
    let told = stage.blueflame(&["revert", "--yes", "onee.c1"]).exits(2);
    told.says("did you mean `one.c1`?");
    stage.blueflame(&["revert", "--yes", "nonsense"]).exits(2).says("is no changeset id");
}

#[test]
fn the_same_name_in_two_sessions_has_to_be_told_apart() {
    let stage = landed("");
    let first = stage.session_id();
    let tasks = [task("task-009", "one", "src/z.txt")];
    let script = Script::new().works("task-009", &[("src/z.txt", "z\n")]).passes();
    let stage = stage.plan(&plan(&tasks)).script(&script);
    stage.run().exits(0);
    let told = stage.blueflame(&["revert", "--yes", "one.c1"]).exits(2);
    told.says("landed in several sessions").says(&format!("`{first}/one.c1`"));
    stage.blueflame(&["revert", "--yes", &format!("{first}/one.c1")]).exits(0);
    assert!(!exists(&stage, "src/a.txt"));
    assert_eq!(stage.read("src/z.txt"), "z\n");
    // The views are those of the newest session still.
    let newest = stage.session_id();
    assert!(stage.read(".blueflame/status.json").contains(&newest));
}

#[test]
fn killed_while_it_is_checked_it_is_done_the_next_time() {
    let stage = landed("merge: {verify: [\"sh wait.sh verified\"]}\n");
    fs::remove_file(stage.signals().join("verified")).unwrap();
    let mut running = stage.start(&["revert", "--yes", "one.c1"]);
    running.wait_for("a check of the undoing", |journal| {
        journal
            .iter()
            .any(|it| it["t"] == "verify.started" && it["d"]["changeset"] == "revert-one.c1")
    });
    running.kill();
    stage.signal("verified");
    wait_until("the check is gone", || stage.processes().is_empty());
    assert_eq!(stage.read("src/a.txt"), "a\n");
    stage.blueflame(&["revert", "--yes", "one.c1"]).exits(0);
    assert!(!exists(&stage, "src/a.txt"));
    assert_eq!(stage.landed().len(), 4);
}

#[test]
fn killed_after_it_landed_and_before_it_was_recorded_it_is_not_done_twice() {
    let stage = landed("");
    stage.blueflame(&["revert", "--yes", "one.c1"]).exits(0);
    let commits = stage.landed();
    // As if the process had died before it could write any more.
    let path = stage.session().join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let landing = lines.iter().rposition(|line| line.contains("\"land.started\"")).unwrap();
    let kept = &lines[..=landing];
    fs::write(&path, format!("{}\n", kept.join("\n"))).unwrap();
    // Cleaning up meanwhile takes nothing away that is still needed.
    stage.blueflame(&["cleanup", "--unlanded"]).exits(0).says("something was cut short");

    stage.blueflame(&["revert", "--yes", "one.c1"]).exits(0).says("by revert-one.c1");
    assert_eq!(stage.landed(), commits);
    assert_eq!(stage.events("publish.finished").last().unwrap()["result"], "published");
    stage.assert_tidy();
}

#[test]
fn an_undoing_with_a_file_in_the_way_lands_and_waits() {
    let stage = landed("");
    stage.write("src/a.txt", "not committed\n");
    let told = stage.blueflame(&["revert", "--yes", "one.c1"]).exits(1);
    told.says("one.c1 is taken back").says("not published yet: `src/a.txt`");
    assert_eq!(stage.read("src/a.txt"), "not committed\n");
    assert_eq!(stage.landed().last().unwrap(), &subject("task-003"));
    stage.git(&["restore", "src/a.txt"]);
    stage.blueflame(&["publish"]).exits(0).says("revert-one.c1");
    assert!(!exists(&stage, "src/a.txt"));
    stage.assert_tidy();
}
