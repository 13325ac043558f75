//! The sandbox, tried from inside with real processes.

mod boundaries;
mod cage;
mod corpus;
mod limits;
mod ordinary;
mod probing;
mod weaker;
