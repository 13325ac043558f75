//! What is being done to a person's checkout right now.
//!
//! The file is there before git starts and gone after it ended, so a publication
//! that was cut short is known as such, with the two commits it was between. git
//! gets the file as its standard input and holds a lock on it by that: as long as
//! the lock is held, that git is still at work, whatever became of us.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use blueflame_core::ids::Oid;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Landing, LandingError};
use crate::atomic_file::{self, Durability};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    pub branch: String,
    pub old: Oid,
    pub new: Oid,
    pub worktree: PathBuf,
}

impl Landing {
    pub(super) fn intent_path(&self) -> PathBuf {
        self.common_dir.join("blueflame/publish.json")
    }

    /// Writes the intent down and locks it.
    pub(super) fn declare(&self, intent: &Intent) -> Result<File, LandingError> {
        let path = self.intent_path();
        let failed = |source| LandingError::File { step: "write", path: path.clone(), source };
        let bytes = serde_json::to_vec(intent).map_err(|error| failed(io::Error::other(error)))?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        atomic_file::replace(&path, &bytes, Durability::Power)
            .map_err(|error| failed(error.source))?;
        let file = File::open(&path).map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed(error.into()))?;
        Ok(file)
    }

    /// The intent that was never taken back, and whether its git still runs.
    pub(super) fn declared(&self) -> Result<Option<(Intent, bool)>, LandingError> {
        let path = self.intent_path();
        let failed = |source| LandingError::File { step: "read", path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let intent =
            serde_json::from_reader(&file).map_err(|error| failed(io::Error::other(error)))?;
        let at_work = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        Ok(Some((intent, at_work)))
    }

    /// The same, after its git had a while to end.
    pub(super) fn declared_at_rest(&self) -> Result<Option<(Intent, bool)>, LandingError> {
        let end = Instant::now() + self.patience;
        loop {
            let declared = self.declared()?;
            let at_work = declared.as_ref().is_some_and(|(_, at_work)| *at_work);
            // A process that some other thread starts holds all our files for
            // a moment, so a short wait is normal.
            if !at_work || Instant::now() >= end {
                return Ok(declared);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn take_back(&self) -> Result<(), LandingError> {
        let path = self.intent_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LandingError::File { step: "remove", path, source: error })
            }
            _ => Ok(()),
        }
    }
}
