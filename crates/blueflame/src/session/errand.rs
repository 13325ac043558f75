//! Errands: what a person asks of a session that nobody runs. The session is
//! taken up for as long as that takes, and left as it was otherwise.

use std::fs;
use std::sync::Arc;

use blueflame_core::event::Event;
use blueflame_core::ids::Oid;
use blueflame_core::state::State;
use blueflame_core::state::merging;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use super::site::{Manner, Site};
use super::{Session, Watch, internal, reopen};
use crate::config_file::Loaded;
use crate::doctor;
use crate::failure::{Failure, Kind};
use crate::people::Respondent;
use crate::repo_lock::{Holder, RepoLock};
use crate::sandbox;
use crate::store::{SessionDir, WritableStore};

/// How often it is tried anew because the base moved.
pub(super) const BASE_MOVES: usize = 5;

/// What came of publishing.
#[derive(Debug)]
pub enum Publishing {
    Published { commit: Oid },
    Waiting { reason: String },
}

impl Session {
    /// Takes a session up that nobody runs.
    pub fn take_up(
        loaded: Loaded,
        store: &WritableStore,
        directory: SessionDir,
    ) -> Result<Session, Failure> {
        let holder = Holder::this_process(directory.id().clone(), Timestamp::now());
        let lock = RepoLock::take(store, &holder)?;
        let newest = store.store().sessions()?.first() == Some(directory.id());
        let (journal, state, _) = reopen(&directory)?;
        // Checks are run in it.
        doctor::take_open_files();
        let boundary = sandbox::choose(&loaded.config.sandbox)?;
        let manner = Manner { interactive: false, boundary };
        let site = Arc::new(Site::new(loaded, directory, state.started_at, manner)?);
        let nobody = Respondent::new(None, false, None);
        let mut session = Session::new(site, lock, journal, state, nobody, Watch::of_errand());
        if !newest {
            session.views.leave_alone();
        }
        Ok(session)
    }

    /// Leaves it again.
    pub fn put_down(&mut self) -> Result<(), Failure> {
        // What checks made; one that is not empty is found by `blueflame cleanup`.
        let _ = fs::remove_dir(self.site.checkouts());
        self.leave()
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Records what the person asks for, and does it to its end.
    pub(super) async fn errand(&mut self, request: Event) -> Result<(), Failure> {
        self.record(request)?;
        self.finish_errand().await
    }

    /// Ctrl-C leaves a check at once, and lets a branch that moves arrive.
    pub(super) async fn finish_errand(&mut self) -> Result<(), Failure> {
        let mut interrupts = signal(SignalKind::interrupt()).map_err(internal)?;
        let mut terminations = signal(SignalKind::terminate()).map_err(internal)?;
        let mut hang_ups = signal(SignalKind::hangup()).map_err(internal)?;
        let mut stopped = false;
        loop {
            self.act()?;
            if self.state.errand.is_none() {
                return Ok(());
            }
            if stopped && !self.state.is_landing() {
                let message = "stopped; nothing is lost";
                return Err(Failure::new(Kind::Interrupted, message)
                    .hint("the same command once more goes on"));
            }
            let stop = tokio::select! {
                Some(occurrence) = self.inbox.recv() => {
                    self.happened([occurrence])?;
                    false
                }
                _ = interrupts.recv() => true,
                _ = terminations.recv() => true,
                _ = hang_ups.recv() => true,
            };
            if stop {
                stopped = true;
                let _ = self.stop.send(true);
            }
        }
    }

    /// Brings everything that landed to the base branch. If that moved away, the
    /// two are checked together first.
    pub async fn publish_landed(&mut self) -> Result<Publishing, Failure> {
        let mut tries = 0;
        loop {
            let (commit, request) = self.publish_request()?;
            self.errand(request).await?;
            tries += 1;
            let moved = |session: &Session| {
                session.site.tip().is_ok_and(|tip| tip.onto != commit) && tries < BASE_MOVES
            };
            match self.published() {
                Publishing::Waiting { .. } if moved(self) => {}
                came_of_it => return Ok(came_of_it),
            }
        }
    }

    /// What came of publishing, by what was recorded last.
    pub(super) fn published(&self) -> Publishing {
        match &self.state.publishing {
            merging::Publishing::Published { commit } => {
                Publishing::Published { commit: commit.clone() }
            }
            merging::Publishing::Waiting { reason, .. } => {
                Publishing::Waiting { reason: reason.clone() }
            }
            merging::Publishing::Nothing
            | merging::Publishing::Wanted { .. }
            | merging::Publishing::Joined { .. }
            | merging::Publishing::Checking { .. }
            | merging::Publishing::Running { .. } => Publishing::Waiting {
                reason: "it was not published; `blueflame publish` does that".to_owned(),
            },
        }
    }

    fn publish_request(&self) -> Result<(Oid, Event), Failure> {
        let tip = match (self.site.tip(), known(&self.state)) {
            (Ok(tip), _) => tip,
            // Trying finds the same, and it is told and recorded like any other
            // reason to wait.
            (Err(error), Some(commit)) if error.is_for_the_person() => {
                let request = Event::PublishRequested { commit: commit.clone(), joins: None };
                return Ok((commit, request));
            }
            (Err(error), _) => return Err(Failure::new(Kind::Incomplete, error)),
        };
        if tip.integration.is_none() {
            let message = format!("nothing is left of what landed in {}", self.state.session);
            return Err(Failure::new(Kind::Missing, message).hint(
                "its refs are gone; `git log --grep Blueflame-Session` shows what is there",
            ));
        }
        let joins = tip.is_joint().then_some(tip.base);
        Ok((tip.onto.clone(), Event::PublishRequested { commit: tip.onto, joins }))
    }
}

/// The commit that the session last tried to publish.
fn known(state: &State) -> Option<Oid> {
    match &state.publishing {
        merging::Publishing::Nothing => None,
        merging::Publishing::Wanted { commit }
        | merging::Publishing::Joined { commit }
        | merging::Publishing::Checking { commit }
        | merging::Publishing::Running { commit }
        | merging::Publishing::Waiting { commit, .. }
        | merging::Publishing::Published { commit } => Some(commit.clone()),
    }
}
