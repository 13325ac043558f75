//! The `blueflame` program: parse the arguments, run the command, report.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    blueflame::commands::run(blueflame::cli::Cli::parse())
}
