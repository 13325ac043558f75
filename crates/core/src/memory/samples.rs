//! Notes for tests.

use jiff::Timestamp;
use proptest::prelude::*;

use super::note::{Figure, Kind, Note, Standing};
use crate::ids::{ExecutorName, Role, SessionId, TaskId};
use crate::lock_path::LockPath;

/// The session of a number; larger ones are later.
pub fn session(number: u32) -> SessionId {
    let (day, second) = (number / 60, number % 60);
    SessionId::new(format!("ses-{:08}-0000{second:02}", 20_260_000 + day)).unwrap()
}

pub fn at(number: u32) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::from(number)).unwrap()
}

pub fn note(number: u32, subject: &str, kind: Kind, title: &str) -> Note {
    Note::new(&session(number), subject, kind, at(number), title)
}

/// A failure of a task on a file.
pub fn failure(number: u32, task: &str, title: &str, standing: Standing) -> Note {
    Note {
        task: TaskId::new(task).ok(),
        paths: vec![LockPath::new("src/lib.rs").unwrap()],
        standing: Some(standing),
        causes: vec!["did not finish: ran out of time".into()],
        ..note(number, task, Kind::Failure, &format!("{task}: {title}"))
            .saying(&format!("failed: {title}\nattempt 1 did not finish: ran out of time"))
    }
}

pub fn result(number: u32, task: &str, title: &str) -> Note {
    Note {
        task: TaskId::new(task).ok(),
        paths: vec![LockPath::new("src/lib.rs").unwrap()],
        ..note(number, task, Kind::Result, &format!("{task}: {title}"))
            .saying("landed in core.c1 with attempt 1, for $0.45\nAll of it.")
    }
}

pub fn cost(number: u32, seconds: u64, micro_usd: u64) -> Note {
    let figure = Figure {
        role: Role::Worker,
        executor: ExecutorName::new("claude").unwrap(),
        finished: 2,
        seconds,
        micro_usd,
        all_runs: 3,
        all_micro_usd: 3 * micro_usd,
        all_tokens: 1_000,
    };
    Note { figures: vec![figure], ..note(number, "session", Kind::Cost, "$1.35 for 3 agent runs") }
}

/// Everything that a session with some trouble leaves.
pub fn whole_session(number: u32) -> Vec<Note> {
    let standing = if number.is_multiple_of(3) { Standing::Resolved } else { Standing::Unresolved };
    vec![
        failure(number, "task-001", &format!("Do thing {number} at last"), standing),
        result(number, "task-002", &format!("Another thing, number {number}")),
        result(number, "task-003", &format!("A third thing, number {number}")),
        note(number, "decision-1", Kind::Decision, &format!("rejected changeset {number}"))
            .saying("It has no tests.\nit held:\ntask-002: Another thing"),
        note(number, "session", Kind::Session, &format!("goal {number}: some tasks did not land"))
            .saying("2 of 3 tasks landed in 1 cycle, 60 s and $1.35"),
        cost(number, 200 + u64::from(number % 10), 450_000),
    ]
}

/// Any notes at all, of few sessions so that they meet.
pub fn any_notes() -> impl Strategy<Value = Vec<Note>> {
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let standing = prop::sample::select(vec![Standing::Resolved, Standing::Unresolved]);
    let path = prop::sample::select(vec!["src/a.rs", "src", "docs/b.md", "x/y/z"]);
    let one = (0_u32..12, 0_u32..4, kind, "\\PC{0,60}", any::<String>(), standing, path).prop_map(
        |(number, task, kind, title, text, standing, path)| Note {
            task: TaskId::new(format!("task-{task}")).ok(),
            paths: vec![LockPath::new(path).unwrap()],
            standing: (kind == Kind::Failure).then_some(standing),
            causes: if kind == Kind::Failure { vec![format!("cause {task}")] } else { Vec::new() },
            ..note(number, &subject(kind, task), kind, &format!("task-{task}: {title}"))
                .saying(&text)
        },
    );
    prop::collection::vec(one, 0..30)
}

fn subject(kind: Kind, task: u32) -> String {
    match kind {
        Kind::Session | Kind::Cost => "session".into(),
        Kind::Failure | Kind::Result => format!("task-{task}"),
        Kind::Decision => format!("decision-{task}"),
        Kind::Pattern => format!("pattern-{task}"),
    }
}
