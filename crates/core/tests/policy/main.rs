//! The policy, held against tables, a corpus of attacks, and chance.

mod corpus;
mod ground;
