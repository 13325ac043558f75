//! A copy of the notes in Beads, for people who work with `bd`.
//!
//! The notes beside the journals are what counts; `bd` is brought to say the same.
//! What it has is listed, and whatever is missing, different or open is created,
//! updated or closed, one call at a time. So a mirror that was cut short anywhere
//! is made good by doing it again, and doing it once more changes nothing.
//! Nothing is ever written into `.beads` but by `bd`, and no session runs it there
//! unless the person agreed to it on this machine; whoever is asked for that has it
//! say its version first.

mod answer;
mod brought;
mod changes;
mod consent;
mod pending;
mod place;
mod program;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use blueflame_core::memory::Notebook;

pub use self::brought::{Along, along as brought_along};
use self::changes::{Change, changes};
pub use self::consent::StateDirectory;
pub use self::pending::Pending;
pub use self::place::{Place, Standing};
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

/// Whether `bd` is there, and the person agreed to what it would do.
pub fn is_agreed(place: &Place, path: &OsString) -> Result<(), Unusable> {
    if !Bd::is_installed(path) {
        return Err(Unusable::NotInstalled);
    }
    match place.standing() {
        Standing::Nothing => return Err(Unusable::NotInitialised),
        Standing::HalfMade => return Err(Unusable::HalfMade(place.directory.clone())),
        Standing::Ready => {}
    }
    let consent = StateDirectory::here().consent(place).ok_or(Unusable::NotAgreed)?;
    match brought_along(place) {
        Some(brought) if !consent.covers(Some(&brought)) => {
            Err(Unusable::BroughtAlong { what: brought.what })
        }
        Some(_) | None => Ok(()),
    }
}

/// Makes `bd` say what the notes say.
pub fn reconcile(
    bd: &Bd<'_>,
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
