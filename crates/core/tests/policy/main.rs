//! The policy, held against tables, a corpus of attacks, and chance.

mod chance;
mod changes;
mod commands;
mod corpus;
mod corpus_rules;
mod ground;
mod listed;
mod ordinary;
mod paths;
mod roles;
mod skills;
mod tables;
