//! Runs a whole session with simulated agents and people, and shows its story.
//!
//! `cargo run --example simulated_session [-- DIR [SEED]]` makes a git
//! repository in DIR (a new temporary directory without one) and leaves the
//! session there, to try `blueflame log` and `blueflame replay` on. Agents,
//! people and costs are simulated; the decisions, the journal and its lock are
//! the real ones.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::eprintln;
use blueflame::cli::Cli;
use blueflame::commands;
use blueflame::file_system::Remote;
use blueflame::git::Git;
use blueflame::journal::{Header, Writer};
use blueflame::repo_lock::{Holder, RepoLock};
use blueflame::store::Store;
use blueflame_testkit::sim;
use clap::Parser as _;

/// A session in which a task fails and is tried again, and everything lands.
const SEED: u64 = 1417;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = match arguments.next() {
        Some(directory) => PathBuf::from(directory),
        None => tempfile::Builder::new().prefix("blueflame-").tempdir()?.keep(),
    };
    let seed = arguments.next().map_or(Ok(SEED), |seed| seed.parse())?;
    make_repository(&directory)?;
    let events = write_session(&directory, seed)?;
    std::env::set_current_dir(&directory)?;
    for command in ["log", "replay"] {
        eprintln!("\n$ blueflame {command}");
        commands::run(Cli::parse_from(["blueflame", command]));
    }
    eprintln!("\nThe {events} events are in the journal of {}.", directory.display());
    Ok(())
}

fn make_repository(directory: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(directory)?;
    if Git::in_dir(directory).top_level().is_ok() {
        return Ok(());
    }
    let mut init = Command::new("git");
    if init.args(["init", "-q", "-b", "main"]).arg(directory).status()?.success() {
        Ok(())
    } else {
        Err("git could not make a repository".into())
    }
}

fn write_session(directory: &Path, seed: u64) -> Result<usize, Box<dyn Error>> {
    let report = sim::run(seed).map_err(|broken| broken.to_string())?;
    let session = report.state.session.clone();
    let writable = Store::find(directory)?.for_writing(Remote::Refuse)?;
    let (first, event) = &report.journal[0];
    let lock = RepoLock::take(&writable, &Holder::this_process(session.clone(), *first))?;
    let place = writable.begin(&session)?;
    let header = Header::new(session);
    let mut writer = Writer::create(&place.journal(), &header, *first, &[event])?;
    for (at, event) in &report.journal[1..] {
        writer.append(&[(*at, event)])?;
    }
    lock.release()?;
    Ok(report.journal.len())
}
