//! A writer that is killed again and again loses nothing it said was written,
//! and whoever reads meanwhile sees whole records only.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blueflame::journal::{Reader, Step, Writer};

use crate::child::{Role, say};
use crate::sample::{Sample, at, create, journal, quick_dir};

const JOURNALS: u64 = 10;
const KILLS_EACH: u64 = 10;
/// So much more in the file, and a large record is being written.
const LARGE_BEGUN: u64 = 50_000;
const TAKEN_BACK: usize = 50_000;

/// The role: opens the journal and appends until somebody ends it, saying the
/// last number after each append that returned.
pub fn write_until_killed(path: &Path) {
    let mut writer = Writer::open(path, |_| Ok(())).unwrap().writer;
    loop {
        let next = writer.head().seq + 1;
        let events: Vec<Sample> = (next..next + 1 + next % 5).map(Sample::large).collect();
        let batch: Vec<_> = events.iter().map(|event| (at(next), event)).collect();
        let written = writer.append(&batch).unwrap();
        say(&(written.end - 1).to_string());
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let (mut acknowledged_in_all, mut torn) = (0, 0);
    for round in 0..JOURNALS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        drop(create(&path));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| read_along(&path, &done));
            let mut acknowledged = 0;
            for kill in 0..KILLS_EACH {
                acknowledged = write_and_kill(&path, round * 7 + kill * 3);
                let mut last = 1;
                let opened = Writer::open(&path, |record| {
                    last += 1;
                    assert_eq!(record.seq, last);
                    assert_eq!(record.event::<Sample>()?, Sample::large(record.seq));
                    Ok(())
                })
                .unwrap();
                assert!(last >= acknowledged, "{acknowledged} was acknowledged, {last} is there");
                torn += u32::from(opened.repair.is_some());
            }
            acknowledged_in_all += acknowledged;
            done.store(true, Ordering::Release);
            let last = Reader::open(&path).and_then(|mut reader| count(&mut reader)).unwrap();
            assert_eq!(reading.join().unwrap(), last);
        });
    }
    let kills = JOURNALS * KILLS_EACH;
    println!("{kills} kills, {acknowledged_in_all} acknowledged, {torn} torn tails, none lost");
}

/// Lets a writer work for a while, kills it, and gives the last number it said.
fn write_and_kill(path: &Path, seed: u64) -> u64 {
    let mut writer = Role::start("write", path);
    let mut acknowledged = 0;
    for _ in 0..=seed % 8 {
        acknowledged = writer.hear().expect("it writes until it is killed").parse().unwrap();
    }
    if seed.is_multiple_of(2) {
        // Anywhere in the next append, or in what comes around it.
        std::thread::sleep(Duration::from_micros(seed * 37 % 900));
    } else {
        // In the middle of a large write, which is what tears a record.
        let len = || fs::metadata(path).unwrap().len();
        let start = len();
        while len() < start + LARGE_BEGUN {
            assert!(writer.is_running(), "it writes until it is killed");
        }
    }
    writer.kill();
    while let Some(said) = writer.hear() {
        acknowledged = said.parse().unwrap();
    }
    acknowledged
}

/// Follows the journal until there is nothing more, and gives the last number.
fn read_along(path: &Path, done: &AtomicBool) -> u64 {
    let mut reader = Reader::open(path).unwrap();
    let mut last = 1;
    let end = reader.follow(Duration::from_millis(1), |step| {
        // Looked at first: what came before `done` is read before we stop.
        let over = done.load(Ordering::Acquire);
        match step {
            Step::Record(record) => {
                assert_eq!(record.seq, last + 1);
                assert_eq!(record.event::<Sample>().unwrap(), Sample::large(record.seq));
                last = record.seq;
                ControlFlow::Continue(())
            }
            Step::NotYet if over => ControlFlow::Break(()),
            Step::NotYet => ControlFlow::Continue(()),
            Step::StartedOver => panic!("a kill takes no whole record back"),
        }
    });
    end.unwrap();
    last
}

fn count(reader: &mut Reader) -> Result<u64, blueflame::journal::ReadError> {
    while let Step::Record(_) = reader.step()? {}
    Ok(reader.head().seq)
}

/// Records that were never acknowledged come and go under the eyes of a reader,
/// at any moment of its reading. It may start over; it never finds damage.
#[test]
fn a_writer_that_takes_back_is_not_taken_for_damage() {
    let dir = quick_dir();
    let path = dir.path().join("journal.jsonl");
    let kept = journal(&path, 5);
    let [one, other] = [30, 41].map(|last| {
        let path = dir.path().join(format!("to {last}"));
        let mut writer = create(&path);
        let events: Vec<Sample> = (2..=last).map(Sample::small).collect();
        // Another time from record 6 on, so that the chains part there.
        let time = |seq| if seq <= 5 { at(seq) } else { at(seq + last) };
        let batch: Vec<_> = (2..).zip(&events).map(|(seq, event)| (time(seq), event)).collect();
        writer.append(&batch).unwrap();
        fs::read(&path).unwrap().split_off(kept.len())
    });
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut reader = Reader::open(&path).unwrap();
            let (mut last, mut over) = (1, 0);
            while !done.load(Ordering::Acquire) {
                match reader.step().expect("a sound journal") {
                    Step::Record(record) => {
                        assert_eq!(record.seq, last + 1);
                        assert_eq!(record.event::<Sample>().unwrap(), Sample::small(record.seq));
                        last = record.seq;
                    }
                    Step::NotYet => {}
                    Step::StartedOver => (last, over) = (1, over + 1),
                }
            }
            over
        });
        for round in 0..TAKEN_BACK {
            let tail = if round % 2 == 0 { &one } else { &other };
            let (start, rest) = tail.split_at(round * 31 % tail.len());
            file.write_all(start).unwrap();
            file.write_all(rest).unwrap();
            file.set_len(kept.len() as u64).unwrap();
        }
        done.store(true, Ordering::Release);
        println!("{TAKEN_BACK} times taken back, {} times started over", reading.join().unwrap());
    });
}
