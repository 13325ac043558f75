//! The paths that are taken again and again while people or agents wait.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use blueflame::ground::RealGround;
use blueflame::journal::{self, Header, Step, Writer};
use blueflame_core::config;
use blueflame_core::decide::decide;
use blueflame_core::event::Event;
use blueflame_core::ids::{Oid, Role, SessionId};
use blueflame_core::inspection::{FileChange, FileKind, Line, Lines, Side, Time, Work, inspect};
use blueflame_core::lock_path::LockPath;
use blueflame_core::memory::Notebook;
use blueflame_core::memory::context::{Reader, context};
use blueflame_core::policy::{Policy, PolicyRules, ToolCall};
use blueflame_core::projection::{status_file, tasks_file};
use blueflame_core::state::State;
use blueflame_gateway::dialect::Dialect;
use blueflame_gateway::meter::Meter;
use blueflame_testkit::long_session::{LongSession, plan};
use blueflame_testkit::notes::left_by;
use serde_json::json;

/// Gets everything ready, which is not counted, and gives what is.
type Prepare = fn() -> Box<dyn FnMut()>;

pub const PATHS: &[(&str, Prepare)] = &[
    ("decide among 1,000 tasks", decision),
    ("an exit, the decision and the next claim", turn_over),
    ("replay 1,000 events", replay),
    ("append 100 events to a journal", append),
    ("check and parse 100 events of a journal", check),
    ("the views of 100 tasks", views),
    ("judge a shell command", judge_command),
    ("judge a change of a file", judge_edit),
    ("inspect 100 new lines", inspection),
    ("get the rules of a worker ready", rules),
    ("read a configuration", configuration),
    ("meter 100 pieces of an answer", meter),
    ("choose what a planner is told of 50 sessions", recall),
];

fn decision() -> Box<dyn FnMut()> {
    let mut session = LongSession::half_done(plan(1_000));
    session.free_a_place();
    Box::new(move || {
        black_box(decide(&session.state));
    })
}

fn turn_over() -> Box<dyn FnMut()> {
    let mut session = LongSession::half_done(plan(1_000));
    Box::new(move || session.turn_over())
}

fn replay() -> Box<dyn FnMut()> {
    let session = LongSession::of_events(1_000);
    Box::new(move || {
        let history = session.journal.iter().map(|(at, event)| (*at, event));
        black_box(State::replay(history).unwrap());
    })
}

/// A journal with its first event, and the next hundred.
fn begun(directory: &Path) -> (PathBuf, Writer, Vec<(jiff::Timestamp, Event)>) {
    let mut events = LongSession::of_events(101).journal;
    events.truncate(101);
    let (at, first) = events.remove(0);
    let path = directory.join("journal.jsonl");
    let session = SessionId::new("ses-20260202-024000").unwrap();
    let writer = Writer::create(&path, &Header::new(session), at, &[&first]).unwrap();
    (path, writer, events)
}

fn append() -> Box<dyn FnMut()> {
    let directory = tempfile::tempdir().unwrap();
    let (_, mut writer, events) = begun(directory.path());
    Box::new(move || {
        let batch: Vec<_> = events.iter().map(|(at, event)| (*at, event)).collect();
        writer.append(&batch).unwrap();
        assert!(directory.path().exists(), "the journal is in it");
    })
}

fn check() -> Box<dyn FnMut()> {
    let directory = tempfile::tempdir().unwrap();
    let (path, mut writer, events) = begun(directory.path());
    let batch: Vec<_> = events.iter().map(|(at, event)| (*at, event)).collect();
    writer.append(&batch).unwrap();
    Box::new(move || {
        let mut reader = journal::Reader::open(&path).unwrap();
        while let Step::Record(record) = reader.step().unwrap() {
            black_box(record.event::<Event>().unwrap());
        }
        assert!(directory.path().exists(), "the journal is in it");
    })
}

fn views() -> Box<dyn FnMut()> {
    let session = LongSession::half_done(plan(100));
    Box::new(move || {
        black_box(serde_json::to_string_pretty(&tasks_file(&session.state)).unwrap());
        black_box(serde_json::to_string_pretty(&status_file(&session.state)).unwrap());
    })
}

fn judge(tool: &str, input: serde_json::Value) -> Box<dyn FnMut()> {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("src")).unwrap();
    fs::write(directory.path().join("src/lib.rs"), "").unwrap();
    let ground = RealGround::new(directory.path()).unwrap();
    let policy = Policy::new(worker_rules()).unwrap();
    let cwd = fs::canonicalize(directory.path()).unwrap().to_string_lossy().into_owned();
    let call = ToolCall { tool: tool.to_owned(), input, cwd };
    let verdict = policy.judge(&call, &ground);
    assert!(verdict.is_allowed(), "{verdict:?}");
    Box::new(move || {
        black_box(policy.judge(&call, &ground));
        assert!(directory.path().exists(), "it is judged by what is in it");
    })
}

fn judge_command() -> Box<dyn FnMut()> {
    judge("Bash", json!({"command": "cd src && git add lib.rs && git status --short | head -n 20"}))
}

fn judge_edit() -> Box<dyn FnMut()> {
    judge("Edit", json!({"file_path": "src/lib.rs", "old_string": "a", "new_string": "b"}))
}

fn inspection() -> Box<dyn FnMut()> {
    let policy = Policy::new(worker_rules()).unwrap();
    let text = |number: u32| match number % 4 {
        0 => format!("    let part_{number} = \"head {number}: \" + &name(\"and {number}\");"),
        1 => format!("    // Those of {number} come later; see https://example.com/{number}."),
        2 => format!("    if self.parts.len() > {number} {{ return Err(TooMany({number})); }}"),
        _ => String::new(),
    };
    let added = (1..=100).map(|number| Line { number, text: text(number) }).collect();
    let object = Oid::new("a".repeat(40)).unwrap();
    let change = FileChange {
        path: "src/parts.rs".into(),
        before: None,
        after: Some(Side { kind: FileKind::Plain, object, size: 5_000 }),
        lines: Lines { added, ..Lines::default() },
    };
    let work = Work {
        descends: true,
        author: "Agent <agent@example.com>".into(),
        time: Time { began: None, ended: 2_000 },
        changes: vec![change],
        commits: Vec::new(),
        paths: vec!["src/parts.rs".into()],
        too_much: Vec::new(),
    };
    let found = inspect(&policy, &work).violations();
    assert!(found.is_empty(), "{found:?}");
    Box::new(move || {
        black_box(inspect(&policy, &work));
    })
}

fn worker_rules() -> PolicyRules {
    let text = b"schema_version: 2\npermissions: {allowed_paths: ['src/**', 'tests/**']}\n";
    let scope = [LockPath::new("src").unwrap()];
    PolicyRules::of(&config::read(text).config.unwrap(), Role::Worker, &scope)
}

fn rules() -> Box<dyn FnMut()> {
    let rules = worker_rules();
    Box::new(move || {
        black_box(Policy::new(rules.clone()).unwrap());
    })
}

fn configuration() -> Box<dyn FnMut()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../blueflame.example.yaml");
    let text = fs::read(path).unwrap();
    Box::new(move || {
        black_box(config::read(&text).config.unwrap());
    })
}

fn meter() -> Box<dyn FnMut()> {
    let piece = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": "as much as a model says at a time"}});
    let piece = format!("event: content_block_delta\ndata: {piece}\n\n");
    Box::new(move || {
        let mut meter = Meter::new(Dialect::Messages, 20_000);
        meter.begin_stream();
        for _ in 0..100 {
            meter.take(piece.as_bytes());
        }
        assert!(black_box(meter.usage()).output > 0, "it was metered");
    })
}

fn recall() -> Box<dyn FnMut()> {
    let notebook = Notebook::new((0..50).flat_map(left_by));
    Box::new(move || {
        let reader = Reader::Planner { goal: "Do it." };
        black_box(context(&notebook, reader, 2_000).unwrap());
    })
}
