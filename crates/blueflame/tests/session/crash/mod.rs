//! The crash battery: orchestrators that die at every moment of a session, and
//! what must be the same as if none had.
//!
//! A battle is one session whose orchestrators are killed one after the other,
//! until one comes to the end. `BLUEFLAME_CRASH_KILLS=5000` makes the battery
//! longer, and `BLUEFLAME_CRASH_SEED` with the seed that a failure prints fights
//! that one battle again.

mod damage;
mod death;
mod faults;
mod ledger;
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use self::death::{Chance, Death, Manner};
use self::ledger::{Ledger, Person};
use crate::needed;
use crate::stage::{Again, RESUME, Stage};

/// How many orchestrators are killed unless somebody wants more.
const KILLS: u64 = 320;

/// More deaths than this in one session: it gets nowhere.
const GETS_NOWHERE: u64 = 500;

#[test]
fn whoever_dies_whenever_the_session_ends_as_if_nobody_had() {
    let undisturbed = undisturbed();
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    if let Some(seed) = number("BLUEFLAME_CRASH_SEED") {
        battle(seed, &undisturbed);
        return;
    }
    let can_count = needed::is_there("strace");
    let wanted = number("BLUEFLAME_CRASH_KILLS").unwrap_or(KILLS);
    let (killed, seeds) = (AtomicU64::new(0), AtomicU64::new(0));
    let tally = Mutex::new(BTreeMap::<&str, u64>::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = seeds.fetch_add(1, Ordering::Relaxed);
                    if seed >= Manner::ALL && killed.load(Ordering::Relaxed) >= wanted {
                        break;
                    }
                    if Manner::of(seed).counts_calls() && !can_count {
                        continue;
                    }
                    let kills = battle(seed, &undisturbed);
                    killed.fetch_add(kills, Ordering::Relaxed);
                    *tally.lock().unwrap().entry(Manner::of(seed).name()).or_default() += kills;
                }
            });
        }
    });
    let (killed, tally) = (killed.into_inner(), tally.into_inner().unwrap());
    println!("{killed} orchestrators killed: {tally:?}");
}

fn undisturbed() -> Ledger {
    let stage = story::stage();
    let person = Person::begins(&stage);
    stage.run().exits(0);
    assert_eq!(stage.sources(), story::sources());
    Ledger::of(&stage, &person)
}

/// One session, as often interrupted as its seed says. The answer is how often
/// somebody was killed.
fn battle(seed: u64, undisturbed: &Ledger) -> u64 {
    let stage = story::stage();
    let person = Person::begins(&stage);
    let manner = Manner::of(seed);
    let mut chance = Chance::new(seed);
    let _again = Again(format!(
        "BLUEFLAME_CRASH_SEED={seed} cargo test -p blueflame --test session \
         whoever_dies_whenever -- --nocapture"
    ));
    let (mut kills, mut in_vain, mut known) = (0, 0, 0);
    loop {
        assert!(kills < GETS_NOWHERE, "{kills} deaths and no end: {}", last(&stage));
        let begun = !stage.sessions().is_empty();
        let arguments = if begun { RESUME.to_vec() } else { stage.run_arguments() };
        let death = match manner.next(&mut chance, in_vain) {
            Death::Record { .. } if !begun => Death::First,
            death => death,
        };
        let told = death.carry_out(&stage, &arguments);
        if told.code == Some(0) {
            break;
        }
        let expected = manner.explains(&told, !stage.sessions().is_empty());
        assert!(expected, "after {kills} deaths, {death:?}: {told}\n{}", last(&stage));
        kills += 1;
        let now = different_events(&stage);
        in_vain = if now > known { 0 } else { in_vain + 1 };
        known = now;
    }
    let ledger = Ledger::of(&stage, &person);
    let same = match manner {
        // Agents died too, or could not start, so some work was done again.
        Manner::Blackout | Manner::Git => ledger.repository == undisturbed.repository,
        _ => ledger == *undisturbed,
    };
    assert!(
        same,
        "after {kills} deaths ({manner:?}):\n{ledger:#?}\nand not\n{undisturbed:#?}\n{}",
        unusual(&stage)
    );
    kills
}

/// How many different things have happened, whoever did them.
fn different_events(stage: &Stage) -> usize {
    let anonymous = |mut it: Value| {
        if let Some(data) = it["d"].as_object_mut() {
            data.retain(|key, _| !matches!(key.as_str(), "agent" | "process"));
        }
        format!("{} {}", it["t"], it["d"])
    };
    stage.journal().into_iter().map(anonymous).collect::<BTreeSet<_>>().len()
}

/// What may have been done twice: agents that did not end as usual, and how often
/// each attempt asked the model.
fn unusual(stage: &Stage) -> String {
    let kinds = ["agent.lost", "agent.start_failed"];
    let events = kinds.iter().flat_map(|kind| stage.events(kind)).map(|it| format!("{it}\n"));
    events.chain([format!("{:#?}", stage.requests())]).collect()
}

/// What the journal has of late.
fn last(stage: &Stage) -> String {
    let journal = stage.journal();
    let kinds = journal.iter().rev().take(40).filter_map(|it| it["t"].as_str());
    let kinds = kinds.collect::<Vec<_>>().join(" < ");
    let ends: Vec<String> =
        stage.events("agent.exited").iter().rev().take(3).map(ToString::to_string).collect();
    format!("{kinds}\n{}", ends.join("\n"))
}
