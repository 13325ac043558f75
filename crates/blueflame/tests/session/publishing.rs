//! Publishing later: what landed waits for the person, and then goes to the base
//! branch without touching anything that is not committed.

use std::fs;

use crate::script::{Script, plan, subject, task};
use crate::stage::{Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// A session that ended with everything landed and a changed file in the way.
fn waiting(more: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let stage = Stage::new(more)
        .with_file("src/a.txt", "as committed\n")
        .with_file(".gitignore", "*.log\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.signal("verified");
    stage.write("src/a.txt", "not committed\n");
    stage.run().exits(0);
    assert_eq!(stage.landed(), Vec::<String>::new());
    stage
}

fn commit(stage: &Stage, name: &str, text: &str) {
    stage.write(name, text);
    stage.git(&["add", name]);
    stage.git(&["commit", "-q", "-m", "the person's"]);
}

#[test]
fn a_file_in_the_way_is_named_and_stays_and_afterwards_it_is_published() {
    let stage = waiting("");
    stage.write("staged.txt", "staged\n");
    stage.git(&["add", "staged.txt"]);
    stage.write("untracked.txt", "mine\n");
    stage.write("debug.log", "ignored\n");
    let kept = ["staged.txt", "untracked.txt", "debug.log"];
    let others = || kept.map(|name| fs::read(stage.repository().join(name)).unwrap());
    let before = (others(), stage.git(&["diff", "--cached"]));
    let told = stage.blueflame(&["publish"]).exits(1);
    let told = told.says("not published yet: `src/a.txt` in");
    told.says("commit, stash or move it, then `blueflame publish`");
    assert_eq!(stage.read("src/a.txt"), "not committed\n");
    assert_eq!(stage.landed(), Vec::<String>::new());

    stage.git(&["restore", "src/a.txt"]);
    let told = stage.blueflame(&["publish"]).exits(0).says("`main` is at ");
    told.says("it has all that landed in").says("one.c1, two.c1");
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    assert_eq!((others(), stage.git(&["diff", "--cached"])), before);
    let log = stage.blueflame(&["log"]).exits(0);
    assert_eq!(log.stdout.matches("the person asked to publish").count(), 2, "{log}");
    assert!(log.stdout.trim_end().ends_with("is on the base branch"), "{log}");
    let status = stage.blueflame(&["status"]).exits(0);
    assert!(!status.stdout.contains("not yet published"), "{status}");
    stage.blueflame(&["publish"]).exits(0).says("nothing waits to be published");
    stage.git(&["rm", "-qf", "--cached", "staged.txt"]);
    for name in kept {
        fs::remove_file(stage.repository().join(name)).unwrap();
    }
    stage.assert_tidy();
}

#[test]
fn a_base_that_moved_is_joined_checked_and_then_published() {
    let stage = waiting("merge: {verify: [\"! grep -r BROKEN src\"]}\n");
    stage.git(&["restore", "src/a.txt"]);
    commit(&stage, "src/mine.txt", "BROKEN\n");
    let told = stage.blueflame(&["publish"]).exits(1);
    told.says("with it the landed work does not pass `merge.verify`").says("BROKEN");
    assert_eq!(stage.landed(), ["the person's"]);
    let red = stage.events("joint.verify_finished");
    assert!(red[0]["result"]["failed"]["evidence"].as_str().unwrap().contains("BROKEN"), "{red:?}");

    commit(&stage, "src/mine.txt", "mended\n");
    stage.blueflame(&["publish"]).exits(0);
    assert_eq!(stage.events("joint.verify_finished")[1]["result"], "passed");
    let names = ["src/a.txt", "src/b.txt", "src/mine.txt"];
    assert_eq!(names.map(|name| stage.read(name)), ["a\n", "b\n", "mended\n"]);
    assert_eq!(stage.git(&["rev-list", "--count", "--merges", "main"]), "1");
    stage.assert_tidy();
}

#[test]
fn a_base_that_conflicts_is_left_to_the_person_and_then_it_is_done() {
    let stage = waiting("");
    commit(&stage, "src/a.txt", "another\n");
    let told = stage.blueflame(&["publish"]).exits(1);
    told.says("now conflicts with landed work in `src/a.txt`");
    assert_eq!(stage.landed(), ["the person's"]);
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
    let integration = format!("refs/blueflame/{}/integration", stage.session_id());
    stage.git(&["merge", "-q", "-X", "ours", "-m", "both", &integration]);
    let merged = stage.git(&["rev-parse", "main"]);
    stage.blueflame(&["publish"]).exits(0);
    assert_eq!(stage.git(&["rev-parse", "main"]), merged);
    stage.assert_tidy();
}

#[test]
fn killed_while_both_are_checked_it_is_published_the_next_time() {
    let stage = waiting("merge: {verify: [\"sh wait.sh verified\"]}\n");
    stage.git(&["restore", "src/a.txt"]);
    commit(&stage, "mine.txt", "the person's\n");
    fs::remove_file(stage.signals().join("verified")).unwrap();
    let mut running = stage.start(&["publish"]);
    running.wait_for_event("joint.verify_started", 1);
    // Nobody else meanwhile, whatever is asked.
    stage.blueflame(&["publish"]).exits(6).says("holds this repository");
    running.kill();
    stage.signal("verified");
    wait_until("the check is gone", || stage.processes().is_empty());
    assert_eq!(stage.landed(), ["the person's"]);
    stage.blueflame(&["publish"]).exits(0);
    assert_eq!(stage.read("src/b.txt"), "b\n");
    // What the killed one had checked out is for cleanup to remove.
    stage.blueflame(&["cleanup"]).exits(0);
    stage.assert_tidy();
}

#[test]
fn killed_while_git_writes_the_checkout_it_is_published_the_next_time() {
    let stage = waiting("");
    stage.git(&["restore", "src/a.txt"]);
    // A filter of the person's that takes its time keeps git at its writing.
    stage.git(&["config", "filter.slow.smudge", "sh wait.sh go; cat"]);
    stage.git(&["config", "filter.slow.clean", "cat"]);
    stage.write(".git/info/attributes", "src/b.txt filter=slow\n");
    let mut running = stage.start(&["publish"]);
    running.wait_for_event("publish.started", 3);
    wait_until("git is at it", || stage.repository().join(".git/index.lock").exists());
    running.kill();
    stage.signal("go");
    let told = stage.blueflame(&["publish"]).exits(0);
    assert!(!stage.repository().join(".git/index.lock").exists(), "{told}");
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    assert_eq!((stage.read("src/a.txt"), stage.read("src/b.txt")), ("a\n".into(), "b\n".into()));
    stage.assert_tidy();
}

#[test]
fn a_stop_while_both_are_checked_leaves_at_once_and_loses_nothing() {
    let stage = waiting("merge: {verify: [\"sh wait.sh verified\"]}\n");
    stage.git(&["restore", "src/a.txt"]);
    commit(&stage, "mine.txt", "the person's\n");
    fs::remove_file(stage.signals().join("verified")).unwrap();
    let mut running = stage.start(&["publish"]);
    running.wait_for_event("joint.verify_started", 1);
    running.signal(rustix::process::Signal::INT);
    running.end().exits(130).says("the same command once more goes on");
    stage.signal("verified");
    stage.blueflame(&["publish"]).exits(0);
    stage.assert_tidy();
}

#[test]
fn where_the_base_is_the_persons_own_affair_publish_says_how() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let script = Script::new().works("task-001", &[("src/a.txt", "a\n")]).passes();
    let stage = Stage::new("merge: {target: branch}\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.run().exits(0);
    let told = stage.blueflame(&["publish"]).exits(2).says("`git merge refs/blueflame/ses-");
    told.says("set `merge.target: base`");
    assert_eq!(stage.landed(), Vec::<String>::new());
}
