//! From validated tasks to the base branch, one changeset after the other.

use blueflame_core::event::{Event, PublishResult};
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::rules::Rules;
use blueflame_core::state::merging::Publishing;

use crate::story::{NOTHING, Story};
use crate::words::{Details, fold, oid, rules, task};

/// A story at the fold of the first changeset, with all tasks validated.
fn merging(rules: Rules, tasks: Vec<blueflame_core::plan::TaskSpec>) -> (Story, Vec<String>) {
    let names: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
    let mut story = Story::developing(Rules { validators: 9, ..rules }, tasks);
    for name in &names {
        story.finishes(name);
    }
    let mut last = Vec::new();
    for name in &names {
        last = story.passes(name);
    }
    // The validator of the last task comes first.
    last.remove(0);
    (story, last)
}

#[test]
fn a_changeset_is_folded_verified_shown_landed_and_published_in_this_order() {
    let (mut story, began) = merging(rules(), vec![task("a"), task("b").needs(&["a"])]);
    assert_eq!(began, ["merge g.c1[a b]", "fold g.c1[a b]"]);
    assert_eq!(story.folds(), ["verify g.c1"]);
    assert_eq!(story.verifies(), ["ask changeset g.c1"]);
    assert_eq!(story.approves(), ["land g.c1"]);
    assert_eq!(story.lands(), ["publish"]);
    assert_eq!(story.phases(["a", "b"]), ["merged", "merged"]);
    assert_eq!(story.publishes(PublishResult::Published), ["end Complete"]);
}

#[test]
fn tasks_are_folded_after_what_they_need_and_then_by_priority() {
    let tasks = vec![
        task("late").priority(5),
        task("needy").priority(1).needs(&["late"]),
        task("soon").priority(2),
    ];
    let (_, began) = merging(rules(), tasks);
    assert_eq!(began, ["merge g.c1[soon late needy]", "fold g.c1[soon late needy]"]);
}

#[test]
fn row_22_rejected_work_is_requeued_with_its_history_and_the_reason() {
    let rules = Rules { max_retries: 1, ..rules() };
    let mut story = Story::developing(rules, [task("a"), task("b")]);
    story.fails("a", Outcome::TimedOut);
    for name in ["a", "b"] {
        story.finishes(name);
    }
    for name in ["a", "b"] {
        story.passes(name);
    }
    story.folds();
    story.verifies();
    assert_eq!(story.rejects("wrong endpoints"), ["ask session"]);
    assert_eq!(story.phases(["a", "b"]), ["requeued", "requeued"]);
    assert_eq!(story.history("a"), ["#1 Failed: ran out of time", "#2 Rejected: wrong endpoints"]);
    assert_eq!(story.history("b"), ["#1 Rejected: wrong endpoints"]);
    assert_eq!(story.task("a").tally.retries, 0, "a person's no is a fresh start");
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#3", "develop b#2"]);
}

#[test]
fn row_25_a_group_that_another_needs_comes_first() {
    let tasks = vec![
        task("b").group("beta").priority(1).needs(&["a"]),
        task("a").group("alpha").priority(2),
    ];
    let names = ["a", "b"];
    let mut story = Story::developing(rules(), tasks);
    for name in names {
        story.finishes(name);
    }
    story.passes("a");
    assert_eq!(
        story.passes("b"),
        ["validate b#1", "merge alpha.c1[a], beta.c1[b] after alpha.c1", "fold alpha.c1[a]"]
    );
    assert_eq!(
        story.merges(),
        [
            "verify alpha.c1",
            "ask changeset alpha.c1",
            "land alpha.c1",
            "publish",
            "fold beta.c1[b]"
        ]
    );
    assert_eq!(story.merges().last().unwrap(), "end Complete");
}

#[test]
fn row_25_a_chain_of_groups_lands_from_its_beginning() {
    let tasks = [
        task("c").group("gamma").needs(&["b"]),
        task("a").group("alpha"),
        task("b").group("beta").needs(&["a"]),
    ];
    let mut story = Story::developing(rules(), tasks);
    for name in ["a", "b", "c"] {
        story.finishes(name);
    }
    story.passes("a");
    story.passes("b");
    assert_eq!(
        story.passes("c"),
        [
            "validate c#1",
            "merge alpha.c1[a], beta.c1[b] after alpha.c1, gamma.c1[c] after beta.c1",
            "fold alpha.c1[a]"
        ]
    );
}

/// Alpha first, beta built on it, and gamma by itself.
fn three_groups() -> Story {
    let tasks = vec![
        task("a").group("alpha"),
        task("b").group("beta").needs(&["a"]),
        task("c").group("gamma"),
    ];
    let (mut story, began) = merging(rules(), tasks);
    assert_eq!(
        began,
        ["merge alpha.c1[a], beta.c1[b] after alpha.c1, gamma.c1[c]", "fold alpha.c1[a]"]
    );
    story.folds();
    story.verifies();
    story
}

#[test]
fn row_26_when_a_group_is_rejected_the_one_built_on_it_is_deferred() {
    let mut story = three_groups();
    assert_eq!(story.rejects("no"), ["defer beta.c1: needs alpha.c1", "fold gamma.c1[c]"]);
    assert_eq!(story.phases(["a", "b", "c"]), ["requeued", "requeued", "validated"]);
    assert_eq!(story.history("b"), ["#1 Superseded: what it was built on is done again"]);
    assert_eq!(story.merges().last().unwrap(), "ask session");
    assert_eq!(story.continues(&[]), ["cycle 2", "develop a#2"]);
}

#[test]
fn skipped_work_stays_as_it_is_and_is_shown_again_in_the_next_cycle() {
    let mut story = three_groups();
    assert_eq!(story.skips(), ["defer beta.c1: needs alpha.c1", "fold gamma.c1[c]"]);
    assert_eq!(story.phases(["a", "b", "c"]), ["validated", "validated", "validated"]);
    assert_eq!(story.history("a"), NOTHING);
    assert_eq!(story.merges().last().unwrap(), "ask session");
    assert_eq!(
        story.continues(&[]),
        ["cycle 2", "merge alpha.c2[a], beta.c2[b] after alpha.c2", "fold alpha.c2[a]"]
    );
    // An answer of the last cycle is no answer in this one.
    story.folds();
    assert_eq!(story.verifies(), ["ask changeset alpha.c2"]);
    story.approves();
    story.lands();
    assert_eq!(story.publishes(PublishResult::Published), ["fold beta.c2[b]"]);
    assert_eq!(story.merges().last().unwrap(), "end Complete");
}

#[test]
fn of_an_incomplete_group_what_passed_goes_on() {
    let tasks = [task("a"), task("b"), task("c").needs(&["b"])];
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, tasks);
    story.fails("b", Outcome::TimedOut);
    assert_eq!(story.finishes("a"), ["inspect a", "validation", "accept a"]);
    assert_eq!(story.passes("a"), ["validate a#1", "merge g.c1[a]", "fold g.c1[a]"]);
    assert_eq!(story.merges().last().unwrap(), "end Incomplete");
}

#[test]
fn the_guilty_task_is_taken_out_and_the_rest_goes_on() {
    let tasks =
        vec![task("a"), task("b"), task("c").needs(&["b"]), task("d").group("h").needs(&["c"])];
    let (mut story, _) = merging(rules(), tasks);
    story.folds();
    // c was built on b, so it cannot stay without it.
    assert_eq!(story.fails_to_verify(Some("b")), ["fold g.c1[a]"]);
    assert_eq!(
        story.phases(["a", "b", "c", "d"]),
        ["validated", "requeued", "requeued", "requeued"]
    );
    assert_eq!(story.history("b"), ["#1 VerifyFailed: a test failed"]);
    assert_eq!(story.folds(), ["verify g.c1"], "another tree, checked again");
    assert_eq!(story.verifies(), ["ask changeset g.c1"]);
    story.approves();
    story.lands();
    assert_eq!(
        story.publishes(PublishResult::Published),
        ["defer h.c1: nothing left", "ask session"]
    );
    assert_eq!(story.continues(&[]), ["cycle 2", "develop b#2"]);
}

#[test]
fn a_changeset_whose_only_task_is_guilty_has_nothing_left() {
    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.folds();
    assert_eq!(story.fails_to_verify(Some("a")), ["defer g.c1: nothing left", "ask session"]);
}

#[test]
fn only_a_task_of_the_changeset_can_be_guilty() {
    let (mut story, _) = merging(rules(), vec![task("a"), task("b").group("h")]);
    story.folds();
    let result = blueflame_core::event::VerifyResult::Failed {
        culprit: Some(crate::words::task_id("b")),
        evidence: String::new(),
    };
    let (changeset, commands) = (story.changeset(), Vec::new());
    let event = Event::VerifyFinished { changeset, result, commands };
    assert_eq!(story.refuses(&event), "`b` is not part of it");
}

#[test]
fn when_nobody_can_be_blamed_the_whole_changeset_goes_back() {
    let tasks = vec![task("a"), task("b"), task("c").group("h")];
    let (mut story, _) = merging(rules(), tasks);
    story.folds();
    assert_eq!(story.fails_to_verify(None), ["fold h.c1[c]"]);
    assert_eq!(story.phases(["a", "b", "c"]), ["requeued", "requeued", "validated"]);
    assert_eq!(story.history("a"), ["#1 VerifyFailed: a test failed"]);
    assert_eq!(story.history("b"), ["#1 VerifyFailed: a test failed"]);
}

#[test]
fn when_the_base_moved_it_is_folded_and_verified_again_and_the_same_change_lands_unasked() {
    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.folds_to("the change");
    story.verifies();
    assert_eq!(story.approves(), ["land g.c1"]);
    assert_eq!(story.base_moved(), ["fold g.c1[a]"]);
    assert_eq!(story.folds_to("the change"), ["verify g.c1"]);
    assert_eq!(story.verifies(), ["land g.c1"]);
    assert_eq!(story.lands(), ["publish"]);
}

#[test]
fn when_the_base_moved_and_the_change_with_it_the_person_is_asked_again() {
    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.folds_to("the change");
    story.verifies();
    story.approves();
    story.base_moved();
    assert_eq!(story.folds_to("another change"), ["verify g.c1"]);
    assert_eq!(story.verifies(), ["ask changeset g.c1"]);
    assert_eq!(story.approves(), ["land g.c1"]);
}

#[test]
fn a_base_that_keeps_moving_is_given_up_on_until_the_next_cycle() {
    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.folds();
    story.verifies();
    story.approves();
    for _ in 1..5 {
        assert_eq!(story.base_moved(), ["fold g.c1[a]"]);
        story.folds();
        assert_eq!(story.verifies(), ["land g.c1"]);
    }
    assert_eq!(story.base_moved(), ["defer g.c1: the base keeps moving", "ask session"]);
    assert_eq!(story.phase("a"), "validated");
    assert_eq!(story.continues(&[]), ["cycle 2", "merge g.c2[a]", "fold g.c2[a]"]);
}

#[test]
fn a_merger_is_called_for_a_conflict_and_its_resolution_is_verified() {
    let (mut story, _) = merging(rules(), vec![task("a")]);
    assert_eq!(story.conflicts(), ["resolve g.c1"]);
    let resolution = Product::Resolution(fold(0xabc, "resolved"));
    assert_eq!(story.exits("merger", Outcome::Finished { product: resolution }), ["verify g.c1"]);
    assert_eq!(story.verifies(), ["ask changeset g.c1"]);
}

#[test]
fn a_conflict_that_nobody_resolves_sends_the_changeset_back() {
    let (mut story, _) = merging(Rules { max_retries: 1, ..rules() }, vec![task("a")]);
    story.conflicts();
    assert_eq!(story.fails("merger", Outcome::TimedOut), ["resolve g.c1"]);
    assert_eq!(story.fails("merger", Outcome::TimedOut), ["ask session"]);
    assert_eq!(story.phase("a"), "requeued");
    assert_eq!(story.history("a"), ["#1 Conflicted: conflicts in src/lib.rs; ran out of time"]);

    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.conflicts();
    let report = "both rename the same thing".to_owned();
    let product = Product::Unresolvable { report };
    assert_eq!(story.exits("merger", Outcome::Finished { product }), ["ask session"]);
    assert_eq!(story.history("a"), ["#1 Conflicted: both rename the same thing"]);
}

#[test]
fn what_cannot_be_published_now_waits_and_holds_up_nothing() {
    let tasks = vec![task("a").group("alpha"), task("b").group("beta")];
    let (mut story, _) = merging(rules(), tasks);
    story.folds();
    story.verifies();
    story.approves();
    assert_eq!(story.lands(), ["publish"]);
    let waiting = PublishResult::Waiting { reason: "a file has local changes".into() };
    assert_eq!(story.publishes(waiting), ["fold beta.c1[b]"]);
    assert!(matches!(&story.state.publishing, Publishing::Waiting { reason, .. }
        if reason == "a file has local changes"));
    // The next landing takes the earlier one along.
    story.folds();
    story.verifies();
    story.approves();
    assert_eq!(story.lands(), ["publish"]);
    assert_eq!(story.publishes(PublishResult::Published), ["end Complete"]);
}

#[test]
fn only_what_landed_last_is_published_and_only_if_that_is_wanted() {
    let (mut story, _) = merging(Rules { publish: false, ..rules() }, vec![task("a")]);
    story.folds();
    story.verifies();
    story.approves();
    let publish = Event::PublishStarted { commit: oid(0xf001) };
    assert_eq!(story.refuses(&publish), "that commit is not waiting to be published");
    assert_eq!(story.lands(), ["end Complete"]);
    assert_eq!(story.state.publishing, Publishing::Nothing);

    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.folds();
    story.verifies();
    story.approves();
    story.lands();
    assert_eq!(story.state.publishing, Publishing::Running { commit: oid(0xf001) });
}

#[test]
fn a_session_that_goes_on_with_another_check_runs_it_before_anyone_is_asked() {
    for (now, next) in [("test", "ask changeset g.c1"), ("lint", "verify g.c1")] {
        let (mut story, _) = merging(rules(), vec![task("a")]);
        story.folds();
        assert_eq!(story.verifies_by(&["test"]), ["ask changeset g.c1"]);
        story.asks_to_stop();
        let verify = Some(vec![now.to_owned()]);
        let resumed = Event::SessionResumed { repaired_bytes: None, verify };
        assert_eq!(story.fact(resumed), [next]);
    }
}

#[test]
fn an_obstacle_in_the_middle_of_a_landing_stops_the_session_and_it_lands_later() {
    let (mut story, _) = merging(rules(), vec![task("a")]);
    story.folds();
    story.verifies();
    assert_eq!(story.approves(), ["land g.c1"]);
    let reason = "the base is gone".to_owned();
    assert_eq!(story.fact(Event::SessionObstructed { reason }), ["suspend"]);
    assert_eq!(story.state.obstacle.as_deref(), Some("the base is gone"));
    assert_eq!(story.resumes(), ["land g.c1"]);
    assert_eq!(story.state.obstacle, None);
}
