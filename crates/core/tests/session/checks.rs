//! Acceptance commands, verdicts, and what the person says to them.

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, ValidationAnswer};
use blueflame_core::rules::Rules;

use crate::story::{NOTHING, Story};
use crate::words::{Details, lock, pipelined, rules, second, task};

#[test]
fn failed_commands_go_back_to_the_worker_without_a_validator() {
    let mut story = Story::developing(Rules { max_retries: 1, ..pipelined() }, [task("a")]);
    story.finishes("a");
    assert_eq!(story.fails_acceptance("a", "cargo test: 1 failed"), ["develop a#2"]);
    assert_eq!(story.history("a"), ["#1 AcceptanceFailed: cargo test: 1 failed"]);
    story.finishes("a");
    assert_eq!(story.fails_acceptance("a", "cargo test: 2 failed"), ["ask validation a"]);
    assert_eq!(story.phase("a"), "disputed");
}

#[test]
fn in_strict_waves_failed_commands_wait_for_the_next_cycle() {
    let mut story = Story::developing(rules(), [task("a")]);
    story.finishes("a");
    assert_eq!(story.fails_acceptance("a", "broken"), ["ask session"]);
    assert_eq!(story.phase("a"), "requeued");
    assert_eq!(story.task("a").tally.retries, 1);
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#2"]);
}

/// A story at the question what to do with `a`, which a validator failed.
fn disputed() -> Story {
    let mut story = Story::developing(Rules { max_retries: 1, ..rules() }, [task("a")]);
    story.fails("a", blueflame_core::outcome::Outcome::TimedOut);
    story.finishes("a");
    assert_eq!(story.is_disputed("a"), ["validate a#2", "ask validation a"]);
    assert_eq!(story.task("a").tally.retries, 1);
    story
}

#[test]
fn failed_work_is_requeued_with_the_persons_notes_and_a_fresh_set_of_retries() {
    let mut story = disputed();
    let answer = ValidationAnswer::Requeue { notes: "use the old parser".into() };
    assert_eq!(story.answers(Answer::ValidationFailed(answer)), ["ask session"]);
    assert_eq!(story.phase("a"), "requeued");
    assert_eq!(
        story.history("a").last().unwrap(),
        "#2 ValidationFailed: bad\nthe person: use the old parser"
    );
    assert_eq!(story.task("a").tally.retries, 0);
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#3"]);
}

#[test]
fn failed_work_is_requeued_with_an_edited_task() {
    let mut story = disputed();
    let nothing = ValidationAnswer::Edit { description: None, file_locks: Some(Vec::new()) };
    let gate = story.gate();
    let event = Event::GateAnswered { gate, answer: Answer::ValidationFailed(nothing) };
    assert_eq!(story.refuses(&event), "a task needs at least one file of its own");
    let answer = ValidationAnswer::Edit {
        description: Some("said better".into()),
        file_locks: Some(vec![lock("docs")]),
    };
    assert_eq!(story.answers(Answer::ValidationFailed(answer)), ["ask session"]);
    let task = story.task("a");
    assert_eq!(task.spec.description, "said better");
    assert_eq!(task.spec.file_locks, [lock("docs")]);
    assert_eq!(task.tally.retries, 0);
    assert_eq!(story.history("a").last().unwrap(), "#2 ValidationFailed: bad");
}

#[test]
fn edited_files_are_the_ones_that_are_locked_from_then_on() {
    let tasks = [task("a").locks(&["x"]), task("b").locks(&["y"])];
    let mut story = Story::developing(rules(), tasks);
    story.finishes("a");
    story.finishes("b");
    story.is_disputed("a");
    let edit = ValidationAnswer::Edit { description: None, file_locks: Some(vec![lock("y")]) };
    story.answers(Answer::ValidationFailed(edit));
    assert_eq!(story.is_disputed("b"), ["validate b#1", "ask validation b"]);
    let answer = ValidationAnswer::Requeue { notes: String::new() };
    assert_eq!(story.answers(Answer::ValidationFailed(answer)), ["ask session"]);
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#2"], "b's file is taken");
}

#[test]
fn failed_work_can_be_dropped() {
    let mut story = disputed();
    let answer = Answer::ValidationFailed(ValidationAnswer::Drop);
    assert_eq!(story.answers(answer), ["end Incomplete"]);
    assert_eq!(story.phase("a"), "dropped");
}

#[test]
fn questions_come_one_at_a_time() {
    let mut story = Story::developing(rules(), [task("a"), task("b")]);
    story.finishes("a");
    story.finishes("b");
    assert_eq!(story.is_disputed("b"), ["validate b#1", "ask validation b"]);
    assert_eq!(story.is_disputed("a"), ["validate a#1"], "b is still open");
    let drop = || Answer::ValidationFailed(ValidationAnswer::Drop);
    assert_eq!(story.answers(drop()), ["ask validation a"]);
    assert_eq!(story.answers(drop()), ["end Incomplete"]);
}

#[test]
fn a_question_that_answered_itself_is_withdrawn() {
    let tasks = [task("a"), task("b").needs(&["a"])];
    let mut story = Story::developing(rules(), tasks);
    story.finishes("a");
    story.finishes("b");
    assert_eq!(story.is_disputed("b"), ["validate b#1", "ask validation b"]);
    // Now a is turned down as well, so b has to be done again anyway.
    assert_eq!(
        story.is_disputed("a"),
        ["validate a#1", "withdraw validation b", "ask validation a"]
    );
    assert_eq!(story.phases(["a", "b"]), ["disputed", "requeued"]);
}

#[test]
fn an_answer_has_to_fit_the_open_question() {
    let mut story = disputed();
    let gate = story.gate();
    let other = Answer::Budget(blueflame_core::gate::BudgetAnswer::Stop);
    let event = Event::GateAnswered { gate: gate.clone(), answer: other };
    assert_eq!(story.refuses(&event), "that is the answer to another question");
    let event = Event::GateAnswered {
        gate: blueflame_core::gate::Gate::Session,
        answer: Answer::ValidationFailed(ValidationAnswer::Drop),
    };
    assert_eq!(story.refuses(&event), "that question is not open");
    assert_eq!(story.refuses(&Event::GateOpened { gate }), "another question is open");
}

#[test]
fn row_47_history_stays_bounded_over_many_rounds() {
    let rules = Rules { max_wave_cycles: 40, ..rules() };
    let mut story = Story::developing(rules, [task("a")]);
    for round in 1..=25 {
        story.finishes("a");
        story.passes("a");
        story.folds();
        story.verifies();
        assert_eq!(story.rejects(&"too long ".repeat(1_000)), ["ask session"]);
        assert_eq!(
            story.continues(&[]),
            [format!("cycle {}", round + 1), format!("develop a#{}", round + 1)]
        );
    }
    let history = &story.task("a").history;
    assert_eq!(history.entries().len(), 10);
    assert_eq!(history.forgotten(), 15);
    assert_eq!(
        history.entries().iter().map(|entry| entry.attempt).collect::<Vec<_>>(),
        [16, 17, 18, 19, 20, 21, 22, 23, 24, 25]
    );
    assert!(history.entries().iter().all(|entry| entry.notes.len() <= 2_006));
    assert!(history.entries()[0].at > second(0));
    assert_eq!(story.has_spent("a", 1), NOTHING);
}
