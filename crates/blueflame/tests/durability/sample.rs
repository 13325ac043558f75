//! Small events to fill journals with, unlike any real one, and ways to write
//! and read them.

use std::path::Path;

use blueflame::journal::{Header, ReadError, Reader, Scan, Step, Writer, scan};
use blueflame_core::ids::SessionId;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", content = "d")]
pub enum Sample {
    #[serde(rename = "task.added")]
    Added { number: u64, title: String, notes: Vec<String> },
    #[serde(rename = "task.blocked")]
    Blocked(String),
    #[serde(rename = "session.stopped")]
    Stopped,
}

impl Sample {
    /// The event that the tests put at a place, small as most are.
    pub fn small(seq: u64) -> Sample {
        match seq % 4 {
            0 => Sample::Stopped,
            1 => Sample::Blocked(format!("\u{1f525} line one\nand \"two\" \\ {seq}")),
            _ => {
                let notes = vec!["größer".to_owned(), r#","h":"00"}"#.to_owned()];
                Sample::Added { number: seq, title: format!("task {seq}"), notes }
            }
        }
    }

    /// The same with a large one now and then: only those are torn by a kill.
    pub fn large(seq: u64) -> Sample {
        match seq % 16 {
            7 => Sample::Blocked(format!("{seq} ").repeat(80_000)),
            _ => Sample::small(seq),
        }
    }
}

pub fn at(seq: u64) -> Timestamp {
    let start = Timestamp::new(1_795_000_000, 123_000_000).unwrap();
    start + SignedDuration::from_secs(i64::try_from(seq).unwrap())
}

pub fn session() -> SessionId {
    SessionId::new("ses-20261115-090000").unwrap()
}

pub fn header() -> Header {
    Header { schema: 1, session: session(), program: "0.1.0".to_owned() }
}

pub fn create(path: &Path) -> Writer {
    Writer::create::<Sample>(path, &header(), at(1), &[]).unwrap()
}

/// A journal that ends with record `last`.
pub fn journal(path: &Path, last: u64) -> Vec<u8> {
    let mut writer = create(path);
    let events: Vec<(Timestamp, Sample)> =
        (2..=last).map(|seq| (at(seq), Sample::small(seq))).collect();
    let batch: Vec<_> = events.iter().map(|(at, event)| (*at, event)).collect();
    assert_eq!(writer.append(&batch).unwrap(), 2..last + 1);
    std::fs::read(path).unwrap()
}

/// Checks bytes as if they were a journal; gives the events too.
pub fn check(bytes: &[u8]) -> (Vec<Sample>, Result<Scan, ReadError>) {
    let mut events = Vec::new();
    let result = scan(Path::new("journal"), bytes, |record, _| {
        events.push(record.event()?);
        Ok(())
    });
    (events, result)
}

/// Everything that a reader finds in a file now.
pub fn read_all(path: &Path) -> Vec<Sample> {
    let mut reader = Reader::open(path).unwrap();
    let mut events = Vec::new();
    loop {
        match reader.step().unwrap() {
            Step::Record(record) => events.push(record.event().unwrap()),
            Step::NotYet => return events,
            Step::StartedOver => events.clear(),
        }
    }
}

/// A directory in memory where there is one: the tests that open thousands of
/// files are about bytes, not about disks.
pub fn quick_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
