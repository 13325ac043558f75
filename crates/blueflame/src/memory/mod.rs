//! What is remembered from one session to the next, on the disk.
//!
//! The notes are in `<git common dir>/blueflame/memory/issues.jsonl`, one bead a
//! line. They follow from the journals: whatever is missing is worked out again
//! by the next command that needs it, so an orchestrator that dies before it
//! saved anything has lost nothing. What the person wanted forgotten is listed
//! beside them, and stays forgotten. `bd` may have a copy ([`mirror`]).

mod bead;
mod forgotten;
mod keeper;
pub mod mirror;
mod recall;
mod remembering;
mod warned;

pub use bead::{Bead, Skipped, id as bead_id, read_lines, write_lines};
pub use forgotten::Forgotten;
pub use keeper::{CaughtUp, Keeper, MemoryError, Terms};
pub use recall::Recall;
pub use remembering::{Copied, Remembering};
pub use warned::Warned;
