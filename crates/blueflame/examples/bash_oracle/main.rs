//! Looks for command lines that the policy allows and that real shells take for
//! something else: `bash_oracle [--minutes N] [--seed FIRST] [--only SEED]`.
//!
//! Everything happens in a directory of its own. No program is found, and what a
//! shell wanted to run is only written down.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is what it finds out")]

mod judge;

use std::time::{Duration, Instant};

use blueflame_testkit::oracle::lines::{self, Chance};
use blueflame_testkit::oracle::shells::{Shell, Stage};
use blueflame_testkit::oracle::{Tally, try_seed};
use clap::Parser;

use judge::RealJudge;

#[derive(Parser)]
struct Arguments {
    /// How long to look.
    #[arg(long, default_value_t = 1)]
    minutes: u64,
    /// The first seed; the others follow.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only this seed, with everything that the shells did; may be repeated.
    #[arg(long)]
    only: Vec<u64>,
}

fn main() {
    let arguments = Arguments::parse();
    let place = tempfile::tempdir().expect("a directory");
    let stage = Stage::in_directory(place.path()).expect("a stage");
    let judge = RealJudge::new(stage.workspace());
    if !arguments.only.is_empty() {
        return look_closely(&arguments.only, &judge, &stage);
    }
    let until = Instant::now() + Duration::from_secs(60 * arguments.minutes);
    let mut tally = Tally::default();
    let (mut told, mut next_word) = (0, Instant::now() + Duration::from_secs(60));
    for seed in arguments.seed.. {
        try_seed(seed, &judge, &stage, &mut tally);
        for unsound in &tally.unsound[told..] {
            println!("{unsound}");
        }
        told = tally.unsound.len();
        if Instant::now() >= next_word {
            eprintln!("seed {seed}: {tally}");
            next_word += Duration::from_secs(60);
        }
        if Instant::now() >= until {
            break;
        }
    }
    println!("{tally}");
    if !tally.unsound.is_empty() {
        std::process::exit(1);
    }
}

fn look_closely(seeds: &[u64], judge: &RealJudge, stage: &Stage) {
    let mut tally = Tally::default();
    for &seed in seeds {
        let line = lines::line(&mut Chance::of(seed));
        println!("{seed}: {line:?}");
        for shell in Shell::ALL {
            println!("  {shell}: {:?}", stage.run(shell, &line));
        }
        try_seed(seed, judge, stage, &mut tally);
    }
    for unsound in &tally.unsound {
        println!("{unsound}");
    }
    println!("{tally}");
}
