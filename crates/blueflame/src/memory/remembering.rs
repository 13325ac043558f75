//! Saving at the end of a session. Whatever goes wrong is told, and is made good
//! by the next command that needs the notes: a session does not fail by it.

use blueflame_core::config::Memory;

use super::keeper::{Keeper, Terms};
use crate::config_file::Loaded;
use crate::stderr::eprintln;
use crate::store::WritableStore;

/// What is needed to save, put aside before the session takes everything.
#[derive(Clone, Debug)]
pub struct Remembering {
    keeper: Keeper,
    /// `None` if nothing is remembered.
    config: Option<Memory>,
}

impl Remembering {
    pub fn of(loaded: &Loaded, store: &WritableStore) -> Remembering {
        Remembering { keeper: Keeper::of(store.store()), config: loaded.config.memory.clone() }
    }

    /// Saves what there is to know by now.
    pub fn remember(&self) {
        let Some(config) = &self.config else { return };
        match self.keeper.catch_up(&Terms::of(config)) {
            Ok(caught_up) => {
                for warning in &caught_up.warnings {
                    eprintln!("warning: {warning}");
                }
                let notes = caught_up.notebook.len();
                eprintln!("{notes} notes are remembered; `blueflame memory` shows them");
            }
            Err(error) => eprintln!(
                "warning: what this session leaves to know was not saved: {error}; the next \
                 command that needs it tries again"
            ),
        }
    }
}
