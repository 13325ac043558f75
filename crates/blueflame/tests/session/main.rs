//! Whole sessions: the real program, real git and real processes, the embedded
//! agent, and a scripted model at the other end. One story for each test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod gates;
mod money;
mod outcomes;
mod person;
mod sandbox;
mod script;
mod stage;
mod stopping;
mod thirty;
mod validation;
mod whole;
