//! Saving at the end of a session, and the copy for `bd`. Whatever goes wrong is
//! told, and is made good by the next one: a session does not fail by it.

use std::env;
use std::path::PathBuf;

use blueflame_core::config::Memory;
use jiff::Timestamp;

use super::keeper::{CaughtUp, Keeper, Terms};
use super::mirror::{self, Bd, Mirrored, Patience, Pending, Place, Unusable};
use super::warned::Warned;
use crate::config_file::Loaded;
use crate::interrupts::Interrupts;
use crate::narrate::plain;
use crate::people::sheet::count;
use crate::stderr::eprintln;
use crate::store::Store;

/// What is needed to save, put aside before the session takes everything.
#[derive(Clone, Debug)]
pub struct Remembering {
    keeper: Keeper,
    repository: PathBuf,
    /// `None` if nothing is remembered.
    config: Option<Memory>,
    warned: Warned,
}

/// What became of the copy for `bd`.
#[derive(Debug)]
pub enum Copied {
    /// The configuration does without.
    NotWanted,
    /// There is nothing to copy to.
    Nowhere(Unusable),
    Done(Mirrored),
    /// It is tried again next time.
    Failed(String),
    /// So is this; the person had enough of waiting.
    Interrupted,
}

const INTERRUPTED: &str = "interrupted";

impl Remembering {
    pub fn of(loaded: &Loaded, store: &Store) -> Remembering {
        Remembering {
            keeper: Keeper::of(store),
            repository: loaded.repository.clone(),
            config: loaded.config.memory.clone(),
            warned: Warned::default(),
        }
    }

    /// The same, which does not say again what the person was told.
    #[must_use]
    pub fn after(self, warned: &Warned) -> Remembering {
        Remembering { warned: warned.clone(), ..self }
    }

    /// Saves what there is to know by now, and says so in a line.
    pub fn remember(&self) {
        let Some(config) = &self.config else { return };
        let caught_up = match self.keeper.catch_up(&Terms::of(config)) {
            Ok(caught_up) => caught_up,
            Err(error) => {
                eprintln!(
                    "warning: what this session leaves to know was not saved: {error}; the next \
                     command that needs it tries again"
                );
                return;
            }
        };
        for warning in self.warned.news(caught_up.warnings.iter().cloned()) {
            eprintln!("warning: {}", plain(&warning));
        }
        let notes = count(caught_up.notebook.len(), "note");
        let copied = self.copy(&caught_up, Patience::default());
        eprintln!("memory: {notes} kept here (`blueflame memory`){}", copied.told());
        copied.warn();
    }

    /// Brings the copy up to date, if there is to be one. An interrupt ends it.
    pub fn copy(&self, caught_up: &CaughtUp, patience: Patience) -> Copied {
        if !self.config.as_ref().is_some_and(|config| config.mirror) {
            return Copied::NotWanted;
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let place = Place::of(&self.repository);
        if let Err(why) = mirror::is_agreed(&place, &path) {
            return Copied::Nowhere(why);
        }
        let done = self.keeper.alone("MIRROR", || {
            let stop = match Interrupts::listen() {
                Ok(stop) => stop,
                Err(error) => return Copied::Failed(error.to_string()),
            };
            let bd = match Bd::identify(&path, &place, patience.call, Some(&stop)) {
                Ok(bd) => bd,
                Err(Unusable::NoAnswer { error, .. }) if error.interrupted => {
                    return Copied::Interrupted;
                }
                Err(why @ Unusable::NoAnswer { .. }) => return Copied::Failed(why.to_string()),
                Err(why) => return Copied::Nowhere(why),
            };
            let CaughtUp { notebook, forgotten, .. } = caught_up;
            match mirror::reconcile(&bd, notebook, forgotten, patience.all) {
                Ok(done) => Copied::Done(done),
                Err(error) if error.interrupted => Copied::Interrupted,
                Err(error) => Copied::Failed(error.to_string()),
            }
        });
        let copied = done.unwrap_or_else(|error| Copied::Failed(error.to_string()));
        match &copied {
            Copied::NotWanted | Copied::Nowhere(_) => {}
            Copied::Done(Mirrored { left: 0, .. }) => Pending::clear(self.keeper.root()),
            Copied::Done(Mirrored { left, .. }) => {
                self.keep_pending(&format!("there was no time for {}", count(*left, "note")));
            }
            Copied::Failed(why) => self.keep_pending(why),
            Copied::Interrupted => self.keep_pending(INTERRUPTED),
        }
        copied
    }

    fn keep_pending(&self, why: &str) {
        if let Err(error) = Pending::keep(self.keeper.root(), Timestamp::now(), why) {
            eprintln!("warning: {error}");
        }
    }
}

impl Copied {
    /// Says what went wrong, if anything did.
    pub fn warn(&self) {
        let behind = "`bd` has no full copy of the notes, and gets it next time";
        match self {
            Copied::Failed(why) => eprintln!("warning: {behind}: {why}"),
            Copied::Interrupted => eprintln!("warning: {behind}: {INTERRUPTED}"),
            Copied::Nowhere(why @ Unusable::BroughtAlong { .. }) => eprintln!(
                "warning: {why}; if you trust it, say so: `blueflame memory init --beads`"
            ),
            Copied::Nowhere(why @ Unusable::HalfMade(_)) => {
                eprintln!("warning: `bd` gets no copy of the notes: {why}; `bd init` makes one");
            }
            Copied::NotWanted | Copied::Nowhere(_) | Copied::Done(_) => {}
        }
    }

    /// The rest of a line about the notes.
    fn told(&self) -> String {
        match self {
            Copied::NotWanted
            | Copied::Failed(_)
            | Copied::Interrupted
            | Copied::Nowhere(Unusable::BroughtAlong { .. } | Unusable::HalfMade(_)) => {
                String::new()
            }
            Copied::Nowhere(Unusable::NotInstalled) => " alone: `bd` is not installed".to_owned(),
            Copied::Nowhere(Unusable::NotInitialised | Unusable::NotAgreed) => {
                "; `bd` gets a copy once you agreed to it: `blueflame memory init --beads`"
                    .to_owned()
            }
            Copied::Nowhere(why @ (Unusable::NotBeads { .. } | Unusable::NoAnswer { .. })) => {
                format!(" alone: {why}")
            }
            Copied::Done(Mirrored { created, updated, closed, left }) => {
                let rest = match left {
                    0 => String::new(),
                    left => format!(", {left} to follow"),
                };
                format!(
                    "; `bd` has a copy ({created} new, {updated} changed, {closed} closed{rest})"
                )
            }
        }
    }
}
