//! Removing workspaces when nobody needs them any more. What failed is kept, to
//! be looked at.

use std::sync::Arc;

use blueflame_core::event::Work;
use blueflame_core::outcome::Outcome;
use blueflame_core::state::State;
use tokio::task::spawn_blocking;

use super::bench;
use super::site::Site;
use crate::workspace::WorkspaceName;

/// Before the end of a run is recorded: whoever only reads leaves nothing in a
/// workspace that could be needed once more.
pub fn after_reading(site: &Site, work: &Work) {
    match work {
        Work::Plan | Work::Validate { .. } => {
            let _ = site.workspaces.remove_named(&WorkspaceName::of(work));
        }
        Work::Develop { .. } | Work::Resolve { .. } => {}
    }
}

/// After the end of a run was recorded, and not before: if the orchestrator dies
/// in between, the next one looks at the workspace again. A merger's is left to
/// the end, because its name may be used again. One that cannot be removed is
/// found by `blueflame cleanup`.
pub fn after_work(site: &Arc<Site>, work: &Work, outcome: &Outcome) {
    if matches!((work, outcome), (Work::Develop { .. }, Outcome::Finished { .. })) {
        let (site, name) = (Arc::clone(site), WorkspaceName::of(work));
        spawn_blocking(move || site.workspaces.remove_named(&name));
    }
}

/// After the session: only the attempts at tasks that did not land stay.
pub fn after_session(site: &Site, state: &State) {
    for past in state.crew.past() {
        if !state.may_hold_unlanded(Some(&past.work)) {
            let _ = site.workspaces.remove_named(&WorkspaceName::of(&past.work));
        }
    }
    // What orchestrators that were killed had begun to make.
    let _ = bench::clear(&site.checkouts());
    for leftover in site.workspaces.list().unwrap_or_default() {
        if leftover.session == *site.session.id() && leftover.name.is_none() {
            let _ = site.workspaces.remove_leftover(&leftover);
        }
    }
}
