//! The commands, one file each. This one hands over to them.

mod config;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

/// Runs one command and gives the exit code of the program.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Config { command } => config::run(&command, &cli.common),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Failure::report(&failure),
    }
}
