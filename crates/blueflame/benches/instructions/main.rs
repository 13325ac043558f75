//! How many instructions the hot paths take, against the figures that were accepted
//! last. Seconds on a busy machine say little; instructions are the same on a quiet one.
//!
//! ```text
//! cargo bench -p blueflame --bench instructions             # fails if a path takes more
//! cargo bench -p blueflame --bench instructions -- --accept # takes the new figures
//! ```
//!
//! Each path is run by this program in a process of its own under valgrind, which counts
//! what happens between entering and leaving [`measured`]. That a change is seen is
//! shown every time: the first path does a tenth more, and has to be found out.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark shows its figures")]

mod accepted;
mod paths;

use std::hint::black_box;
use std::process::{Command, ExitCode};

use self::accepted::Accepted;
use self::paths::PATHS;

/// How often a path is taken, so that what happens once does not count for much.
const TIMES: u32 = 20;

/// How much more than accepted is a failure, in percent. Hash tables begin with random
/// numbers, so that a figure moves a little by itself.
const TOLERATED: f64 = 3.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--path", name, times] => take(name, times.parse().unwrap()),
        // What `cargo test --benches` asks for is not a measurement.
        ref others if !others.contains(&"--bench") => ExitCode::SUCCESS,
        ref others => check(others.contains(&"--accept")),
    }
}

/// The part that is counted.
#[inline(never)]
fn measured(path: &mut dyn FnMut(), times: u32) {
    for _ in 0..times {
        path();
    }
    // Something to come back to: without it the last call would be a jump.
    black_box(times);
}

fn take(name: &str, times: u32) -> ExitCode {
    let (_, prepare) = PATHS.iter().find(|(known, _)| *known == name).expect("a path");
    let mut path = prepare();
    // What is made at first use is not what is taken again and again.
    path();
    measured(&mut path, times);
    ExitCode::SUCCESS
}

fn check(accept: bool) -> ExitCode {
    let mut accepted = Accepted::read();
    let mut more = Vec::new();
    println!("{:<52} {:>14} {:>14} {:>8}", "instructions each time", "accepted", "now", "change");
    for (name, _) in PATHS {
        let now = count(name, TIMES) / u64::from(TIMES);
        let change = accepted.change(name, now);
        let words = change.map_or_else(|| "new".to_owned(), |percent| format!("{percent:+.1} %"));
        let before = accepted.of(name).map_or_else(|| "-".to_owned(), |it| it.to_string());
        println!("{name:<52} {before:>14} {now:>14} {words:>8}");
        if change.is_none_or(|percent| percent > TOLERATED) {
            more.push(*name);
        }
        if accept {
            accepted.take(name, now);
        }
    }
    if accept {
        accepted.keep_only(&PATHS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        accepted.write();
        println!("accepted");
        return ExitCode::SUCCESS;
    }
    let (first, _) = PATHS[0];
    let slower = count(first, TIMES + TIMES / 10) / u64::from(TIMES);
    if accepted.change(first, slower).is_none_or(|percent| percent <= TOLERATED) {
        eprintln!("error: a tenth more of `{first}` was not seen: {slower} instructions");
        return ExitCode::FAILURE;
    }
    println!("a tenth more of `{first}` was seen");
    if more.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: more than {TOLERATED} % above what was accepted: {}", more.join(", "));
    eprintln!("       make it less, or say in the commit why it is worth it and run");
    eprintln!("       cargo bench -p blueflame --bench instructions -- --accept");
    ExitCode::FAILURE
}

/// What valgrind counts in a process that takes a path so many times.
fn count(name: &str, times: u32) -> u64 {
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*::measured"])
        .arg(format!("--callgrind-out-file={}", scratch.path().join("out").display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--path", name, &times.to_string()])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", scratch.path())
        .output()
        .expect("valgrind is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    let total = said.lines().find_map(|line| line.split_once("Collected :"));
    let total = total.and_then(|(_, figures)| figures.trim().parse().ok());
    match total {
        Some(total) if total > 0 => total,
        _ => panic!("{name}: nothing was counted: {said}"),
    }
}
