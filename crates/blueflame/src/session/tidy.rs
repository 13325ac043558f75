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

/// After the end of a run was recorded, and not before: if the orchestrator dies
/// in between, the next one looks at the workspace again. A name may be used
/// again at once, so the workspace loses it first. A merger's is left to the end,
/// and work that failed is kept.
pub fn after_work(site: &Arc<Site>, work: &Work, outcome: &Outcome) {
    let needed = match work {
        Work::Plan | Work::Validate { .. } => false,
        Work::Develop { .. } => !matches!(outcome, Outcome::Finished { .. }),
        Work::Resolve { .. } => true,
    };
    if needed {
        return;
    }
    // One that cannot be removed is found at the end, and by `blueflame cleanup`.
    if let Ok(Some(leftover)) = site.workspaces.put_away(&WorkspaceName::of(work)) {
        let site = Arc::clone(site);
        spawn_blocking(move || site.workspaces.remove_leftover(&leftover));
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
    let _ = site.workspaces.remove_unused_bases();
}
