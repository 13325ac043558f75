//! That `bd` is behind, and why: kept until it has caught up.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, AtomicError, Durability};

const FILE: &str = "mirror.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Since when it has not been told everything.
    pub since: Timestamp,
    /// What went wrong last.
    pub why: String,
}

impl Pending {
    /// `None` if it has everything, as far as we know.
    pub fn read(root: &Path) -> Option<Pending> {
        serde_json::from_slice(&fs::read(root.join(FILE)).ok()?).ok()
    }

    /// Keeps that it is behind; the first time counts.
    pub fn keep(root: &Path, now: Timestamp, why: &str) -> Result<(), AtomicError> {
        // Nobody wants to read fractions of a second.
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let since = Pending::read(root).map_or(now, |earlier| earlier.since);
        let pending = Pending { since, why: why.to_owned() };
        let text = serde_json::to_vec(&pending).unwrap_or_default();
        atomic_file::replace(&root.join(FILE), &text, Durability::Process)
    }

    pub fn clear(root: &Path) {
        let _ = fs::remove_file(root.join(FILE));
    }
}
