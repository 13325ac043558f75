//! A journal that was damaged while nobody ran its session: everyone who would act
//! on it refuses and names the place, nobody changes a byte of it, and once it is as
//! it was the session goes on.

use std::fs;

use super::story;
use crate::stage::{RESUME, Stage};

/// A session that waits for an answer in the middle of its merge wave.
fn suspended() -> Stage {
    let stage = story::of_two();
    stage.decide("plan: [approve]\nchangesets: {one: approve}\n");
    stage.run().exits(4);
    stage.decide(story::DECISIONS);
    stage
}

#[test]
fn no_damage_is_acted_upon_wherever_it_is() {
    let stage = suspended();
    let journal = stage.session().join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    let starts = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let records: Vec<usize> = [0].into_iter().chain(starts).collect();
    let main = stage.git(&["rev-parse", "main"]);
    for (number, place) in records.windows(2).enumerate() {
        let mut damaged = whole.clone();
        // Another place and another bit in each record.
        let at = place[0] + (number * 37) % (place[1] - place[0] - 1);
        damaged[at] ^= 1 << (number % 7);
        fs::write(&journal, &damaged).unwrap();
        for arguments in [&RESUME[..], &["status"], &["replay"], &["cost"]] {
            let told = stage.blueflame(arguments);
            assert_eq!(told.code, Some(70), "byte {at}, {arguments:?}: {told}");
            assert!(told.stderr.contains("journal.jsonl"), "{told}");
        }
        assert_eq!(fs::read(&journal).unwrap(), damaged, "byte {at}: it was touched");
    }
    assert_eq!(stage.git(&["rev-parse", "main"]), main);
    assert!(stage.processes().is_empty());
    fs::write(&journal, &whole).unwrap();
    stage.resume().exits(0);
    assert_eq!(stage.sources(), [("src/shared.txt".into(), "of one and two".into())].into());
}

#[test]
fn a_torn_end_is_set_aside_told_and_gone_on_from() {
    let stage = suspended();
    let journal = stage.session().join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    let torn = &whole[..whole.len() - 20];
    fs::write(&journal, torn).unwrap();
    stage.resume().exits(0);
    let resumed = stage.events("session.resumed");
    let last_record = torn.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    assert_eq!(resumed[0]["repaired_bytes"], torn.len() - last_record);
    let kept = format!("journal.jsonl.torn-{last_record}");
    assert_eq!(fs::read(stage.session().join(kept)).unwrap(), torn[last_record..]);
    assert_eq!(stage.sources(), [("src/shared.txt".into(), "of one and two".into())].into());
}
