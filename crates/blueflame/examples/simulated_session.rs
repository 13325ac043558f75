//! Writes a simulated session into a repository's journal, to try `log` and
//! `replay` on.
//!
//! `cargo run --example simulated_session -- DIR [SEED]` makes a git repository
//! in DIR if there is none, and leaves the session there. Agents, people and
//! costs are simulated; the journal, the lock and the decisions are real.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use anstream::eprintln;
use blueflame::file_system::Remote;
use blueflame::git::Git;
use blueflame::journal::{Header, Writer};
use blueflame::repo_lock::{Holder, RepoLock};
use blueflame::store::Store;
use blueflame_testkit::sim;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name a directory")?);
    let seed: u64 = arguments.next().unwrap_or_else(|| "12".to_owned()).parse()?;
    std::fs::create_dir_all(&directory)?;
    if Git::in_dir(&directory).top_level().is_err() {
        let mut init = Command::new("git");
        if !init.args(["init", "-q", "-b", "main"]).arg(&directory).status()?.success() {
            return Err("git init failed".into());
        }
    }
    let report = sim::run(seed).map_err(|broken| broken.to_string())?;
    let session = report.state.session.clone();
    let writable = Store::find(&directory)?.for_writing(Remote::Refuse)?;
    let (first, _) = report.journal[0];
    let lock = RepoLock::take(&writable, &Holder::this_process(session.clone(), first))?;
    let place = writable.begin(&session)?;
    let mut writer = Writer::create(&place.journal(), &Header::new(session), first)?;
    for (at, event) in &report.journal {
        writer.append(&[(*at, event)])?;
    }
    lock.release()?;
    eprintln!(
        "{} events of seed {seed} are in {}",
        report.journal.len(),
        place.journal().display()
    );
    eprintln!("now try, in {}: blueflame log, blueflame replay", directory.display());
    Ok(())
}
