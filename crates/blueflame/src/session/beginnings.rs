//! What attempts began with, as their specs say.
//!
//! A spec holds the whole prompt and all rules, and never changes. What a session asks
//! for again and again, as often as it looks at the work, is a small part of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blueflame_core::ids::Oid;

use crate::attempt::directory::{Directory, DirectoryError};
use crate::attempt::spec::{Author, Spec};

#[derive(Debug)]
pub struct Beginning {
    /// Where it was told to work.
    pub workspace: PathBuf,
    /// The commit that it found there.
    pub start: Oid,
    pub author: Author,
    /// How often it says that it is there.
    pub heartbeat: Option<Duration>,
}

impl From<&Spec> for Beginning {
    fn from(spec: &Spec) -> Beginning {
        Beginning {
            workspace: spec.workspace.clone(),
            start: spec.start.clone(),
            author: spec.author.clone(),
            heartbeat: spec.limits.heartbeat,
        }
    }
}

/// Those that are known, by the directory of the attempt.
#[derive(Debug, Default)]
pub struct Beginnings(Mutex<BTreeMap<PathBuf, Arc<Beginning>>>);

impl Beginnings {
    /// Makes the directory of an attempt. If there was one that never began, it is
    /// forgotten.
    pub fn begin(&self, root: &Path, spec: &Spec) -> Result<Directory, DirectoryError> {
        let directory = Directory::create(root, spec)?;
        self.known().insert(root.to_owned(), Arc::new(spec.into()));
        Ok(directory)
    }

    /// What an attempt began with, whichever process began it.
    pub fn of(&self, directory: &Directory) -> Result<Arc<Beginning>, DirectoryError> {
        if let Some(known) = self.known().get(directory.root()) {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(Beginning::from(&directory.spec()?));
        // One that was begun meanwhile is newer.
        Ok(Arc::clone(self.known().entry(directory.root().to_owned()).or_insert(read)))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<Beginning>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
