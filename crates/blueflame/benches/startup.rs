//! How long each command takes that people wait for: the whole process, in a
//! repository with a finished session, beside git and an empty program.
//!
//! ```text
//! cargo bench -p blueflame --bench startup
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

#[path = "parts/mod.rs"]
mod parts;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parts::figures::{Figures, goal, load};
use parts::{programs, project, session};

const ROUNDS: usize = 60;

/// Below this is a single digit.
const SINGLE_DIGIT_MS: f64 = 10.0;

const COMMANDS: &[&[&str]] = &[
    &["--version"],
    &["--help"],
    &["status"],
    &["cost"],
    &["log"],
    &["replay"],
    &["memory", "list"],
    &["config", "check"],
    &["policy", "check"],
    &["cleanup", "--dry-run"],
    &["doctor"],
];

fn main() {
    // What `cargo test --benches` asks for is not a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let session = session::run(directory.path(), 8);
    assert!(!session.took.is_zero() && !session.cost.own.is_zero(), "it did something");
    let blueflame = programs::installed(env!("CARGO_BIN_EXE_blueflame").as_ref(), directory.path());
    let empty = programs::installed(&programs::empty(directory.path()), directory.path());
    let mut contenders: Vec<(PathBuf, &[&str])> =
        vec![(empty, &[]), ("git".into(), &["--version"]), ("git".into(), &["status"])];
    contenders.extend(COMMANDS.iter().map(|words| (blueflame.clone(), *words)));
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); contenders.len()];
    for round in 0..=ROUNDS {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let time = once(contender, directory.path(), &session.project);
            // The first one reads the program from the disk.
            if round > 0 {
                times.push(time);
            }
        }
    }
    println!("{ROUNDS} times each, in turns; load {}", load());
    println!("| command | median | 10 % | 90 % | against an empty program |");
    println!("|---|---|---|---|---|");
    let least = Figures::of(&times[0]).median();
    let mut slow = Vec::new();
    for ((program, words), times) in contenders.iter().zip(&times) {
        let figures = Figures::of(times);
        let name = format!("{} {}", program.file_name().unwrap().display(), words.join(" "));
        println!(
            "| `{}` | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} |",
            name.trim(),
            figures.median(),
            figures.percent(10),
            figures.percent(90),
            figures.median() / least
        );
        if *program == blueflame && figures.median() >= SINGLE_DIGIT_MS {
            slow.push(words.join(" "));
        }
    }
    println!("{}", goal("every command in less than 10 ms", slow.is_empty()));
    if !slow.is_empty() {
        println!("not: {}", slow.join(", "));
    }
}

fn once((program, words): &(PathBuf, &[&str]), home: &Path, project: &Path) -> Duration {
    let mut command = project::environment(Command::new(program), home);
    command.args(*words).current_dir(project);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().unwrap();
    let time = begun.elapsed();
    // The doctor says by its code that something is missing.
    assert!(status.success() || words == &["doctor"], "{words:?}: {status}");
    time
}
