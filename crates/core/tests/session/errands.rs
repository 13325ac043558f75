//! What a person asks of a session that nobody runs: publishing what waits,
//! taking back what landed.

use blueflame_core::event::{Event, LandResult, PublishResult, VerifyResult, Work};
use blueflame_core::ids::ChangesetId;
use blueflame_core::rules::Rules;
use blueflame_core::state::errands::RevertPhase;
use blueflame_core::state::merging::Publishing;

use crate::story::{NOTHING, Story};
use crate::words::{Details, fold, oid, rules, task, task_id};

fn changeset(id: &str) -> ChangesetId {
    ChangesetId::new(id).expect("a well-formed id")
}

/// Two changesets, the first of which is folded.
fn merging(rules: Rules) -> Story {
    let tasks = [task("a").group("alpha"), task("b").group("beta")];
    let mut story = Story::developing(rules, tasks);
    for id in ["a", "b"] {
        story.finishes(id);
    }
    for id in ["a", "b"] {
        story.passes(id);
    }
    story
}

/// A session that was left while the first of two changesets waits.
fn suspended() -> Story {
    let mut story = merging(rules());
    story.folds();
    story.verifies();
    story.approves();
    story.lands();
    story.publishes(PublishResult::Waiting { reason: "busy".into() });
    assert_eq!(story.asks_to_stop(), ["suspend"]);
    story
}

/// A session that ended with everything landed; the last one waits.
fn waiting(rules: Rules) -> Story {
    let mut story = merging(rules);
    story.merges();
    story.folds();
    story.verifies();
    story.approves();
    story.lands();
    if matches!(story.state.publishing, Publishing::Running { .. }) {
        let reason = "a file has local changes".into();
        assert_eq!(story.publishes(PublishResult::Waiting { reason }), ["end Complete"]);
    }
    story
}

fn publish(story: &Story) -> Event {
    let Publishing::Waiting { commit, .. } = story.state.publishing.clone() else {
        panic!("nothing waits: {:?}", story.state.publishing)
    };
    Event::PublishRequested { commit, joins: None }
}

pub fn revert(id: &str, undoes: &str) -> Event {
    let fold = fold(0xabc, "undone");
    Event::RevertRequested { changeset: changeset(id), undoes: changeset(undoes), fold }
}

pub fn verified(id: &str, result: VerifyResult) -> Event {
    Event::VerifyFinished { changeset: changeset(id), result, commands: Vec::new() }
}

pub fn landed(id: &str, result: LandResult) -> Event {
    Event::LandFinished { changeset: changeset(id), result }
}

fn red() -> VerifyResult {
    VerifyResult::Failed { culprit: None, evidence: "a test failed".into() }
}

#[test]
fn what_waits_after_the_end_is_published_when_the_person_asks() {
    let mut story = waiting(rules());
    assert!(story.state.has_unpublished());
    assert_eq!(story.fact(publish(&story)), ["publish"]);
    assert_eq!(story.publishes(PublishResult::Published), NOTHING);
    assert!(!story.state.has_unpublished());
    assert_eq!(story.state.errand, None);
}

#[test]
fn an_errand_that_was_cut_short_is_asked_for_again() {
    let mut story = waiting(rules());
    let request = publish(&story);
    assert_eq!(story.fact(request.clone()), ["publish"]);
    // The process died here; another one is asked.
    assert_eq!(story.fact(request), ["publish"]);
    assert_eq!(story.publishes(PublishResult::Published), NOTHING);
}

#[test]
fn a_base_that_moved_is_checked_together_with_what_landed_before_it_is_published() {
    let mut story = waiting(rules());
    let joint = oid(0x101);
    let request = Event::PublishRequested { commit: joint.clone(), joins: Some(oid(0x100)) };
    assert_eq!(story.fact(request.clone()), ["verify joint"]);
    let early = Event::PublishStarted { commit: joint.clone() };
    assert_eq!(story.refuses(&early), "that commit is not waiting to be published");
    let finished = |result| Event::JointVerifyFinished { commit: joint.clone(), result };
    assert_eq!(story.fact(finished(red())), NOTHING);
    assert!(matches!(&story.state.publishing, Publishing::Waiting { reason, .. }
        if reason.ends_with("does not pass `merge.verify`: a test failed")));
    assert_eq!(story.fact(request), ["verify joint"]);
    assert_eq!(story.fact(finished(VerifyResult::Passed)), ["publish"]);
    assert_eq!(story.publishes(PublishResult::Published), NOTHING);
}

#[test]
fn a_suspended_session_publishes_and_goes_on_as_before() {
    let mut story = suspended();
    assert_eq!(story.fact(publish(&story)), ["publish"]);
    let other = Event::MemorySampled { free_mb: 1 };
    assert_eq!(story.refuses(&other), "the session is suspended");
    assert_eq!(story.publishes(PublishResult::Published), NOTHING);
    assert!(story.state.suspended);
    assert!(!story.resumes().is_empty());
    let revert = revert("revert-alpha.c1", "alpha.c1");
    assert_eq!(story.refuses(&revert), "the session can still go on");
}

#[test]
fn a_session_that_is_resumed_in_the_middle_of_an_errand_leaves_it_to_the_person() {
    let mut story = suspended();
    story.fact(Event::PublishRequested { commit: oid(0x101), joins: Some(oid(0x100)) });
    story.resumes();
    assert_eq!(story.state.errand, None);
    assert!(matches!(&story.state.publishing, Publishing::Waiting { reason, .. }
        if reason.contains("cut short")));
}

#[test]
fn a_landed_changeset_is_taken_back_once_checked_landed_and_published() {
    let mut story = waiting(rules());
    assert_eq!(story.fact(revert("revert-alpha.c1", "alpha.c1")), ["verify revert-alpha.c1"]);
    let passed = verified("revert-alpha.c1", VerifyResult::Passed);
    assert_eq!(story.fact(passed), ["land revert-alpha.c1"]);
    assert_eq!(story.fact(landed("revert-alpha.c1", LandResult::Landed)), ["publish"]);
    assert_eq!(story.publishes(PublishResult::Published), NOTHING);
    assert!(story.state.reverted_by(&changeset("alpha.c1")).is_some());
    let again = revert("revert2-alpha.c1", "alpha.c1");
    assert_eq!(story.refuses(&again), "`revert-alpha.c1` took `alpha.c1` back already");
    // An undoing can be undone like anything else that landed.
    let back = revert("revert-revert-alpha.c1", "revert-alpha.c1");
    assert_eq!(story.fact(back), ["verify revert-revert-alpha.c1"]);
    story.fact(verified("revert-revert-alpha.c1", VerifyResult::NotConfigured));
    story.fact(landed("revert-revert-alpha.c1", LandResult::Landed));
    story.publishes(PublishResult::Published);
    assert!(story.state.reverted_by(&changeset("alpha.c1")).is_none());
    assert_eq!(story.fact(again), ["verify revert2-alpha.c1"]);
}

#[test]
fn an_undoing_that_fails_its_check_does_not_land() {
    let mut story = waiting(rules());
    story.fact(revert("revert-alpha.c1", "alpha.c1"));
    assert_eq!(story.fact(verified("revert-alpha.c1", red())), NOTHING);
    let land = Event::LandStarted { changeset: changeset("revert-alpha.c1") };
    story.refuses(&land);
    assert!(story.state.reverted_by(&changeset("alpha.c1")).is_none());
    // The person mends something and asks again.
    let again = revert("revert-alpha.c1", "alpha.c1");
    assert_eq!(story.fact(again), ["verify revert-alpha.c1"]);
}

#[test]
fn an_undoing_whose_base_moves_is_folded_and_asked_for_again() {
    let mut story = waiting(rules());
    story.fact(revert("revert-alpha.c1", "alpha.c1"));
    story.fact(verified("revert-alpha.c1", VerifyResult::Passed));
    assert_eq!(story.fact(landed("revert-alpha.c1", LandResult::BaseMoved)), NOTHING);
    let phase = &story.state.reverts[0].phase;
    assert_eq!(*phase, RevertPhase::BaseMoved);
    assert_eq!(story.state.errand, None);
}

#[test]
fn only_what_landed_can_be_taken_back() {
    let mut story = waiting(rules());
    let unknown = revert("revert-gamma.c1", "gamma.c1");
    assert_eq!(story.refuses(&unknown), "`gamma.c1` has not landed");
    let named_alike = revert("beta.c1", "alpha.c1");
    assert_eq!(story.refuses(&named_alike), "`beta.c1` is another changeset");
}

#[test]
fn where_the_base_is_left_alone_an_undoing_lands_and_is_not_published() {
    let mut story = waiting(Rules { publish: false, ..rules() });
    assert!(story.state.has_unpublished());
    story.fact(revert("revert-alpha.c1", "alpha.c1"));
    story.fact(verified("revert-alpha.c1", VerifyResult::Passed));
    assert_eq!(story.fact(landed("revert-alpha.c1", LandResult::Landed)), NOTHING);
    assert_eq!(story.state.errand, None);
}

#[test]
fn only_work_that_landed_is_known_to_be_needed_no_more() {
    let mut story = merging(rules());
    story.merges();
    let work = |task: &str| Work::Develop { task: task_id(task), attempt: 1 };
    for (work, may) in [
        (Some(work("a")), false),
        (Some(work("b")), true),
        (Some(work("nobody-knows")), true),
        (Some(Work::Validate { task: task_id("b"), attempt: 1 }), false),
        (Some(Work::Plan), false),
        (None, true),
    ] {
        assert_eq!(story.state.may_hold_unlanded(work.as_ref()), may, "{work:?}");
    }
}

#[test]
fn cleaning_leaves_a_trace_and_changes_nothing_and_only_after_the_end() {
    let cleaned = Event::SessionCleaned { removed: vec!["a workspace".into()], bytes: 10 };
    let mut story = Story::developing(rules(), [task("a")]);
    assert_eq!(story.refuses(&cleaned), "the session can still go on");
    let mut story = waiting(rules());
    let before = story.state.publishing.clone();
    assert_eq!(story.fact(cleaned), NOTHING);
    assert_eq!(story.state.publishing, before);
}
