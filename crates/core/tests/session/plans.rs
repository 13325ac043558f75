//! Planning: proposals, rejections, and plans after the first.

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, PlanAnswer, SessionAnswer};
use blueflame_core::money::Spend;
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::rules::{PerRole, Rules};
use blueflame_core::state::Stage;

use crate::story::{NOTHING, Story};
use crate::words::{Details, executor, rules, task, task_id};

fn replan(notes: &str) -> Answer {
    Answer::Plan(PlanAnswer::Replan { notes: notes.into() })
}

#[test]
fn a_plan_is_made_shown_and_only_then_carried_out() {
    let mut story = Story::to_be_planned(rules());
    assert_eq!(story.proposes([task("a")]), ["ask plan"]);
    assert!(story.state.board.tasks().is_empty());
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1"]);
}

#[test]
fn row_30_after_three_rejected_plans_it_is_time_to_write_one_by_hand() {
    let mut story = Story::to_be_planned(rules());
    story.proposes([task("a")]);
    assert_eq!(story.answers(replan("smaller")), ["plan"]);
    story.proposes([task("b")]);
    assert_eq!(story.answers(replan("smaller still")), ["plan"]);
    assert_eq!(story.state.planning.notes, ["smaller", "smaller still"]);
    story.proposes([task("c")]);
    assert_eq!(story.answers(replan("no")), ["end PlanRejectedTooOften"]);
}

#[test]
fn a_plan_can_be_edited_and_is_shown_again() {
    let mut story = Story::begin(rules(), [task("a")]);
    let edited = Plan { tasks: vec![task("b")] };
    let answer = Answer::Plan(PlanAnswer::Edit { plan: edited });
    assert_eq!(story.answers(answer), ["ask plan"]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop b#1"]);
}

#[test]
fn a_plan_can_be_declined() {
    let mut story = Story::begin(rules(), [task("a")]);
    assert_eq!(story.answers(Answer::Plan(PlanAnswer::Quit)), ["end PlanDeclined"]);
}

#[test]
fn row_41_an_empty_plan_ends_the_session_without_a_question() {
    let mut story = Story::to_be_planned(rules());
    assert_eq!(story.proposes(Vec::new()), ["end NothingToDo"]);
    let story = Story::begin(rules(), Vec::new());
    assert_eq!(story.state.ended(), Some(blueflame_core::event::End::NothingToDo));
}

#[test]
fn planners_are_tried_again_with_the_next_executor_and_then_given_up_on() {
    let executors =
        PerRole { planner: vec![executor("claude"), executor("codex")], ..rules().executors };
    let mut story = Story::to_be_planned(Rules { executors, max_retries: 2, ..rules() });
    let crash = Outcome::Crashed { detail: "exit 1".into() };
    assert_eq!(story.fails("planner", crash), ["plan with codex"]);
    let malformed = Outcome::Malformed { problems: vec!["no tasks".into()] };
    assert_eq!(story.fails("planner", malformed), ["plan with codex"]);
    assert_eq!(
        story.state.planning.notes,
        ["crashed: exit 1", "returned something unusable: no tasks"]
    );
    assert_eq!(story.fails("planner", Outcome::TimedOut), ["end PlanningFailed"]);
}

#[test]
fn a_rejected_plan_gives_the_planner_its_retries_back() {
    let mut story = Story::to_be_planned(Rules { max_retries: 1, ..rules() });
    assert_eq!(story.fails("planner", Outcome::TimedOut), ["plan"]);
    story.proposes([task("a")]);
    assert_eq!(story.answers(replan("again")), ["plan"]);
    assert_eq!(story.fails("planner", Outcome::TimedOut), ["plan"]);
    assert_eq!(story.fails("planner", Outcome::TimedOut), ["end PlanningFailed"]);
}

/// The first plan was sent back once. Then one group landed, one task was
/// skipped, one rejected, one failed; the person wants another plan.
fn replanning() -> Story {
    let tasks = [
        task("landed").group("one"),
        task("skipped").group("two"),
        task("rejected").group("three"),
        task("failed").group("four"),
    ];
    let rules = Rules { max_retries: 0, max_wave_cycles: 2, ..rules() };
    let mut story = Story::begin(rules, tasks.clone());
    assert_eq!(story.answers(replan("are you sure?")), ["plan"]);
    story.proposes(tasks);
    story.approves_the_plan();
    story.fails("failed", Outcome::TimedOut);
    for name in ["landed", "skipped", "rejected"] {
        story.finishes(name);
    }
    for name in ["landed", "skipped", "rejected"] {
        story.passes(name);
    }
    story.merges();
    story.folds();
    story.verifies();
    story.skips();
    story.folds();
    story.verifies();
    assert_eq!(story.rejects("no"), ["ask session"]);
    let answer = SessionAnswer::Replan { notes: "think again".into() };
    assert_eq!(story.answers(Answer::Session(answer)), ["plan"]);
    assert_eq!(story.state.stage, Stage::Planning);
    assert_eq!(story.state.planning.notes, ["think again"]);
    story
}

#[test]
fn row_31_a_new_plan_keeps_what_landed_and_replaces_the_rest() {
    let mut story = replanning();
    let new = [task("new").group("five").needs(&["landed"]), task("rejected").group("five")];
    assert_eq!(story.proposes(new), ["ask plan"]);
    assert_eq!(
        story.phases(["landed", "skipped", "rejected", "failed"]),
        ["merged", "validated", "requeued", "failed"],
        "nothing changes before the person agrees"
    );
    assert_eq!(
        story.approves_the_plan(),
        ["cycle 2", "develop new#1", "develop rejected#2"],
        "attempts go on counting"
    );
    assert_eq!(story.phases(["landed", "skipped", "failed"]), ["merged", "replaced", "replaced"]);
    assert_eq!(story.history("rejected"), ["#1 Rejected: no"]);
    story.finishes("new");
    story.finishes("rejected");
    story.passes("new");
    story.passes("rejected");
    assert_eq!(story.merges().last().unwrap(), "end Complete", "what is replaced is no loss");
}

#[test]
fn row_31_validated_work_is_kept_if_the_plan_still_has_the_very_same_task() {
    let mut story = replanning();
    story.proposes([task("skipped").group("two"), task("new")]);
    assert_eq!(story.approves_the_plan(), ["cycle 2", "develop new#1"]);
    assert_eq!(story.phase("skipped"), "validated");

    let mut story = replanning();
    story.proposes([task("skipped").group("two").priority(7), task("new")]);
    assert_eq!(story.approves_the_plan(), ["cycle 2", "develop new#1", "develop skipped#2"]);
}

#[test]
fn row_31_validated_work_is_not_kept_without_what_it_was_built_on() {
    let mut story = Story::developing(rules(), [task("x"), task("y").needs(&["x"])]);
    for name in ["x", "y"] {
        story.finishes(name);
    }
    for name in ["x", "y"] {
        story.passes(name);
    }
    story.folds();
    story.verifies();
    assert_eq!(story.skips(), ["ask session"]);
    story.answers(Answer::Session(SessionAnswer::Replan { notes: String::new() }));
    story.proposes([task("x").priority(7), task("y").needs(&["x"])]);
    assert_eq!(story.approves_the_plan(), ["cycle 2", "develop x#2"]);
    assert_eq!(story.history("y"), ["#1 Superseded: what it was built on is done again"]);
    assert_eq!(story.finishes("x"), ["inspect x", "develop y#2"]);
}

#[test]
fn row_31_a_plan_has_to_fit_what_landed() {
    let mut story = replanning();
    let mut refused = |tasks: Vec<TaskSpec>| {
        let outcome = Outcome::Finished { product: Product::Plan(Plan { tasks }) };
        let agent = story.agent("planner");
        story.refuses(&Event::AgentExited { agent, outcome, spend: Spend::default() })
    };
    assert_eq!(refused(vec![task("landed")]), "`landed` landed already");
    assert_eq!(refused(vec![task("x"), task("x")]), "two tasks are called `x`");
    assert_eq!(
        refused(vec![task("x").needs(&["skipped"])]),
        "`x` needs `skipped`, which is neither planned nor landed",
        "what a plan drops cannot be built on"
    );
    assert_eq!(
        refused(vec![task("x").needs(&["y"]), task("y").needs(&["x"])]),
        "tasks need each other in a circle around `x`"
    );
    let crossed = vec![
        task("a").group("one-way"),
        task("b").group("other-way").needs(&["a"]),
        task("c").group("one-way").needs(&["b"]),
    ];
    assert_eq!(refused(crossed), "groups need each other in a circle around `one-way`");
}

#[test]
fn row_31_plans_can_be_sent_back_three_times_again() {
    let mut story = replanning();
    for _ in 0..2 {
        story.proposes([task("new")]);
        assert_eq!(story.answers(replan("no")), ["plan"]);
    }
    story.proposes([task("new")]);
    assert_eq!(story.answers(replan("no")), ["end PlanRejectedTooOften"]);
}

#[test]
fn row_31_a_planner_that_fails_leaves_the_decision_to_the_person() {
    let mut story = replanning();
    assert_eq!(story.fails("planner", Outcome::TimedOut), ["ask session"]);
    assert_eq!(story.continues(&["failed"]), ["cycle 2", "develop rejected#2", "develop failed#2"]);
    assert_eq!(story.has_spent("failed", 1), NOTHING);
}

#[test]
fn row_31_an_empty_plan_after_the_first_cycle_is_a_question_like_any_other() {
    let mut story = replanning();
    assert_eq!(story.proposes(Vec::new()), ["ask plan"]);
    assert_eq!(story.approves_the_plan(), ["cycle 2", "end Complete"]);
    assert!(story.state.board.get(&task_id("rejected")).is_some());
}
