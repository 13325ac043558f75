//! Removing workspaces when nobody needs them any more. What failed is kept, to
//! be looked at.

use std::collections::BTreeSet;

use blueflame_core::event::Work;
use blueflame_core::outcome::Outcome;
use blueflame_core::state::State;
use blueflame_core::state::task::Step;

use super::agents::Run;
use super::site::Site;
use crate::workspace::WorkspaceName;

/// After a run: everything of use has been taken over, unless it was the work
/// of a worker that came to nothing. A workspace that cannot be removed now is
/// found again by `blueflame cleanup`.
pub fn after_run(site: &Site, run: &Run, outcome: &Outcome) {
    let over = match &run.work {
        Work::Plan | Work::Validate { .. } | Work::Resolve { .. } => true,
        Work::Develop { .. } => matches!(outcome, Outcome::Finished { .. }),
    };
    if over {
        let _ = site.workspaces.remove_named(&WorkspaceName::of(&run.work));
    }
}

/// After the session: only the attempts at tasks that did not land stay.
pub fn after_session(site: &Site, state: &State) {
    let unfinished = state
        .board
        .tasks()
        .iter()
        .filter(|task| !matches!(task.step(), Step::Merged | Step::Replaced))
        .map(|task| &task.spec.id)
        .collect::<BTreeSet<_>>();
    for past in state.crew.past() {
        let kept = match &past.work {
            Work::Develop { task, .. } => unfinished.contains(task),
            Work::Plan | Work::Validate { .. } | Work::Resolve { .. } => false,
        };
        if !kept {
            let _ = site.workspaces.remove_named(&WorkspaceName::of(&past.work));
        }
    }
}
