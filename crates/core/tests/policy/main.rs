//! The policy, held against tables, a corpus of attacks, and chance.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod chance;
mod changes;
mod commands;
mod corpus;
mod ground;
mod paths;
mod roles;
