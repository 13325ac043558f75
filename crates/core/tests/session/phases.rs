//! A story for every phase that a task can be in.

use std::collections::BTreeMap;

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, ChangesetAnswer, Gate, SessionAnswer, ValidationAnswer};
use blueflame_core::money::Spend;
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::rules::Rules;

use crate::story::Story;
use crate::words::{Details, cost, oid, rules, second, task, task_id, usd};

/// Every phase, each reached the way a session reaches it, always for `a`.
pub fn stories() -> BTreeMap<&'static str, Story> {
    // A budget, so that agents may ask for more of it.
    let rules = Rules { session_budget: usd(1_600), max_wave_cycles: 9, ..rules() };
    let strict = || {
        let tasks = [task("a").needs(&["base"]), task("base").group("base"), task("other")];
        let mut story = Story::developing(rules.clone(), tasks);
        story.finishes("base");
        story
    };
    let mut found = BTreeMap::new();
    let mut tell = |name, story| assert!(found.insert(name, story).is_none());

    let mut story = strict();
    tell("working", story.clone());
    let mut last_try = story.clone();
    last_try.fails("a", Outcome::TimedOut);
    last_try.fails("a", Outcome::TimedOut);
    tell("working (last try)", last_try.clone());
    last_try.fails("a", Outcome::TimedOut);
    last_try.finishes("other");
    for name in ["base", "other"] {
        last_try.passes(name);
    }
    last_try.merges();
    last_try.folds();
    last_try.verifies();
    last_try.rejects("so that there is another cycle");
    tell("failed", last_try);

    let mut pending = story.clone();
    pending.state.apply(second(50), &exit(&pending, Outcome::TimedOut)).expect("it is at work");
    tell("pending", pending);
    let mut built = story.clone();
    built.state.apply(second(50), &exit(&built, commit())).expect("it is at work");
    tell("built", built);
    story.builds("a");
    tell("inspecting", story.clone());
    let mut done = story.clone();
    let clean = Event::InspectionFinished { task: task_id("a"), violations: Vec::new() };
    let other = done.agent("other");
    let gone = Event::AgentExited { agent: other, outcome: commit(), spend: cost(0) };
    for event in [clean.clone(), gone] {
        done.state.apply(second(50), &event).expect("it is under way");
    }
    for event in [
        Event::InspectionStarted { task: task_id("other") },
        Event::InspectionFinished { task: task_id("other"), violations: Vec::new() },
    ] {
        done.state.apply(second(50), &event).expect("it is built");
    }
    tell("done", done);

    story.passes_inspection("a");
    story.finishes("other");
    story.passes("base");
    tell("accepting", story.clone());
    let mut accepted = story.clone();
    let clean = Event::AcceptanceFinished { task: task_id("a"), failures: Vec::new() };
    accepted.state.apply(second(50), &clean).expect("it is in acceptance");
    tell("accepted", accepted);
    story.is_accepted("a");
    tell("validating", story.clone());

    let mut disputed = story.clone();
    disputed.is_judged("a", false, "bad");
    tell("disputed", disputed.clone());
    disputed.answers(Answer::ValidationFailed(ValidationAnswer::Drop));
    disputed.passes("other");
    disputed.merges();
    disputed.folds();
    disputed.verifies();
    disputed.skips();
    tell("dropped", disputed);
    let mut unjudged = story.clone();
    unjudged.fails("a", Outcome::TimedOut);
    unjudged.fails("a", Outcome::TimedOut);
    tell("unjudged", unjudged);

    story.is_judged("a", true, "good");
    story.passes("other");
    story.merges();
    story.folds();
    tell("validated", story.clone());
    story.verifies();
    tell("under review", story.clone());
    let mut sent_back = story.clone();
    let reject = ChangesetAnswer::Reject { reason: "no".into() };
    sent_back.answers(Answer::Changeset(reject));
    let go_on = Answer::Session(SessionAnswer::Continue { retry: Vec::new() });
    let go_on = Event::GateAnswered { gate: Gate::Session, answer: go_on };
    sent_back.state.apply(second(90), &go_on).expect("the question is open");
    tell("requeued", sent_back);
    story.approves();
    tell("landing", story);
    found.extend(at_the_end_of_a_cycle(&rules));
    found
}

/// Phases that `a` is in when the person is asked how to go on.
fn at_the_end_of_a_cycle(rules: &Rules) -> BTreeMap<&'static str, Story> {
    let mut merged = Story::developing(rules.clone(), [task("a"), task("other").group("h")]);
    for name in ["a", "other"] {
        merged.finishes(name);
    }
    for name in ["a", "other"] {
        merged.passes(name);
    }
    merged.merges();
    merged.folds();
    merged.verifies();
    merged.rejects("no");

    let rules = Rules { max_retries: 0, ..rules.clone() };
    let tasks = [task("a").needs(&["base"]), task("base"), task("other").group("h")];
    let mut blocked = Story::developing(rules, tasks);
    blocked.fails("base", Outcome::TimedOut);
    blocked.finishes("other");
    blocked.passes("other");
    blocked.folds();
    blocked.verifies();
    blocked.rejects("no");
    let mut replaced = blocked.clone();
    replaced.answers(Answer::Session(SessionAnswer::Replan { notes: String::new() }));
    replaced.proposes([task("new")]);
    replaced.approves_the_plan();
    BTreeMap::from([("merged", merged), ("blocked", blocked), ("replaced", replaced)])
}

pub fn commit() -> Outcome {
    Outcome::Finished { product: Product::Commit(oid(0xc0)) }
}

fn exit(story: &Story, outcome: Outcome) -> Event {
    Event::AgentExited { agent: story.agent("a"), outcome, spend: Spend::default() }
}
