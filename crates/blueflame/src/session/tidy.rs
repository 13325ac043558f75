//! Removing workspaces when nobody needs them any more. What failed is kept, to
//! be looked at.

use std::sync::Arc;

use blueflame_core::event::Work;
use blueflame_core::outcome::Outcome;
use blueflame_core::state::State;
use blueflame_core::state::crew::Agent;
use tokio::task::spawn_blocking;

use super::site::Site;
use super::{KILL_PATIENCE, bench};
use crate::process_tree::wait_for_end;
use crate::workspace::WorkspaceName;

/// After the end of a run was recorded, and not before: if the orchestrator dies
/// in between, the next one looks at the workspace again. A name may be used
/// again at once, so the workspace loses it first. A merger's is left to the end,
/// and work that failed is kept.
pub fn after_work(site: &Arc<Site>, agent: &Agent, outcome: &Outcome) {
    let needed = match &agent.work {
        Work::Plan | Work::Validate { .. } => false,
        Work::Develop { .. } => !matches!(outcome, Outcome::Finished { .. }),
        Work::Resolve { .. } => true,
    };
    if needed {
        return;
    }
    // One that cannot be removed is found at the end, and by `blueflame cleanup`.
    if let Ok(Some(leftover)) = site.workspaces.put_away(&WorkspaceName::of(&agent.work)) {
        let (site, process) = (Arc::clone(site), agent.process.clone());
        spawn_blocking(move || {
            // It is on its way out, and still sees the workspace until then.
            if let Some(process) = process {
                let _ = wait_for_end(&process, KILL_PATIENCE);
            }
            site.workspaces.remove_leftover(&leftover)
        });
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
