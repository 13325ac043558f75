//! Whole sessions: the real program, real git and real processes, the embedded
//! agent, and a scripted model at the other end. One story for each test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod checking;
mod cleaning;
mod conflicts;
mod crash;
mod evidence;
mod executors;
mod gates;
mod hooks;
mod idle;
#[path = "../agents/install.rs"]
mod install;
mod memory;
mod money;
#[path = "../agents/needed.rs"]
mod needed;
mod obstacles;
mod outcomes;
mod paper;
mod person;
mod publishing;
mod real_programs;
mod reverting;
mod sandbox;
mod script;
mod skills;
mod soak;
mod stage;
mod stopping;
mod strays;
mod summary;
mod surroundings;
#[path = "../it/terminal.rs"]
mod terminal;
mod thirty;
mod validation;
mod whole;
mod zoo;
