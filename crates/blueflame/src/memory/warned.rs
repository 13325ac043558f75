//! What the person was told already: the same is found again by everybody who looks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by all who look for one session.
#[derive(Clone, Debug, Default)]
pub struct Warned {
    told: Arc<Mutex<BTreeSet<String>>>,
}

impl Warned {
    /// What is still to be told, which counts as told from now on.
    pub fn news(&self, warnings: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.into_iter().filter(|warning| told.insert(warning.clone())).collect()
    }
}
