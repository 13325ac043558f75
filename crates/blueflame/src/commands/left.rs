//! What earlier sessions have left, looked at before another one begins.

use blueflame_core::ids::SessionId;

use super::asking::{Enter, Said, confirm};
use crate::failure::Failure;
use crate::repo_lock::{self, Presence};
use crate::session::site::Site;
use crate::session::{self, strays};
use crate::stderr::eprintln;
use crate::store::{Store, WritableStore};

/// Whether there is a person to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attended {
    Yes,
    No,
}

/// Offers to go on with a session that was left; the answer is the one to go on with.
/// Where nobody is there to be asked, it is only mentioned.
pub fn taken_up(store: &WritableStore, attended: Attended) -> Result<Option<SessionId>, Failure> {
    // One that is at work was not left; who has it is said when its lock is wanted.
    if repo_lock::look(store.store())? != Presence::Nobody {
        return Ok(None);
    }
    let Some(id) = session::unfinished(store.store())? else { return Ok(None) };
    eprintln!("note: session {id} was left unfinished; `blueflame resume {id}` goes on with it");
    if attended == Attended::No {
        return Ok(None);
    }
    let question = "go on with it now, instead of beginning another?";
    Ok((confirm(question, Enter::MeansYes) == Said::Yes).then_some(id))
}

/// Stops agents of other sessions, which nobody follows any more. The caller holds
/// the repository's lock.
pub fn stop_strays(store: &Store, own: &SessionId) -> Result<(), Failure> {
    for strays::Stopped { session, agents } in strays::stop(store, own)? {
        let were = if agents == 1 { "1 agent" } else { &format!("{agents} agents") };
        eprintln!(
            "note: {were} of session {session} worked on without an orchestrator, and stopped; \
             `blueflame resume {session}` finds what they did"
        );
    }
    Ok(())
}

/// Says how many workspaces earlier sessions have left.
pub fn mention_workspaces(site: &Site) {
    let found = site.workspaces.list().unwrap_or_default();
    let count = found.iter().filter(|it| it.session != *site.session.id()).count();
    if count > 0 {
        let are = if count == 1 { "1 workspace" } else { &format!("{count} workspaces") };
        eprintln!(
            "note: {are} of earlier sessions left; `blueflame cleanup --dry-run` tells what \
             can go"
        );
    }
}
