//! What sessions leave to know, from their journals.

use blueflame_core::event::{Event, LandResult, PublishResult, VerifyResult};
use blueflame_core::gate::{Answer, PlanAnswer, ValidationAnswer};
use blueflame_core::memory::harvest::{Harvest, Reasons};
use blueflame_core::memory::{Kind, Note};
use blueflame_core::outcome::Outcome;
use blueflame_core::rules::Rules;
use blueflame_core::state::State;

use crate::errands::{landed, revert, verified};
use crate::story::Story;
use crate::words::{Details, rules, task};

fn harvested(story: &Story, reasons: Reasons) -> Vec<Note> {
    let mut harvest = Harvest::default();
    let mut state: Option<State> = None;
    for (at, event) in &story.journal {
        match &mut state {
            None => state = State::begin(*at, event).ok(),
            Some(state) => {
                harvest.see(*at, event, state);
                state.apply(*at, event).expect("it was accepted before");
            }
        }
    }
    harvest.finish(&state.expect("it began"), reasons)
}

/// Each note in a line, with the lines of its text behind it.
fn told(story: &Story) -> Vec<String> {
    let notes = harvested(story, Reasons::Kept);
    let line = |note: &Note| {
        let standing = note.standing.map(|it| format!(" {it:?}")).unwrap_or_default();
        let text = note.text.replace('\n', " | ");
        format!("{}{standing}: {} -- {text}", note.kind.name(), note.title)
    };
    notes.iter().filter(|note| note.kind != Kind::Cost).map(line).collect()
}

#[test]
fn a_session_with_trouble_leaves_what_to_know() {
    let tasks = [task("a"), task("b").needs(&["a"]), task("c"), task("d")];
    let mut story = Story::to_be_planned(Rules { max_retries: 1, ..rules() });
    story.proposes([task("x")]);
    story.answers(Answer::Plan(PlanAnswer::Replan { notes: "No x, please.".into() }));
    story.proposes(tasks);
    story.approves_the_plan();
    story.fails("a", Outcome::TimedOut);
    story.fails("a", Outcome::NoOp);
    story.fails("c", Outcome::TimedOut);
    story.finishes("c");
    story.finishes("d");
    story.passes("c");
    story.is_disputed("d");
    story.answers(Answer::ValidationFailed(ValidationAnswer::Drop));
    story.merges();
    assert!(story.state.ended().is_some(), "{:?}", story.state.stage);
    insta::assert_snapshot!(told(&story).join("\n"));

    let notes = harvested(&story, Reasons::Kept);
    assert_eq!(harvested(&story, Reasons::Kept), notes, "the same journal, the same notes");
    let mut keys: Vec<&str> = notes.iter().map(|note| note.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), notes.len(), "no two have the same key");
    let failed = notes.iter().find(|note| note.is_unresolved()).expect("a failed");
    assert_eq!(failed.paths, story.task("a").spec.file_locks);
    assert_eq!(failed.causes.len(), 2, "{:?}", failed.causes);
    let bare = harvested(&story, Reasons::LeftOut);
    let failed = bare.iter().find(|note| note.is_unresolved()).expect("a failed");
    assert_eq!((failed.text.as_str(), failed.causes.len()), ("", 0));
}

#[test]
fn what_came_later_takes_the_place_of_what_was_known() {
    let mut story = Story::developing(rules(), [task("a").group("one"), task("b").group("two")]);
    story.finishes("a");
    story.finishes("b");
    story.passes("a");
    story.passes("b");
    story.folds();
    story.verifies();
    story.rejects("wrong endpoints");
    story.merges();
    let kinds = |story: &Story| -> Vec<Kind> {
        harvested(story, Reasons::Kept).iter().map(|it| it.kind).collect()
    };
    assert_eq!(kinds(&story), [Kind::Result, Kind::Decision], "it is not over yet");
    story.continues(&[]);
    story.finishes("a");
    story.passes("a");
    story.merges();
    assert_eq!(
        kinds(&story),
        [Kind::Failure, Kind::Result, Kind::Result, Kind::Decision, Kind::Session, Kind::Cost]
    );
    assert!(!harvested(&story, Reasons::Kept)[0].is_unresolved());
}

#[test]
fn what_was_taken_back_has_resolved_nothing() {
    let mut story = Story::developing(rules(), [task("a").group("alpha")]);
    story.fails("a", Outcome::TimedOut);
    story.finishes("a");
    story.passes("a");
    story.merges();
    assert!(story.state.ended().is_some(), "{:?}", story.state.stage);
    let failed = |story: &Story| harvested(story, Reasons::Kept).remove(0);
    assert!(!failed(&story).is_unresolved());
    let takes_back = |story: &mut Story, id: &str, undoes: &str| {
        story.fact(revert(id, undoes));
        story.fact(verified(id, VerifyResult::NotConfigured));
        story.fact(landed(id, LandResult::Landed));
        story.publishes(PublishResult::Published);
    };
    takes_back(&mut story, "revert-alpha.c1", "alpha.c1");
    let note = failed(&story);
    assert!(note.is_unresolved() && note.resolved_by.is_none(), "{note:?}");
    assert!(note.text.starts_with("landed with attempt 2, and was taken back\n"), "{note:?}");
    let kinds: Vec<Kind> = harvested(&story, Reasons::Kept).iter().map(|it| it.kind).collect();
    assert!(!kinds.contains(&Kind::Result), "{kinds:?}");
    // Unless that was taken back, too.
    takes_back(&mut story, "revert-revert-alpha.c1", "revert-alpha.c1");
    assert!(!failed(&story).is_unresolved());
}

#[test]
fn a_plan_that_never_came_about_is_a_failure() {
    let mut story = Story::to_be_planned(Rules { max_retries: 0, ..rules() });
    story.fails("planner", Outcome::Malformed { problems: vec!["no tasks".into()] });
    let notes = told(&story);
    assert!(notes[0].starts_with("failure Unresolved: planning: tell a story -- "), "{notes:?}");
    assert!(notes[0].contains("no tasks"), "{notes:?}");
    let ended = |event: &Event| matches!(event, Event::SessionEnded { .. });
    assert!(story.journal.iter().any(|(_, event)| ended(event)));
}
