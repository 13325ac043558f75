//! A copy of the notes in Beads, for people who work with `bd`.
//!
//! The notes beside the journals are what counts; `bd` is brought to say the same.
//! What it has is listed, and whatever is missing, different or open is created,
//! updated or closed, one call at a time. So a mirror that was cut short anywhere
//! is made good by doing it again, and doing it once more changes nothing.
//! Nothing is ever written into `.beads` but by `bd`, and nothing is initialised
//! unless the person asks for it.

mod answer;
mod brought;
mod changes;
mod pending;
mod program;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blueflame_core::memory::Notebook;

pub use self::brought::refuse as refuse_what_is_brought_along;
use self::changes::{Change, changes};
pub use self::pending::Pending;
pub use self::program::{Bd, BdError, INIT, Unusable};
use super::Forgotten;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// One call.
    pub call: Duration,
    /// All of them. What is not done by then is done next time.
    pub all: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { call: Duration::from_secs(30), all: Duration::from_secs(120) }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mirrored {
    pub created: usize,
    pub updated: usize,
    pub closed: usize,
    /// What there was no time for.
    pub left: usize,
}

/// Where the beads of a repository are.
pub fn directory(repository: &Path) -> PathBuf {
    repository.join(".beads")
}

/// Makes `bd` say what the notes say.
pub fn reconcile(
    bd: &Bd,
    notebook: &Notebook,
    forgotten: &Forgotten,
    all: Duration,
) -> Result<Mirrored, BdError> {
    let deadline = Instant::now() + all;
    let mut done = Mirrored::default();
    for change in changes(&bd.list()?, notebook, forgotten) {
        if Instant::now() >= deadline {
            done.left += 1;
            continue;
        }
        match change {
            Change::Create(bead) => {
                let row = bd.create(&bead)?;
                done.created += 1;
                if !row.is_closed() {
                    bd.close(&row.id, &bead.close_reason)?;
                }
            }
            Change::Update { id, bead } => {
                bd.update(&id, &bead)?;
                done.updated += 1;
            }
            Change::Close { id, reason } => {
                bd.close(&id, &reason)?;
                done.closed += 1;
            }
        }
    }
    Ok(done)
}
