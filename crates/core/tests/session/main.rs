//! What a session does, told row by row.
//!
//! Names that begin with `row_NN` are the rows of the seed's verification
//! plan (section 17); the others are rules that the rows leave open.

mod checks;
mod dependencies;
mod errands;
mod failures;
mod forecast;
mod hooks;
mod limits;
mod memory_and_limits;
mod merging;
mod money;
mod phases;
mod plans;
mod proof;
mod remembered;
mod scheduling;
mod stopping;
mod story;
mod transitions;
mod views;
mod words;
