//! Seed row 4: every phase of a task against every event that concerns one.
//!
//! The table lists what may happen. Everything it does not list is tried as
//! well, and has to be refused without a trace.

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::event::{
    Event, LandResult, PlannedChangeset, Process, StartFault, VerifyResult, Work,
};
use blueflame_core::gate::{
    Answer, ChangesetAnswer, Gate, SessionAnswer, ValidationAnswer, ValidatorAnswer,
};
use blueflame_core::ids::{AgentId, ChangesetId, Role};
use blueflame_core::money::{Budget, Spend};
use blueflame_core::outcome::{Killer, Outcome, Product, Verdict};

use crate::phases::{commit, stories};
use crate::story::Story;
use crate::words::{self, cost, executor, oid, second, task_id, usd};

/// Phase, event, and the phase after it. Retries: two at the start, none left
/// in `built (last try)` and `working (last try)`.
const ALLOWED: &str = "
    pending              claim-worker           working
    pending              resumed                pending
    requeued             cycle-started          pending
    requeued             resumed                requeued
    working              started                working
    working              start-failed           pending
    working              usage                  working
    working              grant-wanted           working
    working              snapshot               working
    working              stop-sent              working
    working              commit                 built
    working              timed-out              pending
    working              killed-by-us           pending
    working              lost                   pending
    working              resumed                working
    working (last try)   started                working
    working (last try)   start-failed           failed
    working (last try)   usage                  working
    working (last try)   grant-wanted           working
    working (last try)   snapshot               working
    working (last try)   stop-sent              working
    working (last try)   commit                 built
    working (last try)   timed-out              failed
    working (last try)   killed-by-us           pending
    working (last try)   lost                   pending
    working (last try)   resumed                working
    built                inspection-started     inspecting
    built                resumed                built
    inspecting           inspection-clean       done
    inspecting           inspection-violated    pending
    inspecting           resumed                built
    done                 validation-started     done
    done                 acceptance-started     accepting
    done                 resumed                done
    accepting            acceptance-clean       accepted
    accepting            acceptance-failed      requeued
    accepting            resumed                done
    accepted             claim-validator        validating
    accepted             resumed                accepted
    validating           started                validating
    validating           start-failed           accepted
    validating           usage                  validating
    validating           grant-wanted           validating
    validating           snapshot               validating
    validating           stop-sent              validating
    validating           verdict-pass           validated
    validating           verdict-fail           disputed
    validating           timed-out              accepted
    validating           killed-by-us           accepted
    validating           lost                   accepted
    validating           resumed                validating
    disputed             answer-requeue         requeued
    disputed             answer-edit            requeued
    disputed             answer-drop            dropped
    disputed             resumed                disputed
    unjudged             answer-manual-pass     validated
    unjudged             answer-skip-task       failed
    unjudged             answer-retry           accepted
    unjudged             resumed                unjudged
    validated            verify-failed          requeued
    validated            resumed                validated
    under review         answer-approve         validated
    under review         answer-skip            validated
    under review         answer-reject          requeued
    under review         resumed                validated
    landing              landed                 merged
    landing              base-moved             validated
    landing              resumed                validated
    merged               answer-continue        merged
    merged               resumed                merged
    failed               retried                requeued
    failed               answer-continue        failed
    failed               resumed                failed
    blocked              answer-continue        blocked
    blocked              resumed                blocked
    dropped              retried                requeued
    dropped              answer-continue        dropped
    dropped              resumed                dropped
    replaced             resumed                replaced
";

/// Every event that concerns `a`, by name.
fn events(story: &Story) -> BTreeMap<&'static str, Event> {
    let a = || task_id("a");
    // Where nobody is at work on it, somebody who never was.
    let live = story.state.crew.live().iter();
    let mut at_work = live.filter(|(_, agent)| agent.work.task() == Some(&a())).map(|(id, _)| id);
    let agent = at_work.next().cloned().unwrap_or(AgentId::from_number(Role::Worker, 0xdead));
    let attempts = story.task("a").attempts;
    let claim = |work: Work| Event::AgentClaimed {
        agent: AgentId::from_number(work.role(), 0xbeef),
        work,
        executor: executor("claude"),
        cap: Budget::Unlimited,
        grant: usd(1),
        passed_over: Vec::new(),
    };
    let exited = |outcome: Outcome| Event::AgentExited {
        agent: agent.clone(),
        outcome,
        spend: Spend::default(),
    };
    let verdict = |pass: bool| {
        let verdict = Verdict { pass, notes: String::new(), issues: Vec::new() };
        exited(Outcome::Finished { product: Product::Verdict(verdict) })
    };
    let changeset = story
        .state
        .merging
        .changesets
        .iter()
        .find(|changeset| changeset.tasks.contains(&a()))
        .map_or(ChangesetId::new("g.c9").expect("a changeset"), |found| found.planned.id.clone());
    let answer = |gate: Gate, answer: Answer| Event::GateAnswered { gate, answer };
    let validation = |given| answer(Gate::ValidationFailed(a()), Answer::ValidationFailed(given));
    let validator = |given| answer(Gate::ValidatorFailed(a()), Answer::ValidatorFailed(given));
    let review = |given| answer(Gate::Changeset(changeset.clone()), Answer::Changeset(given));
    let session = |retry| answer(Gate::Session, Answer::Session(SessionAnswer::Continue { retry }));
    let planned = PlannedChangeset {
        id: changeset.clone(),
        group: story.task("a").spec.group.clone(),
        tasks: vec![a()],
        needs: Vec::new(),
    };
    let red = || vec!["red".to_owned()];
    let guilty = VerifyResult::Failed { culprit: Some(a()), evidence: String::new() };
    let process = Process { pid: 1, start_time: 1, boot_id: String::new() };
    let landed = |result| Event::LandFinished { changeset: changeset.clone(), result };
    BTreeMap::from([
        ("resumed", Event::SessionResumed { repaired_bytes: None, verify: None }),
        (
            "cycle-started",
            Event::CycleStarted { cycle: story.state.cycle + 1, config: String::new() },
        ),
        ("validation-started", Event::ValidationStarted),
        ("claim-worker", claim(Work::Develop { task: a(), attempt: attempts + 1 })),
        ("claim-old-attempt", claim(Work::Develop { task: a(), attempt: attempts })),
        ("claim-later-attempt", claim(Work::Develop { task: a(), attempt: attempts + 2 })),
        ("claim-validator", claim(Work::Validate { task: a(), attempt: attempts })),
        ("claim-validator-early", claim(Work::Validate { task: a(), attempt: attempts + 1 })),
        ("started", Event::AgentStarted { agent: agent.clone(), process, skills: Vec::new() }),
        (
            "start-failed",
            Event::AgentStartFailed {
                agent: agent.clone(),
                reason: String::new(),
                fault: StartFault::Program,
            },
        ),
        ("usage", Event::UsageReported { agent: agent.clone(), spend: cost(1) }),
        ("grant-wanted", Event::GrantWanted { agent: agent.clone() }),
        ("granted-unasked", Event::Granted { agent: agent.clone(), grant: usd(2) }),
        ("snapshot", Event::SnapshotTaken { agent: agent.clone(), commit: oid(5) }),
        ("stop-sent", Event::StopSent { agent: agent.clone() }),
        ("commit", exited(commit())),
        ("verdict-pass", verdict(true)),
        ("verdict-fail", verdict(false)),
        ("timed-out", exited(Outcome::TimedOut)),
        ("killed-by-us", exited(Outcome::Killed { by: Killer::Us })),
        ("lost", Event::AgentLost { agent: agent.clone(), spend: Some(Spend::default()) }),
        ("inspection-started", Event::InspectionStarted { task: a() }),
        ("inspection-clean", Event::InspectionFinished { task: a(), violations: Vec::new() }),
        ("inspection-violated", Event::InspectionFinished { task: a(), violations: red() }),
        ("acceptance-started", Event::AcceptanceStarted { task: a() }),
        ("acceptance-clean", Event::AcceptanceFinished { task: a(), failures: Vec::new() }),
        ("acceptance-failed", Event::AcceptanceFinished { task: a(), failures: red() }),
        ("asked-validation", Event::GateOpened { gate: Gate::ValidationFailed(a()) }),
        ("asked-validator", Event::GateOpened { gate: Gate::ValidatorFailed(a()) }),
        ("answer-requeue", validation(ValidationAnswer::Requeue { notes: String::new() })),
        ("answer-edit", validation(ValidationAnswer::Edit { description: None, file_locks: None })),
        ("answer-drop", validation(ValidationAnswer::Drop)),
        ("answer-manual-pass", validator(ValidatorAnswer::ManualPass)),
        ("answer-skip-task", validator(ValidatorAnswer::Skip)),
        ("answer-retry", validator(ValidatorAnswer::Retry)),
        ("answer-approve", review(ChangesetAnswer::Approve)),
        ("answer-skip", review(ChangesetAnswer::Skip)),
        ("answer-reject", review(ChangesetAnswer::Reject { reason: String::new() })),
        ("answer-continue", session(Vec::new())),
        ("retried", session(vec![a()])),
        ("merge-planned", Event::MergePlanned { changesets: vec![planned] }),
        ("fold-started", Event::FoldStarted { changeset: changeset.clone(), tasks: vec![a()] }),
        (
            "verify-failed",
            Event::VerifyFinished {
                changeset: changeset.clone(),
                result: guilty,
                commands: Vec::new(),
            },
        ),
        ("land-started", Event::LandStarted { changeset: changeset.clone() }),
        ("landed", landed(LandResult::Landed)),
        ("base-moved", landed(LandResult::BaseMoved)),
    ])
}

#[test]
fn row_4_every_phase_and_every_event_that_concerns_a_task() {
    let allowed: BTreeMap<(&str, &str), &str> = ALLOWED
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let words: Vec<&str> =
                line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
            let [phase, event, next] = words[..] else { panic!("three columns: {line}") };
            ((phase, event), next)
        })
        .collect();
    let mut tried = BTreeSet::new();
    let mut wrong = Vec::new();
    for (phase, story) in stories() {
        for (name, event) in events(&story) {
            tried.insert((phase, name));
            let mut state = story.state.clone();
            let accepted = state.apply(second(100), &event);
            let became = state.board.get(&task_id("a")).map(|task| words::phase(&task.phase));
            let became = became.unwrap_or_default();
            match (accepted, allowed.get(&(phase, name))) {
                (Ok(()), Some(next)) if became.starts_with(next) => {}
                (Ok(()), expected) => {
                    wrong.push(format!("{phase} + {name} = {became}, expected {expected:?}"));
                }
                (Err(illegal), Some(next)) => {
                    wrong.push(format!("{phase} + {name}: {illegal}, expected {next}"));
                }
                (Err(illegal), None) => {
                    assert_eq!(state, story.state, "{phase} + {name} left a trace");
                    assert!(!illegal.why.is_empty());
                }
            }
        }
    }
    let untried: Vec<_> = allowed.keys().filter(|pair| !tried.contains(*pair)).collect();
    assert!(untried.is_empty(), "in the table but never tried: {untried:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(tried.len(), 20 * 46, "every phase against every event");
}

#[test]
fn row_4_the_stories_stand_where_they_say() {
    for (phase, story) in stories() {
        let stands = story.phase("a");
        let expected = match phase {
            "working (last try)" => "working",
            "under review" | "landing" => "validated",
            "blocked" => "blocked by base",
            other => other,
        };
        assert_eq!(stands, expected, "{phase}");
    }
}
