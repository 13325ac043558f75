//! `blueflame config`: check, show, schema.

use crate::stderr::eprintln;
use blueflame_core::config::{self, NEWEST_SCHEMA};
use blueflame_core::yaml;

use crate::cli::{Common, Config};
use crate::config_file;
use crate::failure::{Failure, Kind};
use crate::stdout;

pub fn run(command: &Config, common: &Common) -> Result<(), Failure> {
    match command {
        Config::Check => check(common),
        Config::Show => show(common),
        Config::Schema => schema(),
    }
}

fn check(common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    if !loaded.notes.is_empty() {
        eprintln!("note: a file of schema version 1 is understood as version {NEWEST_SCHEMA}:");
        for note in &loaded.notes {
            eprintln!("  - {note}");
        }
    }
    eprintln!(
        "{} is good: all keys and values, the repository `{}` and its branch `{}`",
        loaded.name,
        loaded.repository.display(),
        loaded.config.project.base_branch,
    );
    Ok(())
}

fn show(common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let shown =
        yaml::to_string(&loaded.file).map_err(|error| Failure::new(Kind::Internal, error))?;
    stdout::write(&shown)
}

fn schema() -> Result<(), Failure> {
    let schema = serde_json::to_string_pretty(&config::schema())
        .map_err(|error| Failure::new(Kind::Internal, error))?;
    stdout::write(&format!("{schema}\n"))
}
