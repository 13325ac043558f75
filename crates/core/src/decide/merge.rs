//! The merge wave: changesets one after the other, in landing order.
//!
//! Each is folded onto what has landed, checked on exactly that tree, shown
//! to the person, and landed, before the next one is folded: so what the
//! person approves is what was checked, and what was checked is what lands.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Deferral, PlannedChangeset};
use crate::gate::Gate;
use crate::ids::{ChangesetId, TaskId};
use crate::state::State;
use crate::state::merging::{Changeset, ChangesetPhase, Publishing};
use crate::state::task::Step;

use super::schedule::Desk;
use super::{Action, Draft, cycle_over};

/// How often a changeset is folded anew because its base moved.
pub const BASE_MOVES: u32 = 5;

/// Starts the wave if there is something to merge.
pub(super) fn begin(state: &State) -> Draft {
    let changesets = plan(state);
    if changesets.is_empty() {
        cycle_over(state)
    } else {
        Draft::of(Action::PlanMerge { changesets })
    }
}

/// One changeset for each group that has something to land.
fn plan(state: &State) -> Vec<PlannedChangeset> {
    let board = &state.board;
    let groups = board.mergeable();
    let mut changeset_of: BTreeMap<&TaskId, ChangesetId> = BTreeMap::new();
    for (group, places) in &groups {
        for &place in places {
            changeset_of.insert(&board.task(place).spec.id, ChangesetId::of(group, state.cycle));
        }
    }
    groups
        .iter()
        .map(|(group, places)| {
            let id = ChangesetId::of(group, state.cycle);
            let needs: BTreeSet<&ChangesetId> = places
                .iter()
                .flat_map(|&place| board.dependencies(place))
                .filter_map(|need| changeset_of.get(&need.spec.id))
                .filter(|need| **need != id)
                .collect();
            PlannedChangeset {
                group: (*group).clone(),
                tasks: places.iter().map(|&place| board.task(place).spec.id.clone()).collect(),
                needs: needs.into_iter().cloned().collect(),
                id,
            }
        })
        .collect()
}

pub(super) fn merge(state: &State) -> Draft {
    match &state.publishing {
        Publishing::Wanted { commit } => {
            return Draft::of(Action::Publish { commit: commit.clone() });
        }
        Publishing::Running { .. } | Publishing::Joined { .. } | Publishing::Checking { .. } => {
            return Draft::default();
        }
        Publishing::Nothing | Publishing::Waiting { .. } | Publishing::Published { .. } => {}
    }
    let Some(changeset) = state.merging.current() else { return cycle_over(state) };
    let id = changeset.planned.id.clone();
    match &changeset.phase {
        ChangesetPhase::Planned => Draft::of(fold_or_defer(state, changeset)),
        ChangesetPhase::Conflicted { .. } if state.crew.is_closed() => {
            Draft::of(Action::Defer { changeset: id, why: Deferral::NoBudget })
        }
        ChangesetPhase::Conflicted { .. } => {
            let mut desk = Desk::open(state);
            desk.spawn_merger(changeset);
            desk.close()
        }
        // The merger may be waiting for money.
        ChangesetPhase::Resolving { .. } => Desk::open(state).close(),
        ChangesetPhase::Folded { .. } => Draft::of(Action::Verify { changeset: id }),
        ChangesetPhase::Verified { .. } => Draft::question(Gate::Changeset(id)),
        ChangesetPhase::Approved { .. } => Draft::of(Action::Land { changeset: id }),
        ChangesetPhase::Folding
        | ChangesetPhase::Verifying { .. }
        | ChangesetPhase::Landing { .. }
        | ChangesetPhase::Landed { .. }
        | ChangesetPhase::Skipped
        | ChangesetPhase::Rejected { .. }
        | ChangesetPhase::Returned { .. }
        | ChangesetPhase::Deferred { .. } => Draft::default(),
    }
}

fn fold_or_defer(state: &State, changeset: &Changeset) -> Action {
    let id = changeset.planned.id.clone();
    if let Some(need) = state.merging.unlanded_need(changeset) {
        return Action::Defer { changeset: id, why: Deferral::NeedsUnlanded(need.clone()) };
    }
    if changeset.base_moves >= BASE_MOVES {
        return Action::Defer { changeset: id, why: Deferral::BaseKeepsMoving };
    }
    let still_validated =
        |task: &&TaskId| state.board.get(task).is_some_and(|task| task.step() == Step::Validated);
    let tasks: Vec<TaskId> = changeset.tasks.iter().filter(still_validated).cloned().collect();
    if tasks.is_empty() {
        Action::Defer { changeset: id, why: Deferral::NothingLeft }
    } else {
        Action::Fold { changeset: id, tasks }
    }
}
