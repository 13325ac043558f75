//! A thousand sessions: what is told stays within its bound, and is looked up in
//! no time to speak of.

use std::fs;
use std::time::Instant;

use blueflame::memory::{Keeper, Recall, Terms};
use blueflame::store::Store;
use blueflame_core::config;
use blueflame_core::ids::{ExecutorName, Role, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::memory::{Figure, Kind, Note, Standing};
use serde_json::Value;

use crate::install;
use crate::stage::Stage;

const SESSIONS: u32 = 1_000;

fn session(number: u32) -> SessionId {
    let (hours, rest) = (number / 3_600, number % 3_600);
    SessionId::new(format!("ses-20250101-{hours:02}{:02}{:02}", rest / 60, rest % 60)).unwrap()
}

/// What a session with two tasks that failed and five that landed leaves.
fn left_by(number: u32) -> Vec<Note> {
    let at = "2025-01-01T00:00:00Z".parse().unwrap();
    let note =
        |subject: &str, kind, title: String| Note::new(&session(number), subject, kind, at, &title);
    let on_task = |place: u32, kind, text: &str| {
        let id = format!("task-{place:03}");
        let title = format!("{id}: Part {place} of what session {number} was about");
        Note {
            task: TaskId::new(id.as_str()).ok(),
            paths: vec![LockPath::new(&format!("src/part{place}/mod.rs")).unwrap()],
            ..note(&id, kind, title).saying(text)
        }
    };
    let mut notes: Vec<Note> = (0..2)
        .map(|place| Note {
            standing: Some(Standing::Unresolved),
            causes: vec![format!("did not finish: ran out of time in part {place}")],
            ..on_task(place, Kind::Failure, &"It ran out of time again.\n".repeat(20))
        })
        .collect();
    let description = "A description of what had to be done.\n".repeat(20);
    notes.extend((2..7).map(|place| on_task(place, Kind::Result, &description)));
    notes.push(
        note("decision-1", Kind::Decision, format!("rejected changeset core.c{number}"))
            .saying("It has no tests."),
    );
    notes.push(note("session", Kind::Session, format!("goal {number}: some tasks did not land")));
    let figure = Figure {
        role: Role::Worker,
        executor: ExecutorName::new("embedded").unwrap(),
        finished: 5,
        seconds: 100 + u64::from(number % 20),
        micro_usd: 300_000,
        all_runs: 7,
        all_micro_usd: 2_000_000,
        all_tokens: 500_000,
    };
    notes.push(Note {
        figures: vec![figure],
        ..note("session", Kind::Cost, "$2.00 for 7 agent runs".into())
    });
    notes
}

#[test]
fn a_thousand_sessions_are_within_the_bound() {
    let stage = Stage::new("");
    let config = config::read(stage.read("blueflame.yaml").as_bytes()).config.unwrap();
    let memory = config.memory.as_ref().unwrap();
    let store = Store::find(&stage.repository()).unwrap();
    let keeper = Keeper::of(&store);
    keeper.import(&Terms::of(memory), (0..SESSIONS).flat_map(left_by).collect()).unwrap();

    let begun = Instant::now();
    let recall = Recall::of(&store, Some(memory), None);
    let context = recall.for_planner("Do it.").unwrap();
    let took = begun.elapsed();
    let bytes = fs::metadata(keeper.file()).unwrap().len();
    let found = keeper.look().unwrap().len();
    install::say(&format!(
        "{SESSIONS} sessions, {found} notes, {bytes} bytes: looked up and chosen in {took:?}\n"
    ));
    assert!(context.text.len() <= 4 * memory.context_tokens, "{}", context.text.len());
    assert!(context.text.len() > 3 * memory.context_tokens, "{}", context.text.len());
    assert!(context.text.contains(" unresolved failures, "), "some are left out");
    assert!(!context.text.contains("What came off"), "before what came off");
    assert!(context.text.contains(session(SESSIONS - 1).as_str()), "the newest are there");

    // The program itself, with what it makes of it.
    let told = stage.blueflame(&["memory", "show", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(document["text"], context.text);
    assert!(document["tokens"].as_u64().unwrap() <= 8_000);

    // And what it forecasts by it.
    let plan = crate::script::plan(&[crate::script::task("task-001", "one", "src/a.txt")]);
    let stage = stage.plan(&plan);
    fs::write(stage.env.path("script.yaml"), "replies: [{say: hi}]\n").unwrap();
    let arguments = ["run", "--dry-run", "--task", "Do it.", "--plan", "../plan.yaml"];
    let page = stage.blueflame(&arguments).exits(0).stdout;
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "a worker: 1m 49s (learned from earlier sessions), $0.30 (learned from earlier sessions)",
        "a worker by embedded: learned from 100 runs of earlier sessions; such a forecast was off \
         by ",
        "% in time and 0 % in cost so far",
    ] {
        assert!(page.contains(told), "`{told}` is not in {page}");
    }
}
