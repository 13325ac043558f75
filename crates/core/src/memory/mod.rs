//! What one session leaves to the next.
//!
//! Everything here is worked out from journals and costs no token: what is
//! [harvested](harvest::Harvest) from a session, how a [notebook](Notebook) of
//! many sessions is kept and shortened, which notes an agent is
//! given, and what they say about time and money
//! ([`learned`]). Where notes are kept is for the shell to say.

pub mod context;
mod decay;
pub mod harvest;
pub mod learned;
mod note;
mod notebook;
mod pattern;
pub mod wording;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use note::{Figure, Kind, Note, Standing, key};
pub use notebook::{Imported, Notebook};
