//! Stopping and coming back, in every stage there is.

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, SessionAnswer};
use blueflame_core::outcome::{Killer, Outcome};
use blueflame_core::rules::Rules;

use crate::story::{NOTHING, Story};
use crate::words::{Details, oid, rules, task};

type Step = fn(&mut Story);

/// A story at a stage of its way, by name.
fn at(stage: &str) -> Story {
    let mut story = Story::to_be_planned(Rules { max_retries: 0, ..rules() });
    let steps: [(&str, Step); 13] = [
        ("planning", |story| drop(story.proposes([task("a"), task("b").group("h")]))),
        ("the plan is shown", |story| drop(story.approves_the_plan())),
        ("working", |story| drop((story.finishes("b"), story.builds("a")))),
        ("inspecting", |story| drop(story.passes_inspection("a"))),
        ("accepting", |story| drop((story.is_accepted("a"), story.is_accepted("b")))),
        ("validating", |story| {
            drop((story.is_judged("a", true, ""), story.is_judged("b", true, "")));
        }),
        ("folding", |story| drop(story.conflicts())),
        ("resolving", |story| {
            let fold = crate::words::fold(0xabc, "resolved");
            let product = blueflame_core::outcome::Product::Resolution(fold);
            story.exits("merger", Outcome::Finished { product });
        }),
        ("verifying", |story| drop(story.verifies())),
        ("the changeset is shown", |story| drop(story.approves())),
        ("landing", |story| drop(story.lands())),
        ("publishing", |story| {
            story.publishes(blueflame_core::event::PublishResult::Published);
            story.folds();
            story.verifies();
            story.rejects("no");
        }),
        ("the session is shown", |_| {}),
    ];
    for (name, step) in steps {
        if name == stage {
            return story;
        }
        step(&mut story);
    }
    panic!("there is no stage {stage}");
}

/// For each stage: what stopping stops, and what begins again afterwards.
const STAGES: [(&str, &[&str], &[&str]); 13] = [
    ("planning", &["stop plan"], &["plan"]),
    ("the plan is shown", &[], &["ask plan"]),
    ("working", &["stop develop a#1", "stop develop b#1"], &["develop a#2", "develop b#2"]),
    ("inspecting", &[], &["inspect a"]),
    ("accepting", &[], &["accept a", "accept b"]),
    ("validating", &["stop validate a#1", "stop validate b#1"], &["validate a#1", "validate b#1"]),
    ("folding", &[], &["fold g.c1[a]"]),
    ("resolving", &["stop resolve g.c1"], &["resolve g.c1"]),
    ("verifying", &[], &["verify g.c1"]),
    ("the changeset is shown", &[], &["ask changeset g.c1"]),
    ("landing", &[], &["land g.c1"]),
    ("publishing", &[], &["publish"]),
    ("the session is shown", &[], &["ask session"]),
];

#[test]
fn a_session_can_be_stopped_in_every_stage_and_goes_on_where_it_was() {
    for (stage, stops, again) in STAGES {
        let mut story = at(stage);
        let mut said = story.asks_to_stop();
        if !stops.is_empty() {
            assert_eq!(said, stops, "{stage}");
            assert_eq!(story.asks_to_stop(), NOTHING, "{stage}: everyone is told once");
            said.clear();
            for agent in story.state.crew.live().clone().into_keys() {
                let outcome = Outcome::Killed { by: Killer::Us };
                said =
                    story.fact(Event::AgentExited { agent, outcome, spend: crate::words::cost(1) });
            }
        }
        // A branch that is being moved is waited for: afterwards nothing moves.
        let again = match stage {
            "landing" => {
                assert_eq!(said, NOTHING, "{stage}");
                said = story.lands();
                &["publish"][..]
            }
            "publishing" => {
                assert_eq!(said, NOTHING, "{stage}");
                said = story.publishes(blueflame_core::event::PublishResult::Published);
                &["fold h.c1[b]"][..]
            }
            _ => again,
        };
        assert_eq!(said, ["suspend"], "{stage}");
        assert_eq!(story.refuses(&Event::PauseEnded), "the session is suspended");
        assert_eq!(story.resumes(), again, "{stage}");
        assert!(!story.state.stopping && !story.state.suspended);
    }
}

#[test]
fn after_a_crash_own_doings_are_done_again_and_agents_are_left_to_run() {
    for (stage, stops, again) in STAGES {
        let mut story = at(stage);
        let before = story.state.crew.live().clone();
        let expected = if stops.is_empty() { again } else { &[][..] };
        assert_eq!(story.resumes(), expected, "{stage}");
        assert_eq!(story.state.crew.live(), &before, "{stage}");
    }
}

#[test]
fn a_stop_that_was_sent_before_a_crash_is_sent_again_if_it_is_still_wanted() {
    let tasks = [task("a"), task("b").needs(&["a"])];
    let mut story = Story::developing(rules(), tasks);
    story.finishes("a");
    story.finishes("b");
    story.is_accepted("a");
    story.is_accepted("b");
    assert_eq!(story.is_judged("a", false, "bad"), ["stop validate b#1", "ask validation a"]);
    assert_eq!(story.resumes(), ["stop validate b#1", "ask validation a"]);
}

#[test]
fn nobody_is_started_while_the_session_stops() {
    let mut story = Story::developing(Rules { workers: 1, ..rules() }, [task("a"), task("b")]);
    assert_eq!(story.asks_to_stop(), ["stop develop a#1"]);
    assert_eq!(story.refuses(&Event::SessionSuspended), "agents are still at work");
    // It finished before the stop reached it; its work is not lost.
    assert_eq!(story.builds("a"), ["suspend"]);
    assert_eq!(story.phase("a"), "built");
    assert_eq!(story.resumes(), ["inspect a", "develop b#1"]);
}

#[test]
fn stopped_work_goes_on_from_its_snapshot_and_costs_no_retry() {
    let mut story = at("working");
    let agent = story.agent("a");
    story.fact(Event::SnapshotTaken { agent, commit: oid(9) });
    story.asks_to_stop();
    for name in ["a", "b"] {
        story.fails(name, Outcome::Killed { by: Killer::Us });
    }
    story.resumes();
    assert_eq!(story.task("a").snapshot, Some(oid(9)));
    assert_eq!(story.task("a").tally.retries, 0);
    story.builds("a");
    assert_eq!(story.task("a").snapshot, None, "finished work needs none");
}

#[test]
fn the_person_can_end_the_session_between_cycles() {
    let mut story = at("the session is shown");
    assert_eq!(story.answers(Answer::Session(SessionAnswer::Stop)), ["end Stopped"]);
    let again = Event::SessionResumed { repaired_bytes: None, verify: None };
    assert_eq!(story.refuses(&again), "the session has ended");
}

#[test]
fn a_session_does_not_end_beside_agents_questions_or_landings() {
    let end = Event::SessionEnded { end: blueflame_core::event::End::Stopped };
    assert_eq!(at("working").refuses(&end), "agents are still at work");
    assert_eq!(at("the changeset is shown").refuses(&end), "a question is still open");
    assert_eq!(at("landing").refuses(&end), "changeset `g.c1` is approved but has not landed");
}

#[test]
fn an_approval_survives_a_stop() {
    let mut story = at("landing");
    story.asks_to_stop();
    story.resumes();
    assert_eq!(story.base_moved(), ["fold g.c1[a]"]);
    assert_eq!(story.folds_to("resolved"), ["verify g.c1"]);
    assert_eq!(story.verifies(), ["land g.c1"]);
}
