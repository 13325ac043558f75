//! The sandbox, tried from inside with real processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod boundaries;
mod cage;
mod copied;
mod corpus;
mod git_beneath;
mod harvested;
mod layered;
mod layers;
mod lending;
mod limits;
mod ordinary;
mod probing;
mod weaker;
