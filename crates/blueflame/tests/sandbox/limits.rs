//! How much of the machine there is inside.

use blueflame::sandbox::Limits;

use crate::cage::{Cage, attempts, everything};

fn limited(limits: Limits) -> Cage {
    let mut cage = Cage::new();
    cage.terms.limits = limits;
    cage
}

/// Each is tried with the limit and without.
#[test]
fn every_limit_holds_and_is_what_holds() {
    if attempts().is_none() {
        return;
    }
    let none = Limits::default;
    for (what, limits, command) in [
        ("memory of one", Limits { memory_mb: Some(128), ..none() }, "{POC} membomb 256"),
        ("memory of all", Limits { memory_mb: Some(200), ..none() }, "{POC} memfork 96 4"),
        ("processes", Limits { processes: Some(100), ..none() }, "{POC} forkbomb 400"),
        ("a large file", Limits { file_mb: Some(1), ..none() }, "head -c 2000000 /dev/zero > big"),
        ("a sparse file", Limits { file_mb: Some(1), ..none() }, "truncate -s 1G sparse"),
        ("a file in memory", Limits { file_mb: Some(1), ..none() }, "{POC} memfd 32"),
        ("open files", Limits { open_files: Some(64), ..none() }, "{POC} fds 100"),
        (
            "processor time",
            Limits { cpu_seconds: Some(1), ..none() },
            "for ((i = 0; i < 1500000; i++)); do :; done",
        ),
    ] {
        let confined = limited(limits).run(everything(), command);
        assert!(!confined.worked(), "{what}: {confined:?}");
        let free = limited(none()).run(everything(), command);
        assert!(free.worked(), "without a limit: {what}: {free:?}");
    }
    let limits = Limits { file_mb: Some(1), ..none() };
    let outcome = limited(limits).run(everything(), "{POC} unlimited");
    assert!(!outcome.worked(), "a limit was lifted: {outcome:?}");
}

#[test]
fn why_everything_was_ended_is_said() {
    if attempts().is_none() {
        return;
    }
    let limits = Limits { memory_mb: Some(100), ..Limits::default() };
    let outcome = limited(limits).run(everything(), "{POC} memfork 64 4");
    assert_eq!(outcome.code, None);
    assert!(outcome.stderr.contains("sandbox.max_memory_mb"), "{outcome:?}");
}
