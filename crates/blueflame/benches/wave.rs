//! A wave of workers that have nothing to think about: what a session costs besides
//! its agents.
//!
//! Eight tasks, each a file that is written and committed at once, are validated,
//! checked and merged; the agents are scripted. What counts is the time of the
//! orchestrator on a processor, and its memory; the rest is shown beside it.
//!
//! ```text
//! cargo bench -p blueflame --bench wave
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

#[path = "parts/mod.rs"]
mod parts;

use std::time::Duration;

use parts::figures::{Figures, goal, load};
use parts::processor::Cost;
use parts::session;

const WORKERS: u32 = 8;
const ROUNDS: usize = 5;

fn main() {
    // What `cargo test --benches` asks for is not a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{WORKERS} workers and {WORKERS} validators, {ROUNDS} times; load {}", load());
    let (took, costs): (Vec<Duration>, Vec<Cost>) = (0..ROUNDS).map(|_| round()).unzip();
    let own = show("orchestrator, processor", &costs.iter().map(|it| it.own).collect::<Vec<_>>());
    show("everything below it, processor", &costs.iter().map(|it| it.children).collect::<Vec<_>>());
    show("from the command to its end", &took);
    let peak = costs.iter().map(|it| it.peak_kib).max().unwrap();
    println!(
        "orchestrator, most memory          {:>8.1} MiB",
        f64::from(u32::try_from(peak).unwrap()) / 1024.0
    );
    println!("load {}", load());
    println!("{}", goal("at most 0.5 s of the orchestrator", own <= 500.0));
    println!("{}", goal("at most 30 MB of memory", peak * 1024 <= 30_000_000));
}

fn show(name: &str, times: &[Duration]) -> f64 {
    let times = Figures::of(times);
    println!(
        "{name:<34} {:>8.2} s ({:.2} to {:.2})",
        times.median() / 1e3,
        times.percent(0) / 1e3,
        times.most() / 1e3
    );
    times.median()
}

fn round() -> (Duration, Cost) {
    let directory = tempfile::tempdir().unwrap();
    let session = session::run(directory.path(), WORKERS);
    for number in 1..=WORKERS {
        assert!(session.project.join(format!("src/{number}.txt")).exists(), "it landed");
    }
    (session.took, session.cost)
}
