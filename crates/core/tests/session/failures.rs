//! Agents that fail: again, and then no more.

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, ValidatorAnswer};
use blueflame_core::money::Spend;
use blueflame_core::outcome::{FREE_RERUNS, Killer, Outcome};
use blueflame_core::rules::{PerRole, Rules};

use crate::story::{NOTHING, Story};
use crate::words::{Details, executor, oid, pipelined, rules, task};

#[test]
fn row_20_a_worker_is_tried_again_up_to_max_retries_and_then_the_task_has_failed() {
    let tasks = [task("a"), task("b").needs(&["a"])];
    let mut story = Story::developing(Rules { max_retries: 2, ..rules() }, tasks);
    assert_eq!(story.fails("a", Outcome::TimedOut), ["develop a#2"]);
    assert_eq!(story.fails("a", Outcome::NoOp), ["develop a#3"]);
    assert_eq!(story.fails("a", Outcome::MaxTurns), ["end Incomplete"]);
    assert_eq!(story.phases(["a", "b"]), ["failed", "blocked by a"]);
    assert_eq!(
        story.history("a"),
        [
            "#1 Failed: ran out of time",
            "#2 Failed: stopped without changing anything",
            "#3 Failed: ran out of turns before it was done",
        ]
    );
}

#[test]
fn row_20_without_retries_the_first_failure_is_the_last() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    assert_eq!(story.fails("a", Outcome::Uncommitted), ["end Incomplete"]);
}

#[test]
fn row_20_a_failed_inspection_is_a_failed_attempt() {
    let mut story = Story::developing(Rules { max_retries: 1, ..rules() }, [task("a")]);
    for expected in ["develop a#2", "end Incomplete"] {
        story.builds("a");
        let violations = vec!["writes to `src/b`".to_owned()];
        let task = crate::words::task_id("a");
        assert_eq!(story.fact(Event::InspectionFinished { task, violations }), [expected]);
    }
    assert_eq!(
        story.history("a")[1],
        "#2 Failed: broke the rules, its work was set aside: writes to `src/b`"
    );
}

#[test]
fn what_is_not_a_tasks_fault_is_free_for_a_while() {
    let mut story = Story::developing(Rules { max_retries: 1, ..rules() }, [task("a")]);
    for attempt in 2..=FREE_RERUNS + 1 {
        let killed = Outcome::Killed { by: Killer::Other };
        assert_eq!(story.fails("a", killed), [format!("develop a#{attempt}")]);
        assert_eq!(story.task("a").tally.retries, 0);
    }
    // From now on it counts, and the retry is used up.
    assert_eq!(story.fails("a", Outcome::Killed { by: Killer::Other }), ["develop a#7"]);
    assert_eq!(story.fails("a", Outcome::Killed { by: Killer::Other }), ["end Incomplete"]);
}

#[test]
fn what_we_did_ourselves_never_counts() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    for attempt in 2..20 {
        assert_eq!(story.asks_to_stop(), [format!("stop develop a#{}", attempt - 1)]);
        assert_eq!(story.fails("a", Outcome::Killed { by: Killer::Us }), ["suspend"]);
        assert_eq!(story.resumes(), [format!("develop a#{attempt}")]);
    }
}

#[test]
fn an_agent_that_claims_we_stopped_it_is_not_believed_for_ever() {
    for claim in [
        Outcome::Killed { by: Killer::Us },
        Outcome::BudgetSpent { limit: blueflame_core::outcome::BudgetScope::Session },
    ] {
        let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
        for attempt in 2..=6 {
            assert_eq!(story.fails("a", claim.clone()), [format!("develop a#{attempt}")]);
        }
        assert_eq!(story.fails("a", claim), ["end Incomplete"]);
    }
}

#[test]
fn an_agent_that_vanished_is_not_to_blame() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    let agent = story.agent("a");
    let lost = Event::AgentLost { agent, spend: Some(Spend::default()) };
    assert_eq!(story.fact(lost.clone()), ["develop a#2"]);
    assert_eq!(story.history("a"), ["#1 Failed: killed from outside"]);
    assert!(story.refuses(&lost).ends_with("is not at work"));
}

#[test]
fn a_machine_that_goes_down_again_and_again_costs_no_retry_and_does_not_go_on_for_ever() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    for attempt in 2..=6 {
        let lost = Event::AgentLost { agent: story.agent("a"), spend: Some(Spend::default()) };
        assert_eq!(story.fact(lost), [format!("develop a#{attempt}")]);
        assert_eq!(story.task("a").tally.retries, 0);
    }
    // What takes the machine along six times may well be the task itself.
    let lost = Event::AgentLost { agent: story.agent("a"), spend: Some(Spend::default()) };
    assert_eq!(story.fact(lost), ["end Incomplete"]);
}

#[test]
fn unfinished_work_is_kept_where_it_is_worth_keeping() {
    let kept = |outcome: Outcome| {
        let mut story = Story::developing(Rules { max_retries: 9, ..rules() }, [task("a")]);
        let agent = story.agent("a");
        story.fact(Event::SnapshotTaken { agent, commit: oid(7) });
        story.fails("a", Outcome::MaxTurns);
        assert_eq!(story.task("a").snapshot, Some(oid(7)));
        // The next one leaves no snapshot of its own.
        story.fails("a", outcome);
        story.task("a").snapshot.clone()
    };
    assert_eq!(kept(Outcome::TimedOut), Some(oid(7)));
    assert_eq!(kept(Outcome::Uncommitted), Some(oid(7)));
    assert_eq!(kept(Outcome::Violated { violations: vec!["x".into()] }), None);
    assert_eq!(kept(Outcome::NoOp), None);
}

/// A story at the point where two validators of `a` have failed.
fn unjudged() -> Story {
    let executors =
        PerRole { validator: vec![executor("claude"), executor("codex")], ..rules().executors };
    let tasks = [task("a"), task("b").needs(&["a"])];
    let mut story = Story::developing(Rules { executors, workers: 1, ..rules() }, tasks);
    story.finishes("a");
    story.finishes("b");
    assert_eq!(story.passes("b"), ["validate b#1"]);
    assert_eq!(story.is_accepted("a"), ["validate a#1"]);
    let malformed = || Outcome::Malformed { problems: vec!["no verdict".into()] };
    assert_eq!(story.fails("a", malformed()), ["validate a#1 with codex"], "once more");
    assert_eq!(story.fails("a", Outcome::TimedOut), ["ask validator a"]);
    assert_eq!(story.phases(["a", "b"]), ["unjudged", "validated"]);
    story
}

#[test]
fn row_21_a_validator_that_fails_twice_is_the_persons_business_who_may_pass_it() {
    let mut story = unjudged();
    let passed = story.answers(Answer::ValidatorFailed(ValidatorAnswer::ManualPass));
    assert_eq!(passed, ["merge g.c1[a b]", "fold g.c1[a b]"]);
}

#[test]
fn row_21_or_count_it_as_failed() {
    let mut story = unjudged();
    let skipped = story.answers(Answer::ValidatorFailed(ValidatorAnswer::Skip));
    assert_eq!(skipped, ["end Incomplete"]);
    assert_eq!(story.phases(["a", "b"]), ["failed", "blocked by a"]);
}

#[test]
fn row_21_or_let_two_more_validators_try() {
    let mut story = unjudged();
    let retried = story.answers(Answer::ValidatorFailed(ValidatorAnswer::Retry));
    assert_eq!(retried, ["validate a#1"], "from the first executor on");
    assert_eq!(story.fails("a", Outcome::TimedOut), ["validate a#1 with codex"]);
    assert_eq!(story.fails("a", Outcome::TimedOut), ["ask validator a"]);
}

#[test]
fn a_failed_validator_is_not_held_against_the_next_attempt() {
    let mut story = Story::developing(rules(), [task("a")]);
    story.finishes("a");
    story.is_accepted("a");
    assert_eq!(story.fails("a", Outcome::TimedOut), ["validate a#1"]);
    assert_eq!(story.is_judged("a", true, ""), ["merge g.c1[a]", "fold g.c1[a]"]);
    story.folds();
    story.verifies();
    story.rejects("again");
    story.continues(&[]);
    story.finishes("a");
    assert_eq!(story.is_accepted("a"), ["validate a#2"]);
    assert_eq!(story.fails("a", Outcome::TimedOut), ["validate a#2"], "a new pair of validators");
}

#[test]
fn row_29_when_every_task_fails_validation_and_merge_are_skipped() {
    for rules in [rules(), pipelined()] {
        let tasks = [task("a"), task("b"), task("c").needs(&["b"])];
        let mut story = Story::developing(Rules { max_retries: 0, ..rules }, tasks);
        assert_eq!(story.fails("a", Outcome::TimedOut), NOTHING);
        assert_eq!(story.fails("b", Outcome::TimedOut), ["end Incomplete"]);
        assert_eq!(story.phases(["a", "b", "c"]), ["failed", "failed", "blocked by b"]);
        assert!(story.state.merging.changesets.is_empty());
    }
}
