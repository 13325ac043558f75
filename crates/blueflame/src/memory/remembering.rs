//! Saving at the end of a session, and the copy for `bd`. Whatever goes wrong is
//! told, and is made good by the next one: a session does not fail by it.

use std::env;
use std::path::PathBuf;

use blueflame_core::config::{Memory, Mirror};
use jiff::Timestamp;

use super::keeper::{CaughtUp, Keeper, Terms};
use super::mirror::{self, Bd, Mirrored, Patience, Pending, Unusable};
use crate::commands::run::runtime;
use crate::config_file::Loaded;
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
}

impl Remembering {
    pub fn of(loaded: &Loaded, store: &Store) -> Remembering {
        Remembering {
            keeper: Keeper::of(store),
            repository: loaded.repository.clone(),
            config: loaded.config.memory.clone(),
        }
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
        for warning in &caught_up.warnings {
            eprintln!("warning: {warning}");
        }
        let notes = count(caught_up.notebook.len(), "note");
        let copied = self.copy_unless_interrupted(caught_up);
        eprintln!("memory: {notes} (`blueflame memory`){}", copied.told());
        copied.warn();
    }

    /// Brings the copy up to date while the person has the patience. The session has
    /// left a handler for Ctrl-C behind, so nothing else would end this.
    fn copy_unless_interrupted(&self, caught_up: CaughtUp) -> Copied {
        let failed = |why: &str| Copied::Failed(why.to_owned());
        let (tell, told) = tokio::sync::oneshot::channel();
        let copier = self.clone();
        std::thread::spawn(move || tell.send(copier.copy(&caught_up, Patience::default())));
        let Ok(runtime) = runtime() else { return failed("there is no runtime to wait in") };
        runtime.block_on(async {
            tokio::select! {
                done = told => done.unwrap_or_else(|_| failed("it broke off")),
                _ = tokio::signal::ctrl_c() => failed("interrupted"),
            }
        })
    }

    /// Brings the copy up to date, and says only what went wrong.
    pub fn copy_and_warn(&self, caught_up: &CaughtUp) {
        self.copy(caught_up, Patience::default()).warn();
    }

    /// Brings the copy up to date, if there is to be one.
    pub fn copy(&self, caught_up: &CaughtUp, patience: Patience) -> Copied {
        let mirror = self.config.as_ref().map_or(Mirror::Never, |config| config.mirror);
        if mirror == Mirror::Never {
            return Copied::NotWanted;
        }
        let path = env::var_os("PATH").unwrap_or_default();
        if !mirror::directory(&self.repository).is_dir() {
            let installed = crate::executor::find::in_path("bd", &path).is_some();
            let why = if installed { Unusable::NotInitialised } else { Unusable::NotInstalled };
            return Copied::Nowhere(why);
        }
        if mirror == Mirror::Usual
            && let Err(why) = mirror::refuse_what_is_brought_along(&self.repository)
        {
            return Copied::Nowhere(why);
        }
        let done = self.keeper.alone("MIRROR", || {
            let bd = match Bd::identify(&path, &self.repository, patience.call) {
                Ok(bd) => bd,
                Err(why @ Unusable::NoAnswer { .. }) => return Copied::Failed(why.to_string()),
                Err(why) => return Copied::Nowhere(why),
            };
            let CaughtUp { notebook, forgotten, .. } = caught_up;
            match mirror::reconcile(&bd, notebook, forgotten, patience.all) {
                Ok(done) => Copied::Done(done),
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
    fn warn(&self) {
        match self {
            Copied::Failed(why) => eprintln!(
                "warning: `bd` has no full copy of the notes, and gets it next time: {why}"
            ),
            Copied::Nowhere(why @ Unusable::BroughtAlong { .. }) => eprintln!(
                "warning: {why}; if you trust it, write `beads: {{mirror: true}}` into the \
                 configuration"
            ),
            _ => {}
        }
    }

    /// The rest of a line about the notes.
    fn told(&self) -> String {
        match self {
            Copied::NotWanted
            | Copied::Failed(_)
            | Copied::Nowhere(Unusable::BroughtAlong { .. }) => String::new(),
            Copied::Nowhere(Unusable::NotInstalled) => {
                "; no `bd`, so they are kept here alone".to_owned()
            }
            Copied::Nowhere(Unusable::NotInitialised) => {
                "; `bd` gets a copy once there is a `.beads` (`blueflame memory init --beads`)"
                    .to_owned()
            }
            Copied::Nowhere(why @ (Unusable::NotBeads { .. } | Unusable::NoAnswer { .. })) => {
                format!("; they are kept here alone: {why}")
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
