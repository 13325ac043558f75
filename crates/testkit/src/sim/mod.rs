//! Whole sessions in virtual time: the real core against a simulated world.
//!
//! Agents succeed, fail in every way there is, hang and cost money; people
//! approve, reject, skip, edit, raise and stop; the orchestrator is killed
//! after any event and resumed from its journal. Everything is drawn from one
//! seed, so the same seed gives the same journal, byte for byte.
//!
//! An [`audit::Auditor`] reads along. It knows the rules of a session but not
//! the state that the core keeps, so a mistake in the core cannot hide itself.

pub mod audit;
mod orchestrator;
pub mod people;
mod recovery;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod world;

pub use run::{Broken, Report, run};
