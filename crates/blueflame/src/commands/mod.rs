//! The commands, one file each. This one hands over to them.

mod config;
mod log;
mod replay;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Kind};

/// Runs one command and gives the exit code of the program.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Config { command } => config::run(&command, &cli.common),
        Command::Log(arguments) => log::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments, &cli.common),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Failure::report(&failure),
    }
}

/// The directory the program was called in.
fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(Kind::Missing, format!("the current directory cannot be found: {error}"))
    })
}
