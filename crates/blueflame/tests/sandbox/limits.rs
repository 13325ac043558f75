//! How much of the machine there is inside.

use blueflame::sandbox::{Limits, Tier};

use crate::cage::{Cage, attempts, everything};

/// Each is tried with the limit and without, in both tiers, by root and by an
/// ordinary user.
#[test]
fn every_limit_holds_and_is_what_holds() {
    if attempts().is_none() {
        return;
    }
    let none = Limits::default;
    let fill = "for i in $(seq 40); do head -c 4000000 /dev/zero > f$i; sleep 0.05; done";
    let mut wrong = Vec::new();
    for (what, limits, command) in [
        ("memory of one", Limits { memory_mb: Some(128), ..none() }, "{POC} membomb 256"),
        ("memory of all", Limits { memory_mb: Some(200), ..none() }, "{POC} memfork 96 4"),
        ("processes", Limits { processes: Some(100), ..none() }, "{POC} forkbomb 400"),
        ("a large file", Limits { file_mb: Some(1), ..none() }, "head -c 2000000 /dev/zero > big"),
        ("a sparse file", Limits { file_mb: Some(1), ..none() }, "truncate -s 1G sparse"),
        ("a file in memory", Limits { file_mb: Some(1), ..none() }, "{POC} memfd 32"),
        ("files in memory", Limits { memory_mb: Some(128), ..none() }, "{POC} memfds 320"),
        ("open files", Limits { open_files: Some(64), ..none() }, "{POC} fds 100"),
        ("the disk", Limits { disk_mb: Some(32), ..none() }, fill),
        ("files without a name", Limits { disk_mb: Some(32), ..none() }, "{POC} nameless 320"),
        (
            "processor time",
            Limits { cpu_seconds: Some(1), ..none() },
            "for ((i = 0; i < 1500000; i++)); do :; done",
        ),
    ] {
        for (who, mut cage) in Cage::all_kinds() {
            cage.terms.limits = limits.clone();
            let confined = cage.run(everything(), command);
            if confined.worked() {
                wrong.push(format!("{what} ({who}): {confined:?}"));
            }
        }
        let mut cage = Cage::new();
        cage.terms.limits = none();
        let free = cage.run(everything(), command);
        if !free.worked() {
            wrong.push(format!("without a limit: {what}: {free:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut cage = Cage::new();
    cage.terms.limits = Limits { file_mb: Some(1), ..none() };
    let outcome = cage.run(everything(), "{POC} unlimited");
    assert!(!outcome.worked(), "a limit was lifted: {outcome:?}");
}

/// The kernel itself refuses, and not only the next look.
#[test]
fn the_kernel_counts_processes() {
    if attempts().is_none() {
        return;
    }
    for (who, mut cage) in Cage::all_kinds() {
        cage.terms.limits = Limits { processes: Some(100), ..Limits::default() };
        let outcome = cage.run(everything(), "{POC} forkbomb 400");
        let refused = outcome.stdout.contains("forkbomb: Resource temporarily unavailable");
        assert!(refused, "{who}: {outcome:?}");
    }
}

/// One that has ended and that nobody has taken leave of counts as well.
#[test]
fn whoever_ended_alone_makes_room_for_others_at_once() {
    for (who, mut cage) in Cage::all_kinds().into_iter().filter(|it| it.0.starts_with("names")) {
        cage.terms.limits = Limits { processes: Some(100), ..Limits::default() };
        let outcome = cage.run(everything(), "for i in $(seq 400); do (true &) || exit; done");
        assert!(outcome.worked() && outcome.stderr.is_empty(), "{who}: {outcome:?}");
    }
}

/// Each makes a control group, where it is root, and tidies up what others left: not
/// what somebody is about to enter.
#[test]
fn many_are_put_up_at_once() {
    let cage = Cage::new();
    std::thread::scope(|scope| {
        let start = || scope.spawn(|| (0..6).map(|_| cage.run(everything(), "true")).collect());
        let started: Vec<_> = (0..8).map(|_| start()).collect();
        for outcomes in started {
            let outcomes: Vec<crate::cage::Outcome> = outcomes.join().unwrap();
            assert!(outcomes.iter().all(crate::cage::Outcome::worked), "{outcomes:?}");
        }
    });
}

/// Shared memory that nobody has in use: in a namespace of its own it counts, and
/// where there is none it is not to be had.
#[test]
fn shared_memory_counts_or_is_refused() {
    if attempts().is_none() {
        return;
    }
    for (who, mut cage) in Cage::all_kinds() {
        cage.terms.limits = Limits { memory_mb: Some(128), ..Limits::default() };
        let outcome = cage.run(everything(), "{POC} segments 320");
        assert!(!outcome.worked(), "{who}: {outcome:?}");
        let said = if who.starts_with("namespaces") { &outcome.stderr } else { &outcome.stdout };
        let expected =
            if who.starts_with("namespaces") { "max_memory_mb" } else { "not permitted" };
        assert!(said.contains(expected), "{who}: {outcome:?}");
        let outcome = cage.run(everything(), "{POC} memfds 64");
        assert!(outcome.worked(), "{who}: {outcome:?}");
    }
}

#[test]
fn why_everything_was_ended_is_said() {
    if attempts().is_none() {
        return;
    }
    let none = Limits::default;
    for tier in [Tier::Namespaces, Tier::Landlock] {
        for (key, limits, command) in [
            (
                "sandbox.max_memory_mb",
                Limits { memory_mb: Some(100), ..none() },
                "{POC} memfork 64 4",
            ),
            (
                "sandbox.max_disk_mb",
                Limits { disk_mb: Some(16), ..none() },
                "while :; do head -c 4000000 /dev/zero >> f; done",
            ),
        ] {
            let mut cage = Cage::new().in_tier(tier);
            cage.terms.limits = limits;
            let outcome = cage.run(everything(), command);
            assert_eq!(outcome.code, None);
            assert!(outcome.stderr.contains(key), "{tier:?}: {outcome:?}");
        }
    }
}

/// What was there before does not count, and neither does what is removed again.
#[test]
fn only_what_is_filled_from_inside_counts() {
    let mut cage = Cage::new();
    std::fs::write(cage.workspace.join("old"), vec![1; 40 << 20]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    cage.terms.limits = Limits { disk_mb: Some(32), ..Limits::default() };
    let work = "for i in $(seq 12); do head -c 8000000 /dev/zero > f; rm f; sleep 0.05; done";
    let outcome = cage.run(everything(), work);
    assert!(outcome.worked(), "{outcome:?}");
}
