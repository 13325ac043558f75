//! The records of a session that nobody runs, or that begins.

use blueflame_core::event::Event;
use blueflame_core::ids::SessionId;
use blueflame_core::plan::Plan;
use blueflame_core::state::State;
use jiff::Timestamp;

use super::site::Site;
use super::{internal, weaker};
use crate::failure::Failure;
use crate::history;
use crate::journal::Writer;
use crate::store::{SessionDir, Store};

/// A journal to go on with, the state it leads to, and the bytes of a torn
/// write that were set aside. The caller holds the repository's lock.
pub fn reopen(directory: &SessionDir) -> Result<(Writer, State, Option<u64>), Failure> {
    let path = directory.journal();
    let opened = Writer::open(&path, |_| Ok(())).map_err(internal)?;
    let state = history::fold(&path, None, |_| {})?.state;
    Ok((opened.writer, state, opened.repair.map(|repair| repair.bytes)))
}

/// Records a fact about a session that nobody runs. The caller holds the
/// repository's lock.
pub fn note(directory: &SessionDir, event: &Event) -> Result<(), Failure> {
    let (mut journal, mut state, _) = reopen(directory)?;
    let at = Timestamp::now().max(state.last_at);
    state.apply(at, event).map_err(internal)?;
    journal.append(&[(at, event)]).map_err(internal)?;
    Ok(())
}

/// The newest session, if it was left with work open.
pub fn unfinished(store: &Store) -> Result<Option<SessionId>, Failure> {
    let Some(newest) = store.sessions()?.into_iter().next() else { return Ok(None) };
    let state = history::fold(&store.session(&newest).journal(), None, |_| {})?.state;
    Ok(state.ended().is_none().then_some(newest))
}

/// What a session is about, in its first event.
pub fn first_event(site: &Site, goal: String, plan: Option<Plan>) -> Event {
    Event::SessionStarted {
        session: site.session.id().clone(),
        goal,
        rules: Box::new(site.config.rules()),
        config: site.fingerprint.clone(),
        plan,
        weaker: weaker::settings(&site.config, site.sandbox.boundary()),
    }
}
