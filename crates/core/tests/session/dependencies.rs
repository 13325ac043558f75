//! What a task needs, and what follows when that is not to be had.

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, ValidationAnswer};
use blueflame_core::outcome::{Killer, Outcome};
use blueflame_core::rules::Rules;

use crate::story::{NOTHING, Story};
use crate::words::{Details, oid, pipelined, rules, task, task_id};

#[test]
fn row_24_strict_a_task_waits_until_what_it_needs_is_inspected() {
    let mut story = Story::begin(rules(), [task("b").needs(&["a"]), task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1"]);
    assert_eq!(story.builds("a"), ["inspect a"], "built is not done");
    assert_eq!(story.passes_inspection("a"), ["develop b#1"]);
}

#[test]
fn row_24_pipelined_a_task_waits_until_what_it_needs_is_validated() {
    let mut story = Story::begin(pipelined(), [task("b").needs(&["a"]), task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1"]);
    assert_eq!(story.finishes("a"), ["inspect a", "accept a"]);
    assert_eq!(story.is_accepted("a"), ["validate a#1"]);
    assert_eq!(story.is_judged("a", true, ""), ["develop b#1"]);
}

#[test]
fn row_24_a_task_waits_for_all_that_it_needs() {
    let mut story = Story::begin(rules(), [task("a"), task("b"), task("c").needs(&["a", "b"])]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1", "develop b#1"]);
    assert_eq!(story.finishes("b"), ["inspect b"]);
    assert_eq!(story.finishes("a"), ["inspect a", "develop c#1"]);
}

/// A session with one rejected task in it, so that there is a next cycle.
fn after_a_failure_of(cause: &str, others: Vec<blueflame_core::plan::TaskSpec>) -> Story {
    let mut tasks = others;
    tasks.push(task("spare").group("spare"));
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, tasks);
    assert_eq!(story.fails(cause, Outcome::TimedOut), NOTHING);
    story.finishes("spare");
    story.passes("spare");
    story.folds();
    story.verifies();
    assert_eq!(story.rejects("not yet"), ["ask session"]);
    story
}

#[test]
fn row_10_a_failed_task_blocks_all_that_need_it_and_a_retry_unblocks_them() {
    let tasks =
        [task("a"), task("b").needs(&["a"]), task("c").needs(&["b"]), task("d").needs(&["c"])];
    let mut story = after_a_failure_of("a", tasks.into());
    assert_eq!(
        story.phases(["a", "b", "c", "d"]),
        ["failed", "blocked by a", "blocked by a", "blocked by a"]
    );
    assert_eq!(story.continues(&["a"]), ["cycle 2", "develop a#2", "develop spare#2"]);
    assert_eq!(story.phases(["a", "b", "c", "d"]), ["working", "pending", "pending", "pending"]);
    assert_eq!(story.finishes("a"), ["inspect a", "develop b#1"]);
}

#[test]
fn row_10_without_a_retry_what_is_blocked_stays_blocked() {
    let mut story = after_a_failure_of("a", vec![task("a"), task("b").needs(&["a"])]);
    assert_eq!(story.continues(&[]), ["cycle 2", "develop spare#2"]);
    assert_eq!(story.phases(["a", "b"]), ["failed", "blocked by a"]);
    story.finishes("spare");
    story.passes("spare");
    assert_eq!(story.merges().last().unwrap(), "end Incomplete");
}

#[test]
fn row_10_with_two_causes_both_have_to_be_retried() {
    let tasks = vec![
        task("a"),
        task("b"),
        task("c").needs(&["a", "b"]),
        task("d").needs(&["c"]),
        task("spare").group("spare"),
    ];
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, tasks);
    story.fails("b", Outcome::TimedOut);
    assert_eq!(story.phases(["c", "d"]), ["blocked by b", "blocked by b"]);
    story.fails("a", Outcome::TimedOut);
    assert_eq!(story.phases(["c", "d"]), ["blocked by a", "blocked by a"]);
    story.finishes("spare");
    story.passes("spare");
    story.folds();
    story.verifies();
    story.rejects("not yet");
    assert_eq!(story.continues(&["a"]), ["cycle 2", "develop a#2", "develop spare#2"]);
    assert_eq!(story.phases(["c", "d"]), ["blocked by b", "blocked by b"], "b is still lost");
    story.finishes("a");
    story.finishes("spare");
    story.passes("a");
    story.passes("spare");
    story.merges();
    story.folds();
    story.verifies();
    assert_eq!(story.rejects("not yet"), ["ask session"]);
    assert_eq!(story.continues(&["b"]), ["cycle 3", "develop b#2", "develop spare#3"]);
    assert_eq!(story.phases(["a", "c", "d"]), ["merged", "pending", "pending"]);
}

#[test]
fn row_10_only_what_is_lost_can_be_retried() {
    let mut story = after_a_failure_of("a", vec![task("a"), task("b").needs(&["a"])]);
    for (name, why) in [
        ("b", "`b` has neither failed nor been dropped"),
        ("spare", "`spare` has neither failed nor been dropped"),
        ("nobody", "there is no task `nobody`"),
    ] {
        let retry = vec![task_id("a"), task_id(name)];
        let answer = Answer::Session(blueflame_core::gate::SessionAnswer::Continue { retry });
        let event = Event::GateAnswered { gate: story.gate(), answer };
        assert_eq!(story.refuses(&event), why);
    }
}

#[test]
fn a_dropped_task_blocks_and_can_be_retried_like_a_failed_one() {
    let tasks = [task("a"), task("b").needs(&["a"]), task("spare").group("spare")];
    let mut story = Story::developing(pipelined(), tasks);
    story.finishes("a");
    assert_eq!(story.is_disputed("a"), ["validate a#1", "ask validation a"]);
    assert_eq!(story.phase("b"), "pending");
    story.answers(Answer::ValidationFailed(ValidationAnswer::Drop));
    assert_eq!(story.phases(["a", "b"]), ["dropped", "blocked by a"]);
    story.finishes("spare");
    story.passes("spare");
    story.folds();
    story.verifies();
    story.skips();
    assert_eq!(story.continues(&["a"]), ["cycle 2", "develop a#2"]);
    assert_eq!(story.phase("b"), "pending");
    assert_eq!(story.history("a"), ["#1 ValidationFailed: bad"]);
}

#[test]
fn work_on_a_task_that_is_done_again_is_superseded() {
    let mut story = Story::developing(rules(), [task("a"), task("b").needs(&["a"])]);
    story.finishes("a");
    assert_eq!(story.finishes("b"), ["inspect b", "validation", "accept a", "accept b"]);
    assert_eq!(story.passes("b"), ["validate b#1"]);
    assert_eq!(story.is_disputed("a"), ["validate a#1", "ask validation a"]);
    assert_eq!(story.phases(["a", "b"]), ["disputed", "requeued"], "nothing is built on a dispute");
    assert_eq!(story.history("b"), ["#1 Superseded: what it was built on is done again"]);
    let answer = ValidationAnswer::Requeue { notes: "mind the edge".into() };
    assert_eq!(story.answers(Answer::ValidationFailed(answer)), ["ask session"]);
    assert_eq!(story.history("a"), ["#1 ValidationFailed: bad\nthe person: mind the edge"]);
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#2"]);
    assert_eq!(story.finishes("a"), ["inspect a", "develop b#2"]);
}

#[test]
fn doomed_agents_are_stopped_once_and_it_costs_their_tasks_nothing() {
    let tasks = [task("a"), task("b").needs(&["a"])];
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, tasks);
    story.finishes("a");
    story.finishes("b");
    story.is_accepted("a");
    assert_eq!(story.is_accepted("b"), ["validate b#1"]);
    // The validator turns a down while another one is at work on b.
    assert_eq!(story.is_judged("a", false, "bad"), ["stop validate b#1", "ask validation a"]);
    assert_eq!(story.has_spent("b", 1), NOTHING, "it is stopped once");
    assert_eq!(story.phase("b"), "validating");
    assert_eq!(story.fails("b", Outcome::Killed { by: Killer::Us }), NOTHING);
    assert_eq!(story.phase("b"), "requeued");
    let answer = ValidationAnswer::Requeue { notes: String::new() };
    assert_eq!(story.answers(Answer::ValidationFailed(answer)), ["ask session"]);
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#2"]);
}

#[test]
fn what_is_built_on_doomed_work_is_doomed_as_well() {
    let tasks = [task("a"), task("b").needs(&["a"]), task("c").needs(&["b"])];
    let mut story = Story::developing(rules(), tasks);
    for name in ["a", "b", "c"] {
        story.finishes(name);
    }
    for name in ["a", "b", "c"] {
        story.is_accepted(name);
    }
    assert_eq!(
        story.is_judged("a", false, "bad"),
        ["stop validate b#1", "stop validate c#1", "ask validation a"]
    );
    // c's validator was quicker than the stop; its verdict is worth nothing.
    assert_eq!(story.is_judged("c", true, "good"), NOTHING);
    assert_eq!(story.phases(["b", "c"]), ["validating", "requeued"]);
}

#[test]
fn unfinished_work_is_forgotten_with_what_it_was_built_on() {
    let tasks = [task("a"), task("b").group("h").needs(&["a"])];
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, tasks);
    story.finishes("a");
    let agent = story.agent("b");
    story.fact(Event::SnapshotTaken { agent, commit: oid(7) });
    assert_eq!(story.fails("b", Outcome::TimedOut), ["validation", "accept a"]);
    assert_eq!(story.task("b").snapshot, Some(oid(7)));
    story.passes("a");
    story.folds();
    story.verifies();
    assert_eq!(story.rejects("not like this"), ["ask session"]);
    // The snapshot has the rejected work in it.
    assert_eq!(story.task("b").snapshot, None);
    assert_eq!(story.continues(&["b"]), ["cycle 2", "develop a#2"]);
    assert_eq!(story.finishes("a"), ["inspect a", "develop b#2"]);
}
