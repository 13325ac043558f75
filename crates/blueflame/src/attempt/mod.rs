//! One agent run, in a process of its own.
//!
//! The orchestrator writes a [`spec`] into a [`directory`] and starts
//! `blueflame __attempt` there ([`link`]). That process [`run`]s the agent: it
//! holds the gateway, judges every tool call, keeps the output, holds the agent
//! to its limits, saves unfinished work, and ends with a [`sealed`] result. If
//! the orchestrator dies, the attempt goes on, and the next orchestrator finds
//! it by its directory.

mod clock;
pub mod conclude;
mod control;
pub mod directory;
pub mod endpoint;
mod finish;
mod frames;
mod judge;
pub mod last_snapshot;
mod left_out;
pub mod link;
pub mod messages;
mod pipes;
mod prepare;
pub mod run;
pub mod sealed;
pub(crate) mod snapshot;
pub mod spec;
