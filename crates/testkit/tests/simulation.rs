//! Thousands of simulated sessions: what must never happen, what must have
//! happened, and that the simulation is wild enough to mean something.

use std::collections::BTreeMap;

use blueflame_core::event::Event;
use blueflame_testkit::sim::run;

const SESSIONS: u64 = 2_500;

/// Every kind of end, outcome, question, answer and setback comes up in these
/// sessions, so that their passing says something about each of them.
const MUST_COME_UP: &[&str] = &[
    "end complete",
    "end nothing_to_do",
    "end incomplete",
    "end planning_failed",
    "end plan_declined",
    "end plan_rejected_too_often",
    "end stopped",
    "end budget",
    "end cycle_limit",
    "outcome finished",
    "outcome no-op",
    "outcome uncommitted",
    "outcome max-turns",
    "outcome budget agent",
    "outcome budget session",
    "outcome rate-limited",
    "outcome overloaded",
    "outcome timed-out",
    "outcome killed us",
    "outcome killed memory",
    "outcome killed other",
    "outcome crashed",
    "outcome violated",
    "outcome malformed",
    "answer plan approve",
    "answer plan quit",
    "answer plan replan",
    "answer plan edit",
    "answer validation_failed requeue",
    "answer validation_failed edit",
    "answer validation_failed drop",
    "answer validator_failed manual_pass",
    "answer validator_failed skip",
    "answer validator_failed retry",
    "answer changeset approve",
    "answer changeset skip",
    "answer changeset reject",
    "answer budget stop",
    "answer budget raise",
    "answer session continue",
    "answer session replan",
    "answer session stop",
    "deferral needs_unlanded",
    "deferral nothing_left",
    "deferral no_budget",
    "deferral base_keeps_moving",
    "event agent.start_failed",
    "event agent.lost",
    "event agent.granted",
    "event agent.stop_sent",
    "event gate.withdrawn",
    "event session.obstructed",
    "event session.suspended",
    "event session.resumed",
    "event provider.limited",
    "event provider.pause_ended",
    "event memory.sampled",
    "event publish.finished",
    "hook plan_approved",
    "hook validation_due",
    "hook landed",
    "hook task_failed",
    "hook result passed",
    "hook result failed",
    "hook result cut_short",
];

#[test]
fn thousands_of_sessions_end_well_and_break_no_rule() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut crashes = 0;
    for seed in 0..SESSIONS {
        let report = run(seed).unwrap_or_else(|broken| panic!("{broken}"));
        crashes += report.crashes;
        for (_, event) in &report.journal {
            for name in names(event) {
                *seen.entry(name).or_default() += 1;
            }
        }
    }
    assert!(crashes > SESSIONS, "only {crashes} crashes: the simulation has gone tame");
    let missing: Vec<&&str> =
        MUST_COME_UP.iter().filter(|name| !seen.contains_key(**name)).collect();
    assert!(missing.is_empty(), "never came up: {missing:?}");
}

#[test]
fn the_same_seed_gives_the_same_journal_byte_for_byte() {
    for seed in 0..200 {
        let once = run(seed).unwrap_or_else(|broken| panic!("{broken}")).lines();
        let twice = run(seed).unwrap_or_else(|broken| panic!("{broken}")).lines();
        assert_eq!(once, twice, "seed {seed}");
    }
}

/// What an event counts as, for the list above.
fn names(event: &Event) -> Vec<String> {
    let value = serde_json::to_value(event).expect("events are plain data");
    let mut names = vec![format!("event {}", value["t"].as_str().unwrap_or_default())];
    let data = &value["d"];
    match event {
        Event::SessionEnded { .. } => names.push(format!("end {}", word(&data["end"]))),
        Event::AgentExited { outcome, .. } => {
            let details = [&data["outcome"]["limit"], &data["outcome"]["by"]];
            let detail = details.iter().find_map(|detail| detail.as_str());
            let words = ["outcome", outcome.name()].into_iter().chain(detail);
            names.push(words.collect::<Vec<_>>().join(" "));
        }
        Event::GateAnswered { .. } => {
            let (gate, answer) = entry(&data["answer"]);
            names.push(format!("answer {gate} {}", word(answer)));
        }
        Event::ChangesetDeferred { .. } => {
            names.push(format!("deferral {}", word(&data["why"])));
        }
        Event::HookStarted { .. } => names.push(format!("hook {}", word(&data["occasion"]))),
        Event::HookFinished { .. } => {
            names.push(format!("hook result {}", word(&data["result"])));
        }
        _ => {}
    }
    names
}

/// The name of an enum's variant, as written in the journal.
fn word(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => entry(value).0,
    }
}

fn entry(value: &serde_json::Value) -> (String, &serde_json::Value) {
    let (name, inner) =
        value.as_object().and_then(|object| object.iter().next()).expect("a variant");
    (name.clone(), inner)
}
