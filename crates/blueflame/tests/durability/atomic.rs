//! Whoever reads a file that is being replaced sees one version of it, whole.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use blueflame::atomic_file::{Durability, replace};

const ROUNDS: usize = 300;

/// A text that shows which one it is, and whether all of it is there.
fn version(round: usize) -> String {
    format!("{round}:{}", "x".repeat(round * 199 % 60_000))
}

#[test]
fn readers_never_see_a_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("status.json");
    replace(&path, version(0).as_bytes(), Durability::Process).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut newest = 0;
                while !done.load(Ordering::Relaxed) {
                    let text = fs::read_to_string(&path).expect("there is always a file");
                    let (round, _) = text.split_once(':').expect("there is always a text");
                    let round = round.parse().unwrap();
                    assert_eq!(text, version(round));
                    assert!(round >= newest, "an older version came back");
                    newest = round;
                }
            });
        }
        for round in 1..=ROUNDS {
            let durability = if round % 50 == 0 { Durability::Power } else { Durability::Process };
            replace(&path, version(round).as_bytes(), durability).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), version(ROUNDS));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
