//! What belongs to the person stays as it is, and the person may go on working.

use std::collections::BTreeMap;
use std::fs;

use crate::script::{Script, bash, commit, plan, subject, task};
use crate::stage::{MANY, Stage};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// Two groups; the worker of the second waits for the file `go`.
fn stage(more: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let mut second = vec![bash("sh wait.sh go")];
    second.extend(commit("task-002", &[("src/b.txt", "b\n")]));
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .attempt("task-002", 1, &second)
        .passes();
    Stage::new(&format!("{MANY}{more}")).plan(&plan(&tasks)).script(&script).decisions(APPROVE)
}

#[test]
fn files_of_the_person_stay_byte_for_byte() {
    let stage = stage("")
        .with_file(".gitignore", "*.log\n")
        .with_file("notes.txt", "as committed\n")
        .with_file("plans.txt", "as committed\n");
    stage.signal("go");
    stage.write("notes.txt", "staged\n");
    stage.git(&["add", "notes.txt"]);
    stage.write("notes.txt", "staged, and changed since\n");
    stage.write("plans.txt", "changed\n");
    stage.write("untracked.txt", "mine\n");
    stage.write("src/untracked.txt", "mine too\n");
    stage.write("debug.log", "ignored\n");
    let names = ["notes.txt", "plans.txt", "untracked.txt", "src/untracked.txt", "debug.log"];
    let contents = || -> BTreeMap<&str, Vec<u8>> {
        names.iter().map(|name| (*name, fs::read(stage.repository().join(name)).unwrap())).collect()
    };
    let staged = || stage.git(&["diff", "--cached"]);
    let status = || stage.git(&["status", "--porcelain", "-uall"]);
    let before = (contents(), staged(), status());

    stage.run().exits(0);
    assert_eq!((contents(), staged(), status()), before);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    assert_eq!(stage.workspaces(), Vec::<String>::new());
}

#[test]
fn a_base_that_moves_is_followed_and_nobody_is_asked_twice_about_the_same_change() {
    let stage = stage("merge: {verify: [\"sh wait.sh verified\"]}\n");
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 2);
    // While agents work:
    stage.write("one.txt", "the person's\n");
    stage.git(&["add", "one.txt"]);
    stage.git(&["commit", "-q", "-m", "the person's first"]);
    stage.signal("go");
    // And while the merged tree is being checked:
    running.wait_for_event("verify.started", 1);
    stage.write("two.txt", "the person's\n");
    stage.git(&["add", "two.txt"]);
    stage.git(&["commit", "-q", "-m", "the person's second"]);
    stage.signal("verified");
    running.end().exits(0);

    assert_eq!(
        stage.landed(),
        ["the person's first", "the person's second", &subject("task-001"), &subject("task-002")]
    );
    // It was folded and checked again, and asked about once.
    assert_eq!(stage.events("land.finished")[0]["result"], "base_moved");
    assert_eq!(stage.events("verify.finished").len(), 3);
    assert_eq!(stage.gates(), ["plan", "changeset:one.c1", "changeset:two.c1"]);
    stage.assert_tidy();
}

#[test]
fn a_changeset_that_is_another_change_on_the_new_base_is_asked_about_again() {
    // Both write the same file in the same way, and something else each.
    let tasks = [task("task-001", "one", "src/a.txt").locks(&["src/a.txt", "src/b.txt"])];
    let script =
        Script::new().works("task-001", &[("src/a.txt", "same\n"), ("src/b.txt", "b\n")]).passes();
    let stage = Stage::new(&format!("{MANY}merge: {{verify: [\"sh wait.sh verified\"]}}\n"))
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {one: [approve, approve]}\n");
    let mut running = stage.begin();
    running.wait_for_event("verify.started", 1);
    stage.write("src/a.txt", "same\n");
    stage.git(&["add", "src/a.txt"]);
    stage.git(&["commit", "-q", "-m", "the person's"]);
    stage.signal("verified");
    running.end().exits(0);
    assert_eq!(stage.gates(), ["plan", "changeset:one.c1", "changeset:one.c1"]);
    assert_eq!(stage.landed(), ["the person's", &subject("task-001")]);
    stage.assert_tidy();
}

#[test]
fn publishing_waits_for_a_file_that_the_person_has_changed() {
    let stage = stage("").with_file("src/a.txt", "as committed\n");
    stage.signal("go");
    stage.write("src/a.txt", "not committed\n");
    let told = stage.run();
    // It landed, and is not on the base branch: the person is told.
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stderr.contains("src/a.txt"), "{told}");
    assert!(told.stderr.contains("blueflame publish"), "{told}");
    assert_eq!(stage.landed(), Vec::<String>::new());
    assert_eq!(stage.read("src/a.txt"), "not committed\n");
    assert_eq!(stage.git(&["status", "--porcelain"]), " M src/a.txt");
    let integration = format!("refs/blueflame/{}/integration", stage.session_id());
    let landed = stage.git(&["log", "--reverse", "--format=%s", &format!("main..{integration}")]);
    assert_eq!(landed.lines().collect::<Vec<_>>(), [subject("task-001"), subject("task-002")]);
}

#[test]
fn with_the_base_checked_out_nowhere_the_branch_moves_and_the_checkout_stays() {
    let stage = stage("");
    stage.signal("go");
    stage.git(&["switch", "-q", "-c", "mine"]);
    let before = stage.git(&["rev-parse", "HEAD"]);
    stage.run().exits(0);
    assert_eq!(stage.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(stage.git(&["branch", "--show-current"]), "mine");
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    assert!(!stage.repository().join("src").exists());
    stage.assert_tidy();
}

#[test]
fn a_red_merge_is_traced_to_its_task_although_the_base_moves() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "one", "src/b.txt")];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .attempt("task-002", 1, &commit("task-002", &[("src/b.txt", "BROKEN\n")]))
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let check = "sh wait.sh verified && ! grep -r BROKEN src\n";
    let stage = Stage::new(&format!("{MANY}merge: {{verify: [\"sh check.sh\"]}}\n"))
        .with_file("check.sh", check)
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    let mut running = stage.begin();
    running.wait_for_event("verify.started", 1);
    stage.write("mine.txt", "the person's\n");
    stage.git(&["add", "mine.txt"]);
    stage.git(&["commit", "-q", "-m", "the person's"]);
    stage.signal("verified");
    running.end().exits(0);
    let red = stage.events("verify.finished")[0]["result"]["failed"].clone();
    assert_eq!(red["culprit"], "task-002", "{red}");
    assert_eq!(stage.landed(), ["the person's", &subject("task-001"), &subject("task-002")]);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn work_that_waits_to_be_published_and_a_base_that_moves_come_together() {
    // The first changeset cannot be published, and then the base moves on. The
    // check takes longer than the second that commits are dated by.
    let stage = stage("merge: {verify: [\"sh wait.sh verified && sleep 1.1\"]}\n")
        .with_file("src/a.txt", "as committed\n");
    stage.signal("go");
    stage.signal("verified");
    stage.write("src/a.txt", "not committed\n");
    let mut running = stage.begin();
    running.wait_for_event("publish.started", 1);
    fs::remove_file(stage.signals().join("verified")).unwrap();
    running.wait_for_event("verify.started", 2);
    stage.git(&["restore", "src/a.txt"]);
    stage.write("mine.txt", "the person's\n");
    stage.git(&["add", "mine.txt"]);
    stage.git(&["commit", "-q", "-m", "the person's"]);
    stage.signal("verified");
    let told = running.end().exits(0);
    let results: Vec<_> =
        stage.events("land.finished").into_iter().map(|it| it["result"].clone()).collect();
    assert_eq!(results.iter().filter(|it| *it == "base_moved").count(), 1, "{results:?} {told}");
    assert_eq!(stage.read("src/a.txt"), "a\n");
    assert_eq!(stage.read("src/b.txt"), "b\n");
    assert_eq!(stage.read("mine.txt"), "the person's\n");
    stage.assert_tidy();
}

#[test]
fn with_a_branch_as_target_the_base_is_not_touched() {
    let stage = stage("merge: {target: branch}\n");
    stage.signal("go");
    let before = stage.git(&["rev-parse", "main"]);
    stage.run().exits(0);
    assert_eq!(stage.git(&["rev-parse", "main"]), before);
    let integration = format!("refs/blueflame/{}/integration", stage.session_id());
    let landed = stage.git(&["log", "--reverse", "--format=%s", &format!("main..{integration}")]);
    assert_eq!(landed.lines().collect::<Vec<_>>(), [subject("task-001"), subject("task-002")]);
    stage.assert_tidy();
}
