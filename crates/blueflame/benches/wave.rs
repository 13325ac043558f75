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

#[path = "parts/figures.rs"]
#[expect(dead_code, reason = "there are too few of these for percentiles")]
mod figures;
#[path = "parts/processor.rs"]
mod processor;
#[path = "parts/project.rs"]
mod project;
#[path = "parts/tasks.rs"]
mod tasks;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use figures::{Figures, goal, load};
use processor::Cost;

const WORKERS: u32 = 8;
const ROUNDS: usize = 5;

fn main() {
    // What `cargo test --benches` asks for is not a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{WORKERS} workers and {WORKERS} validators, {ROUNDS} times; load {}", load());
    let (took, costs): (Vec<Duration>, Vec<Cost>) = (0..ROUNDS).map(|_| session()).unzip();
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

fn session() -> (Duration, Cost) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("script.yaml"), tasks::script(WORKERS)).unwrap();
    fs::write(directory.path().join("plan.yaml"), tasks::plan(WORKERS)).unwrap();
    let config = format!(
        "schema_version: 2\n\
         project: {{name: bench, base_branch: main}}\n\
         executors: {{default: embedded}}\n\
         gateway: {{upstream: 'script:../script.yaml'}}\n\
         concurrency: {{development: {WORKERS}, validation: {WORKERS}, adaptive: false}}\n\
         limits: {{max_session_cost_usd: 0}}\n\
         permissions:\n  allowed_paths: ['src/**']\n  bash_rules:\n    \
         allowed_commands: ['git add', 'git commit']\n\
         merge: {{verify: ['test -e src/{WORKERS}.txt']}}\n"
    );
    let project = project::begin(directory.path(), &config);
    let program = Command::new(env!("CARGO_BIN_EXE_blueflame"));
    let mut command = project::environment(program, directory.path());
    command.args(["run", "--task", "bench", "--plan", "../plan.yaml", "--yes"]);
    command.current_dir(&project).stdin(Stdio::null());
    command.stderr(fs::File::create(directory.path().join("log")).unwrap());
    let begun = Instant::now();
    let (status, cost) = processor::until_it_ends(&mut command.spawn().unwrap(), |_| {});
    let took = begun.elapsed();
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(status.success(), "{log}");
    for number in 1..=WORKERS {
        assert!(project.join(format!("src/{number}.txt")).exists(), "it landed: {log}");
    }
    (took, cost)
}
