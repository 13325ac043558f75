//! Runs simulated sessions: many for their findings, or one to look at.
//!
//! `simulate --sessions 100000` runs seeds 0 to 99,999 on all cores;
//! `simulate --seed 17` prints the whole journal of one session.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use blueflame_testkit::sim::{Broken, Report, run};
use clap::Parser;

/// Run whole sessions of the real core against a simulated world.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run this one seed and print its journal
    #[arg(long, conflicts_with_all = ["sessions", "from"])]
    seed: Option<u64>,
    /// How many sessions to run
    #[arg(long, default_value_t = 2_000)]
    sessions: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
}

fn main() -> io::Result<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => show(seed),
        None => run_many(arguments.from, arguments.sessions),
    }
}

fn show(seed: u64) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    match run(seed) {
        Ok(report) => {
            for line in report.lines() {
                writeln!(out, "{line}")?;
            }
            writeln!(
                io::stderr(),
                "seed {seed}: {:?}, {} events, {} crashes",
                report.end,
                report.journal.len(),
                report.crashes
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(broken) => {
            for line in &broken.journal {
                writeln!(out, "{line}")?;
            }
            writeln!(io::stderr(), "{broken}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

#[derive(Default)]
struct Totals {
    sessions: u64,
    events: u64,
    crashes: u64,
    ends: BTreeMap<String, u64>,
}

impl Totals {
    fn add(&mut self, report: &Report) {
        self.sessions += 1;
        self.events += report.journal.len() as u64;
        self.crashes += report.crashes;
        *self.ends.entry(format!("{:?}", report.end)).or_default() += 1;
    }

    fn merge(mut self, other: Totals) -> Totals {
        self.sessions += other.sessions;
        self.events += other.events;
        self.crashes += other.crashes;
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
        self
    }
}

fn run_many(from: u64, sessions: u64) -> io::Result<ExitCode> {
    let started = Instant::now();
    let next = AtomicU64::new(from);
    let last = from.saturating_add(sessions);
    let work = || -> Result<Totals, Box<Broken>> {
        let mut totals = Totals::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return Ok(totals);
            }
            if seed > from && (seed - from).is_multiple_of(10_000) {
                // Progress is worth nothing if it cannot be written.
                let _ = writeln!(io::stderr(), "{} sessions", seed - from);
            }
            totals.add(&run(seed)?);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let results: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut totals = Totals::default();
    for result in results {
        match result {
            Ok(Ok(part)) => totals = totals.merge(part),
            Ok(Err(broken)) => {
                writeln!(io::stderr(), "{broken}")?;
                return Ok(ExitCode::FAILURE);
            }
            Err(_) => {
                writeln!(io::stderr(), "a session panicked; the seed is in the message above")?;
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    writeln!(
        io::stdout(),
        "{} sessions, {} events, {} crashes, no findings, {:.1} s",
        totals.sessions,
        totals.events,
        totals.crashes,
        started.elapsed().as_secs_f64()
    )?;
    for (end, count) in totals.ends {
        writeln!(io::stdout(), "  {count:>7} {end}")?;
    }
    Ok(ExitCode::SUCCESS)
}
