//! Journals that earlier versions wrote are read by this one.
//!
//! There is a directory of samples for each version in `tests/journals`. They
//! are simulated sessions (see `examples/simulated_session.rs`), or real ones for
//! what nobody simulates, and together hold every type of event of their version.
//! Samples are never written again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use blueflame::history;
use blueflame::journal::{ReadError, Reader, SCHEMA, Step};
use blueflame_core::decide::was_decided;
use blueflame_core::event::Event;

use crate::sample::{check, journal, quick_dir};

fn samples_of(version: u32) -> Vec<PathBuf> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/journals/v{version}"));
    let mut samples: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    samples.sort();
    assert!(!samples.is_empty(), "version {version} has no sample");
    samples
}

#[test]
fn every_version_is_read_and_folds_to_an_ended_session() {
    for version in 1..=SCHEMA {
        for sample in samples_of(version) {
            let history = history::fold(&sample, None, |_| ()).unwrap();
            assert_eq!(history.header.schema, version);
            assert!(history.state.ended().is_some(), "{}", sample.display());
        }
    }
}

/// A decision that comes out differently now would surprise whoever resumes a
/// session with a new version in the middle of it.
#[test]
fn the_decisions_in_the_newest_samples_are_still_taken() {
    for sample in samples_of(SCHEMA) {
        history::fold(&sample, None, |moment| {
            let decided = moment.before.is_none_or(|state| was_decided(state, moment.event));
            assert!(decided, "{}: {:?}", sample.display(), moment.record);
        })
        .unwrap();
    }
}

/// Reading and writing an event again changes no byte of it, so nothing in the
/// newest version was renamed, dropped or given another form.
#[test]
fn the_newest_samples_hold_every_event_in_the_form_it_has_now() {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for sample in samples_of(SCHEMA) {
        let mut reader = Reader::open(&sample).unwrap();
        while let Step::Record(record) = reader.step().unwrap() {
            let event: Event = record.event().unwrap();
            assert_eq!(serde_json::to_string(&event).unwrap(), record.payload());
            seen.insert(record.kind.to_owned());
        }
    }
    assert_eq!(seen, known_types(), "a new type of event needs a sample that holds it");
}

/// The types of events, as the parser lists them when it meets a strange one.
fn known_types() -> BTreeSet<String> {
    let error = serde_json::from_str::<Event>(r#"{"t":"no.such.event"}"#).unwrap_err().to_string();
    let (_, list) = error.split_once("expected one of ").unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn an_event_of_the_future_is_not_called_damage() {
    let dir = quick_dir();
    let path = dir.path().join("journal.jsonl");
    journal(&path, 3);
    let mut writer = blueflame::journal::Writer::open(&path, |_| Ok(())).unwrap().writer;
    let event = serde_json::json!({"t": "task.teleported", "d": {"to": "mars"}});
    writer.append(&[(crate::sample::at(4), &event)]).unwrap();
    let (_, result) = check(&std::fs::read(&path).unwrap());
    let Err(error @ ReadError::Event { .. }) = result else { panic!("{result:?}") };
    assert_eq!(
        error.to_string(),
        "`journal`: record 4 is a `task.teleported`, which this version of blueflame does not know"
    );
}
