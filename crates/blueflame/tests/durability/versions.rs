//! Journals that earlier versions wrote are read by this one.
//!
//! There is one sample for each version in `tests/journals`. The newest one is
//! made again here, byte for byte; run the tests with `BLUEFLAME_BLESS=1` to write
//! it. Samples of older versions are never written again.

use std::path::{Path, PathBuf};

use blueflame::journal::{ReadError, SCHEMA};

use crate::sample::{Sample, check, journal, quick_dir};

const LAST: u64 = 13;

fn sample_of(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/journals/v{version}.jsonl"))
}

#[test]
fn the_current_version_writes_its_sample() {
    let dir = quick_dir();
    let written = journal(&dir.path().join("journal.jsonl"), LAST);
    if std::env::var_os("BLUEFLAME_BLESS").is_some() {
        std::fs::write(sample_of(SCHEMA), &written).unwrap();
    }
    let [written, committed] = [written, std::fs::read(sample_of(SCHEMA)).unwrap()]
        .map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(written, committed);
}

#[test]
fn every_version_is_read() {
    for version in 1..=SCHEMA {
        let (events, result) = check(&std::fs::read(sample_of(version)).unwrap());
        assert_eq!(result.unwrap().header.schema, version);
        assert_eq!(events, (2..=LAST).map(Sample::small).collect::<Vec<_>>());
    }
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
