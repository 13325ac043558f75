//! The `blueflame` program: parse the arguments, run the command, report.

use std::process::ExitCode;

use blueflame::{cli, commands, hook};
use clap::Parser;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // It is run for every tool call, and made to start fast.
    if arguments.next().is_some_and(|first| first == hook::COMMAND) {
        hook::run(arguments);
    }
    commands::run(cli::Cli::parse())
}
