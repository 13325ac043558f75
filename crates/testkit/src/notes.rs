//! Notes of sessions that never were, for tests and benchmarks of memory.

use blueflame_core::ids::{ExecutorName, Role, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::memory::{Figure, Kind, Note, Standing};
use jiff::Timestamp;

/// The session of a number; larger ones are later.
pub fn session(number: u32) -> SessionId {
    let (hours, rest) = (number / 3_600, number % 3_600);
    SessionId::new(format!("ses-20250101-{hours:02}{:02}{:02}", rest / 60, rest % 60))
        .expect("a name of the right shape")
}

/// What a session with two tasks that failed and five that landed leaves.
pub fn left_by(number: u32) -> Vec<Note> {
    let at =
        Timestamp::from_second(1_735_689_600 + i64::from(number)).expect("a moment of that year");
    let note =
        |subject: &str, kind, title: String| Note::new(&session(number), subject, kind, at, &title);
    let on_task = |place: u32, kind, text: &str| {
        let id = format!("task-{place:03}");
        let title = format!("{id}: Part {place} of what session {number} was about");
        Note {
            task: TaskId::new(id.as_str()).ok(),
            paths: vec![
                LockPath::new(&format!("src/part{place}/mod.rs"))
                    .expect("a name of the right shape"),
            ],
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
        executor: ExecutorName::new("embedded").expect("a name of the right shape"),
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
