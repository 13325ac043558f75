//! The commands, one file each. This one hands over to them.

mod agent;
mod asking;
mod cleanup;
mod config;
mod cost;
mod demo;
mod doctor;
mod dry_run;
mod init;
mod left;
mod log;
mod memory;
mod policy;
mod publish;
mod replay;
mod resume;
mod revert;
pub(crate) mod run;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::attempt;
use crate::checks;
use crate::cli::{Cli, Command, Common};
use crate::config_file::{self, Loaded};
use crate::failure::{Failure, Kind};
use crate::prove;
use crate::sandbox;
use crate::workspace::enter;

/// Runs one command and gives the exit code of the program.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Config { command } => config::run(&command, &cli.common).map(succeeded),
        Command::Doctor(arguments) => doctor::run(&arguments, &cli.common).map(succeeded),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Run(arguments) => run::run(&arguments, &cli.common),
        Command::Resume(arguments) => resume::run(&arguments, &cli.common),
        Command::Publish(arguments) => publish::run(&arguments, &cli.common).map(succeeded),
        Command::Revert(arguments) => revert::run(&arguments, &cli.common).map(succeeded),
        Command::Cleanup(arguments) => cleanup::run(&arguments, &cli.common).map(succeeded),
        Command::Init(arguments) => init::run(&arguments, &cli.common).map(succeeded),
        Command::Status(arguments) => status::run(&arguments, &cli.common).map(succeeded),
        Command::Cost(arguments) => cost::run(&arguments, &cli.common).map(succeeded),
        Command::Log(arguments) => log::run(&arguments, &cli.common).map(succeeded),
        Command::Memory(arguments) => memory::run(&arguments, &cli.common).map(succeeded),
        Command::Policy { command } => policy::run(&command, &cli.common).map(succeeded),
        Command::Replay(arguments) => replay::run(&arguments, &cli.common).map(succeeded),
        Command::Agent(arguments) => agent::run(arguments),
        Command::Attempt { directory } => attempt::run::run(&directory)
            .map(succeeded)
            .map_err(|error| Failure::new(Kind::Internal, error)),
        Command::Snapshot { directory } => attempt::last_snapshot::run(&directory)
            .map(succeeded)
            .map_err(|error| Failure::new(Kind::Internal, error)),
        Command::Launch { parent, program } => match sandbox::become_program(parent, &program) {
            Ok(never) => match never {},
            Err(error) => Err(Failure::new(
                Kind::Missing,
                format!("`{}` cannot be run: {error}", program[0].display()),
            )),
        },
        Command::Within { workspace, program } => {
            match enter::become_within(&workspace, &program) {
                Ok(never) => match never {},
                Err(error) => Err(Failure::new(
                    Kind::Missing,
                    format!("`{}` cannot be run: {error}", program[0].display()),
                )),
            }
        }
        Command::Probe { orders } => sandbox::try_everything(&orders)
            .map_err(|error| Failure::new(Kind::Internal, error))
            .and_then(|done| crate::stdout::write(&done))
            .map(succeeded),
        Command::Escape { step, file } => prove::escape::run(step, &file)
            .map(succeeded)
            .map_err(|error| Failure::new(Kind::Internal, error)),
        Command::Runner { deadline, command } => {
            checks::runner::run(Duration::from_millis(deadline), &command)
                .map(succeeded)
                .map_err(|error| Failure::new(Kind::Internal, error))
        }
    };
    match done {
        Ok(code) => code,
        Err(failure) => Failure::report(&failure),
    }
}

fn succeeded((): ()) -> ExitCode {
    ExitCode::SUCCESS
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
