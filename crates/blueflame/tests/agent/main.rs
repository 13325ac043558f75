//! The embedded agent as a real process, between a real gateway with a
//! scripted model and a test that plays the attempt process.

#![expect(clippy::unwrap_used, reason = "all of this is test code, also outside of test functions")]

mod bulk;
mod canned;
mod failures;
mod limits;
mod stage;
mod structured;
mod tools;
mod verdicts;
