//! The commands, one file each. This one hands over to them.

mod config;
mod log;
mod policy;
mod replay;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::{Cli, Command, Common};
use crate::config_file::{self, Loaded};
use crate::failure::{Failure, Kind};

/// Runs one command and gives the exit code of the program.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Config { command } => config::run(&command, &cli.common),
        Command::Log(arguments) => log::run(&arguments, &cli.common),
        Command::Policy { command } => policy::run(&command, &cli.common),
        Command::Replay(arguments) => replay::run(&arguments, &cli.common),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Failure::report(&failure),
    }
}

/// The configuration, if the person named one. Reading history needs none, so a
/// broken default file is in nobody's way.
fn named_config(common: &Common) -> Result<Option<Loaded>, Failure> {
    common.config.as_deref().map(|path| config_file::load(Some(path))).transpose()
}

/// Where to look for the repository: as the configuration says, or here.
fn place(named: Option<&Loaded>) -> Result<PathBuf, Failure> {
    named.map_or_else(here, |loaded| Ok(loaded.repository.clone()))
}

/// The directory the program was called in.
fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(Kind::Missing, format!("the current directory cannot be found: {error}"))
    })
}
