//! Questions to the person, and sessions in which nobody answers.

use serde_json::{Value, json};

use crate::script::{Script, plan, plan_value, subject, task};
use crate::stage::{MANY, Stage};

fn stage(decisions: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    Stage::new(MANY).plan(&plan(&tasks)).script(&script).decisions(decisions)
}

#[test]
fn a_gate_without_an_answer_ends_with_its_name_and_can_be_answered_later() {
    let stage = stage("plan: []\n");
    stage.run().exits(4).says("`plan`").says("blueflame resume");
    assert_eq!(stage.landed(), Vec::<String>::new());

    // Nothing but the first of two changesets is answered.
    stage.decide("plan: [approve]\nchangesets: {one: approve}\n");
    stage.resume().exits(4).says("`changeset two`");
    assert_eq!(stage.landed(), [subject("task-001")]);

    stage.decide("changesets: {two: approve}\n");
    stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    // Nobody worked twice because nobody answered.
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn a_plan_can_be_edited_before_it_is_approved() {
    let stage = stage("plan: [{edit: edited.yaml}, approve]\nchangesets: {'*': approve}\n");
    let edited = plan(&[task("task-002", "two", "src/b.txt")]);
    std::fs::write(stage.env.path("edited.yaml"), edited).unwrap();
    stage.run().exits(0);
    assert_eq!(stage.gates(), ["plan", "plan", "changeset:two.c1"]);
    assert_eq!(stage.landed(), [subject("task-002")]);
    stage.assert_tidy();
}

#[test]
fn a_plan_is_made_again_with_the_notes() {
    let [first, second] =
        [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let again = json!({"role": "planner", "contains": "only the second file"});
    let script = Script::new()
        .reply(json!({"when": again, "output": plan_value(&[second])}))
        .plans(&[first])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let stage = Stage::new(MANY).script(&script).decisions(
        "plan: [{replan: \"only the second file\"}, approve]\nchangesets: {'*': approve}\n",
    );
    stage.run().exits(0);
    assert_eq!(stage.landed(), [subject("task-002")]);
    stage.assert_tidy();
}

#[test]
fn a_person_who_does_not_want_the_plan_quits() {
    let stage = stage("plan: [quit]\n");
    stage.run().exits(4);
    let end: Vec<Value> = stage.events("session.ended");
    assert_eq!(end, [json!({"end": "plan_declined"})]);
    assert_eq!(stage.landed(), Vec::<String>::new());
    stage.assert_tidy();
}

#[test]
fn what_is_skipped_comes_again_in_the_next_cycle() {
    let stage = stage(
        "plan: [approve]\nchangesets: {one: [skip, approve], two: approve}\nsession: [continue]\n",
    );
    stage.run().exits(0);
    assert_eq!(stage.landed(), [subject("task-002"), subject("task-001")]);
    assert_eq!(
        stage.gates(),
        ["plan", "changeset:one.c1", "changeset:two.c1", "session", "changeset:one.c2"]
    );
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn a_person_stops_between_cycles() {
    let stage = stage("plan: [approve]\nchangesets: {one: skip, two: approve}\nsession: [stop]\n");
    stage.run().exits(4);
    assert_eq!(stage.landed(), [subject("task-002")]);
}

#[test]
fn what_is_left_can_be_planned_anew_between_cycles() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let other = task("task-003", "three", "src/c.txt").needs(&["task-001"]);
    let script = Script::new()
        .plans(&[other])
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .works("task-003", &[("src/c.txt", "c\n")])
        .passes();
    let stage = Stage::new(MANY).plan(&plan(&tasks)).script(&script).decisions(
        "plan: [approve, approve]\nchangesets: {two: {reject: 'not so'}, '*': approve}\n\
         session: [{replan: 'do the third instead'}]\n",
    );
    stage.run().exits(0);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-003")]);
    stage.assert_tidy();
}

#[test]
fn a_session_that_has_ended_is_not_resumed() {
    let stage = stage("plan: [approve]\nchangesets: {'*': approve}\n");
    stage.run().exits(0);
    let records = stage.journal().len();
    stage.resume().exits(0).says("has ended");
    assert_eq!(stage.journal().len(), records);
}

#[test]
fn sessions_may_follow_each_other_within_a_second() {
    let stage = stage("plan: [quit]\n");
    for _ in 0..3 {
        stage.run().exits(4);
    }
    assert_eq!(stage.sessions().len(), 3);
}

#[test]
fn a_decisions_file_that_cannot_be_read_begins_no_session() {
    let stage = Stage::new(MANY)
        .plan(&plan(&[task("task-001", "only", "src/a.txt")]))
        .script(&Script::new().works("task-001", &[("src/a.txt", "a\n")]).passes());
    stage.run().exits(2).says("decisions.yaml");
    stage.decide("plan: [no such answer]\n");
    stage.run().exits(2).says("no such answer");
    assert_eq!(stage.sessions(), Vec::<std::path::PathBuf>::new());
    assert_eq!(stage.workspaces(), Vec::<String>::new());
}

/// A session that was killed after its work was turned down once, as the first
/// answer in the file says.
fn killed_after_a_rejection() -> Stage {
    let script = Script::new().works("task-001", &[("src/a.txt", "a\n")]).passes();
    let stage = Stage::new("")
        .plan(&plan(&[task("task-001", "one", "src/a.txt")]))
        .script(&script)
        .decisions(REJECTS_ONCE);
    let mut running = stage.begin();
    running.wait_for("a rejection", |journal| {
        let mut answers = journal.iter().filter(|it| it["t"] == "gate.answered");
        answers.any(|it| it["d"].to_string().contains("reject"))
    });
    running.kill();
    stage
}

const REJECTS_ONCE: &str = "plan: [approve]\n\
    changesets: {'*': [{reject: Once more.}, approve]}\nsession: [continue]\n";

#[test]
fn a_resumed_session_goes_on_in_its_decisions_file() {
    let stage = killed_after_a_rejection();
    stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001")]);
    stage.assert_tidy();
}

#[test]
fn another_decisions_file_begins_at_its_top() {
    let stage = killed_after_a_rejection();
    stage.decide("session: [continue]\nchangesets: {'*': [approve]}\n");
    stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001")]);
}
