//! `blueflame publish`: brings landed changesets to the base branch, when that
//! had to wait for the person.

use crate::stderr::eprintln;
use blueflame_core::config::MergeTarget;
use blueflame_core::ids::{ChangesetId, Oid};
use blueflame_core::state::State;

use super::run::runtime;
use crate::cli::{Common, Publish};
use crate::config_file;
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::history;
use crate::narrate::short;
use crate::repo_lock::{self, LockError, Presence};
use crate::session::{Publishing, Session};
use crate::store::{SessionDir, Store};

pub fn run(arguments: &Publish, common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let store = loaded.store();
    let Some(directory) = chosen(&store, arguments.session.as_deref())? else {
        if let Presence::Somebody(holder) = repo_lock::look(&store)? {
            return Err(LockError::Held { holder }.into());
        }
        eprintln!("nothing waits to be published");
        return Ok(());
    };
    let (id, branch) = (directory.id().clone(), loaded.config.project.base_branch.clone());
    if loaded.config.merge.target == MergeTarget::Branch {
        let message = "`merge.target: branch` leaves the base branch to you".to_owned();
        return Err(Failure::new(Kind::Usage, message)
            .hint(format!("merge it yourself: `git merge refs/blueflame/{id}/integration`"))
            .hint("or set `merge.target: base`, then `blueflame publish`"));
    }
    let store = store.for_writing(Remote::Refuse)?;
    let mut session = Session::take_up(loaded, &store, directory)?;
    let published = runtime()?.block_on(session.publish_landed());
    let landed = landed(session.state());
    session.put_down()?;
    tell(&published?, &branch)?;
    eprintln!("it has all that landed in {id}: {}", landed.join(", "));
    Ok(())
}

/// Says that it is published, or why it is not.
pub fn tell(published: &Publishing, branch: &str) -> Result<(), Failure> {
    match published {
        Publishing::Published { commit } => {
            eprintln!("`{branch}` is at {} now", short(Oid::as_str(commit)));
            Ok(())
        }
        Publishing::Waiting { reason } => {
            let failure = Failure::new(Kind::Incomplete, format!("not published yet: {reason}"));
            Err(failure.hint("what landed is safe meanwhile; `blueflame status` shows it"))
        }
    }
}

/// The session that is meant: the newest with something that waits. `None` if
/// nothing does.
fn chosen(store: &Store, asked: Option<&str>) -> Result<Option<SessionDir>, Failure> {
    if asked.is_some() {
        let directory = store.resolve(asked)?;
        let waits = state(&directory)?.has_unpublished();
        return Ok(waits.then_some(directory));
    }
    for id in store.sessions()? {
        let directory = store.session(&id);
        if state(&directory)?.has_unpublished() {
            return Ok(Some(directory));
        }
    }
    Ok(None)
}

fn state(directory: &SessionDir) -> Result<State, Failure> {
    Ok(history::fold(&directory.journal(), None, |_| {})?.state)
}

/// Everything that landed, each once and in order.
fn landed(state: &State) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in state.landed_changesets().map(ChangesetId::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
