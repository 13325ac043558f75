//! The shell around the core, and the `blueflame` program.
//!
//! It reads files, runs processes and talks to people; what to do next is
//! decided in `blueflame-core`.

pub mod agent;
mod amounts;
mod at_once;
pub mod atomic_file;
pub mod attempt;
pub mod books;
pub mod bounded_run;
mod capture;
pub mod checks;
mod child_end;
pub mod cleanup;
pub mod cli;
mod columns;
pub mod commands;
pub mod config_file;
pub mod diagnostics;
pub mod doctor;
mod excerpt;
pub mod exclude;
pub mod executor;
pub mod failure;
pub mod file_system;
pub mod free_memory;
pub mod git;
pub mod ground;
pub mod history;
pub mod hook;
pub mod interrupts;
pub mod journal;
pub mod landing;
pub mod memory;
pub mod narrate;
pub mod people;
pub mod process_tree;
pub mod progress;
pub mod projections;
pub mod prompts;
pub mod prove;
pub mod repo_lock;
pub mod report;
pub mod room;
pub mod sandbox;
pub mod search_path;
pub mod session;
pub mod skills;
mod starter;
pub mod stderr;
pub mod stdout;
pub mod store;
mod survey;
pub mod workspace;
