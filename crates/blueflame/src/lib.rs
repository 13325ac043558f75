//! The shell around the core, and the `blueflame` program.
//!
//! It reads files, runs processes and talks to people; what to do next is
//! decided in `blueflame-core`.

pub mod cli;
pub mod commands;
pub mod config_file;
pub mod diagnostics;
pub mod failure;
pub mod git;
