//! What is done about an errand: one step after the other, and nothing else.

use crate::state::State;
use crate::state::errands::{Errand, RevertPhase};
use crate::state::merging::Publishing;

use super::Action;

pub(super) fn steps(state: &State, errand: &Errand) -> Vec<Action> {
    match errand {
        Errand::Publish => publish(state),
        Errand::Revert { changeset } => match state.revert(changeset).map(|it| &it.phase) {
            Some(RevertPhase::Requested { .. }) => {
                vec![Action::Verify { changeset: changeset.clone() }]
            }
            Some(RevertPhase::Verified { .. }) => {
                vec![Action::Land { changeset: changeset.clone() }]
            }
            Some(RevertPhase::Landed { .. }) => publish(state),
            Some(
                RevertPhase::Verifying { .. }
                | RevertPhase::Landing { .. }
                | RevertPhase::BaseMoved
                | RevertPhase::Failed { .. },
            )
            | None => Vec::new(),
        },
    }
}

fn publish(state: &State) -> Vec<Action> {
    match &state.publishing {
        Publishing::Joined { commit } => vec![Action::VerifyJoint { commit: commit.clone() }],
        Publishing::Wanted { commit } => vec![Action::Publish { commit: commit.clone() }],
        Publishing::Nothing
        | Publishing::Checking { .. }
        | Publishing::Running { .. }
        | Publishing::Waiting { .. }
        | Publishing::Published { .. } => Vec::new(),
    }
}
