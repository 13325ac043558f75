//! The journal: the one authority over what happened in a session.
//!
//! An append-only file of JSON lines, one record each:
//!
//! ```text
//! {"q":17,"ts":"2026-11-15T09:00:00.123Z","e":3,"t":"agent.claimed","d":{…},"h":"<32 hex>"}
//! ```
//!
//! `q` counts from 1 without gaps, `e` is the epoch of the orchestrator that
//! wrote it, `t` and `d` are the event, and `h` is the first half of
//! BLAKE3(`h` of the record before, then the bytes of this line up to `,"h":`).
//! The first record is the header. Any tool that reads lines can read it, and
//! `b3sum` can check it.
//!
//! What it promises: an append that returned survives a kill and, on a disk that
//! honours a flush, a power cut; damage is reported with its place and never
//! skipped; a reader needs no lock and sees whole records only. What it never
//! does: read the clock, look inside an event, rewrite a record, or keep the
//! output of agents.

mod chain;
mod disk;
mod event;
mod failure;
mod growth;
mod lines;
mod reader;
mod record;
mod repair;
mod scan;
mod writer;

pub use chain::{Flaw, Hash, Head};
pub use disk::{Disk, Extent};
pub use event::EventError;
pub use reader::{Reader, Step};
pub use record::{EncodeError, Header, MAX_RECORD, Record, SCHEMA};
pub use repair::Repair;
pub use scan::{Damage, ReadError, Scan, Tail, scan};
pub use writer::{AppendError, OpenError, Opened, Writer};
