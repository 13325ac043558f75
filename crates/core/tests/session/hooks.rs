//! Commands of the person's own: when they are run, and never twice.

use blueflame_core::event::{Event, PublishResult};
use blueflame_core::hook::{Hook, HookResult, Occasion};
use blueflame_core::outcome::Outcome;
use blueflame_core::rules::Rules;
use blueflame_core::state::hooks::HookStands;

use crate::story::{NOTHING, Story};
use crate::words::{pipelined, rules, task, task_id};

fn with(hooks: &[Hook]) -> Rules {
    Rules { hooks: hooks.to_vec(), max_retries: 0, ..rules() }
}

fn ends(story: &mut Story, number: u32, result: HookResult) -> Vec<String> {
    story.fact(Event::HookFinished { number, result })
}

#[test]
fn an_approved_plan_is_announced_beside_the_work() {
    let mut story = Story::begin(with(&[Hook::PostPlan]), [task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "run post_plan", "develop a#1"]);
    let failed = HookResult::Failed { reason: "exit code 1".into() };
    assert_eq!(ends(&mut story, 0, failed), NOTHING, "a failure changes nothing");
    assert_eq!(story.finishes("a"), ["inspect a", "validation", "accept a"]);
}

#[test]
fn validation_waits_for_its_hook_once_in_a_cycle() {
    for rules in
        [with(&[Hook::PreValidation]), Rules { hooks: vec![Hook::PreValidation], ..pipelined() }]
    {
        let mut story = Story::developing(rules, [task("a"), task("b")]);
        let done = [story.finishes("a"), story.finishes("b")].concat();
        assert_eq!(done.iter().filter(|it| *it == "run pre_validation").count(), 1, "{done:?}");
        assert!(!done.iter().any(|it| it.starts_with("accept")), "{done:?}");
        let after = ends(&mut story, 0, HookResult::Failed { reason: "lint".into() });
        assert_eq!(after, ["accept a", "accept b"]);
        assert!(!story.passes("a").contains(&"run pre_validation".to_owned()));
    }
}

#[test]
fn a_landing_is_announced_when_its_way_to_the_base_branch_is_clear() {
    let mut story = Story::developing(with(&[Hook::PostMerge]), [task("a")]);
    story.finishes("a");
    story.passes("a");
    story.folds();
    story.verifies();
    story.approves();
    assert_eq!(story.lands(), ["publish"]);
    let waits = PublishResult::Waiting { reason: "local changes".into() };
    assert_eq!(story.publishes(waits), ["run post_merge"], "the session does not end before it");
    let run = &story.state.hooks.runs()[0];
    assert!(matches!(&run.occasion, Occasion::Landed { published: false, .. }), "{run:?}");
    assert_eq!(ends(&mut story, 0, HookResult::Passed), ["end Complete"]);
}

#[test]
fn without_publishing_a_landing_is_announced_at_once() {
    let rules = Rules { publish: false, ..with(&[Hook::PostMerge]) };
    let mut story = Story::developing(rules, [task("a")]);
    story.finishes("a");
    story.passes("a");
    story.folds();
    story.verifies();
    story.approves();
    assert_eq!(story.lands(), ["run post_merge"]);
}

#[test]
fn failures_are_announced_one_after_the_other() {
    let mut story = Story::developing(with(&[Hook::OnFailure]), [task("a"), task("b")]);
    assert_eq!(story.fails("a", Outcome::TimedOut), ["run on_failure"]);
    assert_eq!(story.fails("b", Outcome::NoOp), NOTHING, "one is still running");
    let reasons: Vec<_> = story.state.hooks.runs().iter().map(|run| run.occasion.clone()).collect();
    let failed = |task: &str, reason: &str| Occasion::TaskFailed {
        task: task_id(task),
        attempt: 1,
        reason: reason.into(),
    };
    assert_eq!(
        reasons,
        [failed("a", "ran out of time"), failed("b", "stopped without changing anything")]
    );
    assert_eq!(ends(&mut story, 0, HookResult::Passed), ["run on_failure"]);
    assert_eq!(ends(&mut story, 1, HookResult::Passed), ["end Incomplete"]);
}

#[test]
fn what_ran_when_the_orchestrator_went_is_not_run_again() {
    let mut story = Story::developing(with(&[Hook::OnFailure]), [task("a"), task("b")]);
    story.fails("a", Outcome::TimedOut);
    story.fails("b", Outcome::TimedOut);
    assert_eq!(story.resumes(), ["run on_failure"], "only the one that had not begun");
    let stands: Vec<_> = story.state.hooks.runs().iter().map(|run| run.stands.clone()).collect();
    assert_eq!(stands, [HookStands::Ended(HookResult::CutShort), HookStands::Running]);
    let late = Event::HookFinished { number: 0, result: HookResult::Passed };
    assert_eq!(story.refuses(&late), "that hook is not running");
}

#[test]
fn a_session_that_stops_waits_for_the_end_of_its_hook_and_starts_no_other() {
    let mut story = Story::developing(with(&[Hook::OnFailure]), [task("a"), task("b")]);
    story.fails("a", Outcome::TimedOut);
    story.fails("b", Outcome::TimedOut);
    assert_eq!(story.asks_to_stop(), NOTHING);
    assert_eq!(ends(&mut story, 0, HookResult::CutShort), ["suspend"]);
    assert_eq!(story.resumes(), ["run on_failure"]);
}

#[test]
fn hooks_that_nobody_decided_are_refused_without_a_trace() {
    let mut story = Story::developing(with(&[Hook::PreValidation]), [task("a")]);
    let start = |occasion| Event::HookStarted { number: 0, occasion };
    let failed = Occasion::TaskFailed { task: task_id("a"), attempt: 1, reason: "x".into() };
    assert_eq!(story.refuses(&start(failed)), "there is no command for on_failure");
    let other = start(Occasion::ValidationDue { cycle: 2 });
    assert_eq!(story.refuses(&other), "that is not the cycle it is");
    story.finishes("a");
    let again = Event::HookStarted { number: 1, occasion: Occasion::ValidationDue { cycle: 1 } };
    assert_eq!(story.refuses(&again), "another hook is running");
    ends(&mut story, 0, HookResult::Passed);
    assert_eq!(story.refuses(&again), "it was run in this cycle");
}
