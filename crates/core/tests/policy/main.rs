//! The policy, held against tables, a corpus of attacks, and chance.

mod chance;
mod changes;
mod commands;
mod corpus;
mod ground;
mod ordinary;
mod paths;
mod roles;
