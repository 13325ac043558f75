//! Whole agent runs: the real attempt process, the real agent programs, and a
//! scripted model at the other end.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod contract;
mod conversations;
mod custom;
mod ends;
mod figures;
mod hooks;
mod install;
mod lifecycle;
mod needed;
mod planner;
mod plugin;
mod proving;
mod secrets;
mod skills;
mod snapshots;
mod stage;
mod unjudged;
