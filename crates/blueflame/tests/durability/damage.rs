//! A journal cut at every byte, with every bit turned over, and with whole
//! records lost, doubled and exchanged.

use std::fs;

use blueflame::journal::{Flaw, OpenError, ReadError, Repair, Tail, Writer};

use crate::sample::{Sample, at, check, journal, quick_dir, read_all};

const LAST: u64 = 9;

/// The byte after each record, the header included.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    newlines.map(|(at, _)| at + 1).collect()
}

fn events(last: u64) -> Vec<Sample> {
    (2..=last).map(Sample::small).collect()
}

#[test]
fn cut_at_any_byte_it_goes_on_after_the_last_whole_record() {
    let dir = quick_dir();
    let path = dir.path().join("journal.jsonl");
    let whole = journal(&path, LAST);
    let ends = ends(&whole);
    for cut in 0..=whole.len() {
        let records = ends.iter().filter(|end| **end <= cut).count() as u64;
        fs::write(&path, &whole[..cut]).unwrap();
        let opened = Writer::open(&path, |record| record.event::<Sample>().map(drop));
        if records == 0 {
            // A journal appears with its header, so this was not an append.
            let refused = opened.unwrap_err();
            assert!(matches!(refused, OpenError::Read(ReadError::NoHeader { .. })), "{refused}");
            assert_eq!(fs::read(&path).unwrap(), &whole[..cut], "cut at {cut}");
            continue;
        }
        let mut opened = opened.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let end = ends[usize::try_from(records).unwrap() - 1];
        assert_eq!(opened.writer.head().seq, records, "cut at {cut}");
        assert_eq!(fs::read(&path).unwrap(), &whole[..end], "cut at {cut}");
        match opened.repair {
            None => assert_eq!(cut, end, "something was dropped and not told"),
            Some(Repair { at, bytes, kept_in }) => {
                assert_eq!((at, bytes), (end as u64, (cut - end) as u64), "cut at {cut}");
                assert_eq!(fs::read(&kept_in).unwrap(), &whole[end..cut], "cut at {cut}");
                fs::remove_file(kept_in).unwrap();
            }
        }
        let next = records + 1;
        opened.writer.append(&[(at(next), &Sample::small(next))]).unwrap();
        assert_eq!(read_all(&path), events(next), "cut at {cut}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something was left behind");
}

#[test]
fn no_turned_bit_goes_unnoticed() {
    let dir = quick_dir();
    let whole = journal(&dir.path().join("journal.jsonl"), LAST);
    let ends = ends(&whole);
    let last_start = ends[ends.len() - 2];
    let mut damaged = whole.clone();
    for byte in 0..whole.len() {
        for bit in 0..8 {
            damaged[byte] ^= 1 << bit;
            let (read, result) = check(&damaged);
            let place = format!("bit {bit} of byte {byte}");
            match result {
                Err(ReadError::Damaged(damage)) => {
                    let record = ends.iter().filter(|end| **end <= byte).count() as u64 + 1;
                    assert_eq!(damage.expected, record, "{place}: {damage}");
                    assert_eq!(read, events(LAST)[..read.len()], "{place}");
                }
                Err(error) => panic!("{place}: {error}"),
                // The newline at the very end is the only bit of news that the
                // last record is whole.
                Ok(scan) => {
                    assert_eq!(byte, whole.len() - 1, "{place} was accepted: {scan:?}");
                    let bytes = (whole.len() - last_start) as u64;
                    assert_eq!(scan.tail, Tail::Torn { at: last_start as u64, bytes });
                    assert_eq!(read, events(LAST - 1), "{place}");
                }
            }
            damaged[byte] ^= 1 << bit;
        }
    }
}

/// Takes a journal apart, changes the order of its lines, and gives what the
/// scan finds wrong: which record was expected, the flaw, and how many follow.
fn rearranged(change: impl FnOnce(&mut Vec<&[u8]>)) -> (u64, Flaw, u64) {
    let dir = quick_dir();
    let path = dir.path().join("journal.jsonl");
    let whole = journal(&path, LAST);
    let mut lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    change(&mut lines);
    let changed = lines.concat();
    fs::write(&path, &changed).unwrap();
    let refused = Writer::open(&path, |_| Ok(())).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), changed, "a damaged journal was touched");
    let OpenError::Read(ReadError::Damaged(damage)) = refused else { panic!("{refused}") };
    (damage.expected, damage.flaw, damage.following)
}

#[test]
fn a_lost_record_is_noticed_even_the_last_but_one() {
    for lost in 1..LAST {
        let place = usize::try_from(lost).unwrap() - 1;
        let found = rearranged(|lines| {
            lines.remove(place);
        });
        assert_eq!(found, (lost, Flaw::SequenceJumps { found: lost + 1 }, LAST - lost - 1));
    }
}

#[test]
fn a_doubled_record_is_noticed() {
    for doubled in 1..=LAST {
        let place = usize::try_from(doubled).unwrap() - 1;
        let found = rearranged(|lines| lines.insert(place, lines[place]));
        assert_eq!(found, (doubled + 1, Flaw::SequenceJumps { found: doubled }, LAST - doubled));
    }
}

#[test]
fn exchanged_records_are_noticed() {
    for first in 0..LAST {
        for second in first + 1..LAST {
            let [one, other] = [first, second].map(|place| usize::try_from(place).unwrap());
            let (expected, flaw, _) = rearranged(|lines| lines.swap(one, other));
            assert_eq!((expected, flaw), (first + 1, Flaw::SequenceJumps { found: second + 1 }));
        }
    }
}

#[test]
fn zeros_are_torn_at_the_end_and_damage_anywhere_else() {
    let dir = quick_dir();
    let path = dir.path().join("journal.jsonl");
    let whole = journal(&path, LAST);
    let last_start = ends(&whole)[usize::try_from(LAST).unwrap() - 2];

    let mut zeroed = whole.clone();
    zeroed[last_start + 10..].fill(0);
    fs::write(&path, &zeroed).unwrap();
    let repair = Writer::open(&path, |_| Ok(())).unwrap().repair.unwrap();
    assert_eq!(fs::read(repair.kept_in).unwrap(), &zeroed[last_start..]);

    let mut zeroed = whole.clone();
    zeroed[last_start - 40..last_start - 20].fill(0);
    let (_, result) = check(&zeroed);
    let Err(ReadError::Damaged(damage)) = result else { panic!("{result:?}") };
    assert_eq!((damage.flaw, damage.following), (Flaw::NotJson, 1));
}

#[test]
fn a_tail_is_kept_aside_under_a_free_name() {
    let dir = quick_dir();
    let path = dir.path().join("journal.jsonl");
    let whole = journal(&path, 3);
    let names: Vec<String> = (0..3)
        .map(|round| {
            fs::write(&path, [whole.as_slice(), format!("torn {round}").as_bytes()].concat())
                .unwrap();
            let kept_in = Writer::open(&path, |_| Ok(())).unwrap().repair.unwrap().kept_in;
            assert_eq!(fs::read_to_string(&kept_in).unwrap(), format!("torn {round}"));
            kept_in.file_name().unwrap().to_str().unwrap().to_owned()
        })
        .collect();
    let end = whole.len();
    let expected = ["", "-2", "-3"].map(|number| format!("journal.jsonl.torn-{end}{number}"));
    assert_eq!(names, expected);
}
