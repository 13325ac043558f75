//! Whatever an event says, it comes back as it was; and whatever happens to the
//! file, what comes back was said.

use blueflame::journal::Writer;
use proptest::prelude::*;

use crate::sample::{Sample, at, check, create, journal, quick_dir, read_all};

/// Any text, and the texts that look like parts of a record.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        any::<String>(),
        Just("\n".to_owned()),
        Just("\0\u{7f}\u{2028}".to_owned()),
        Just(r#","h":""#.to_owned()),
        Just(format!(r#","h":"{}"}}"#, "0".repeat(32))),
        Just(r#"{"q":2,"ts":""#.to_owned()),
        Just("\\".to_owned()),
        Just("\"".to_owned()),
        Just("🔥é\u{301}".to_owned()),
    ];
    prop::collection::vec(pieces, 0..4).prop_map(|pieces| pieces.concat())
}

fn event() -> impl Strategy<Value = Sample> {
    prop_oneof![
        (any::<u64>(), text(), prop::collection::vec(text(), 0..3))
            .prop_map(|(number, title, notes)| Sample::Added { number, title, notes }),
        text().prop_map(Sample::Blocked),
        Just(Sample::Stopped),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_come_back_as_they_were(batches in prop::collection::vec(prop::collection::vec(event(), 0..4), 1..4)) {
        let dir = quick_dir();
        let path = dir.path().join("journal.jsonl");
        let mut writer = create(&path);
        for batch in &batches {
            let batch: Vec<_> = batch.iter().map(|event| (at(2), event)).collect();
            writer.append(&batch).unwrap();
        }
        let events = batches.concat();
        prop_assert_eq!(&read_all(&path), &events);
        let opened = Writer::open(&path, |_| Ok(())).unwrap();
        prop_assert_eq!(opened.writer.head(), writer.head());
        let text = std::fs::read_to_string(&path).unwrap();
        prop_assert_eq!(text.matches('\n').count(), events.len() + 1);
    }

    #[test]
    fn what_is_read_from_a_changed_file_is_the_start_of_what_was_written(
        start in 0_usize..2000,
        len in 0_usize..400,
        instead in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(0)], 0..200),
    ) {
        let dir = quick_dir();
        let whole = journal(&dir.path().join("journal.jsonl"), 9);
        let start = start.min(whole.len());
        let end = (start + len).min(whole.len());
        let mut changed = whole.clone();
        changed.splice(start..end, instead);
        let (read, _) = check(&changed);
        let written: Vec<Sample> = (2..=9).map(Sample::small).collect();
        prop_assert!(written.starts_with(&read), "{read:?}");
    }
}
