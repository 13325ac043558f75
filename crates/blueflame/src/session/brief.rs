//! What an agent has to know of the session when it starts: a copy, because
//! the session goes on meanwhile.

use std::collections::BTreeMap;

use blueflame_core::event::Work;
use blueflame_core::ids::{Oid, TaskId};
use blueflame_core::money::Spend;
use blueflame_core::state::State;
use blueflame_core::state::merging::{Changeset, ChangesetPhase};
use blueflame_core::state::task::{Phase, Task};

#[derive(Clone, Debug)]
pub enum Brief {
    Plan {
        goal: String,
        notes: Vec<String>,
        tasks: Vec<Task>,
    },
    Develop {
        task: Box<Task>,
        /// Finished work of other tasks that it builds on, not landed yet.
        needs: Vec<Oid>,
    },
    Validate {
        task: Box<Task>,
        commit: Oid,
    },
    Resolve {
        changeset: Box<Changeset>,
        tasks: Vec<Task>,
        spending: Spending,
    },
}

/// What has been spent on a changeset by everyone whose run is over.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    tasks: BTreeMap<TaskId, Spend>,
    pub mergers: Spend,
}

impl Spending {
    pub fn of(state: &State, changeset: &Changeset) -> Spending {
        let on_task = |id: &TaskId| state.crew.spent_on(|work| work.task() == Some(id));
        let tasks = changeset.tasks.iter().map(|id| (id.clone(), on_task(id))).collect();
        let resolve = Work::Resolve { changeset: changeset.planned.id.clone() };
        Spending { tasks, mergers: state.crew.spent_on(|work| *work == resolve) }
    }

    /// What the workers and validators of a task have cost.
    pub fn on(&self, task: &TaskId) -> Spend {
        self.tasks.get(task).copied().unwrap_or_default()
    }

    pub fn total(&self) -> Spend {
        self.tasks.values().fold(self.mergers, |sum, spend| sum.plus(*spend))
    }
}

impl Brief {
    /// `None` if the state knows nothing of the work.
    pub fn of(state: &State, work: &Work) -> Option<Brief> {
        match work {
            Work::Plan => Some(Brief::Plan {
                goal: state.goal.clone(),
                notes: state.planning.notes.clone(),
                tasks: state.board.tasks().to_vec(),
            }),
            Work::Develop { task, .. } => {
                let place = state.board.place(task)?;
                let unlanded = |task: &Task| match &task.phase {
                    Phase::Merged { .. } => None,
                    phase => phase.commit().cloned(),
                };
                let needs = state.board.dependencies(place).filter_map(unlanded).collect();
                Some(Brief::Develop { task: Box::new(state.board.task(place).clone()), needs })
            }
            Work::Validate { task, .. } => {
                let task = state.board.get(task)?;
                let commit = task.phase.commit()?.clone();
                Some(Brief::Validate { task: Box::new(task.clone()), commit })
            }
            Work::Resolve { changeset } => {
                let changeset = state.merging.get(changeset)?;
                Some(Brief::Resolve {
                    spending: Spending::of(state, changeset),
                    tasks: tasks_of(state, changeset),
                    changeset: Box::new(changeset.clone()),
                })
            }
        }
    }
}

/// The tasks of a changeset, in the order in which they are folded.
pub fn tasks_of(state: &State, changeset: &Changeset) -> Vec<Task> {
    changeset.tasks.iter().filter_map(|id| state.board.get(id)).cloned().collect()
}

/// The fold that a changeset stands at, if it has one.
pub fn fold_of(changeset: &Changeset) -> Option<&blueflame_core::outcome::Fold> {
    match &changeset.phase {
        ChangesetPhase::Folded { fold }
        | ChangesetPhase::Verifying { fold }
        | ChangesetPhase::Verified { fold }
        | ChangesetPhase::Approved { fold }
        | ChangesetPhase::Landing { fold } => Some(fold),
        ChangesetPhase::Planned
        | ChangesetPhase::Folding
        | ChangesetPhase::Conflicted { .. }
        | ChangesetPhase::Resolving { .. }
        | ChangesetPhase::Landed { .. }
        | ChangesetPhase::Skipped
        | ChangesetPhase::Rejected { .. }
        | ChangesetPhase::Returned { .. }
        | ChangesetPhase::Deferred { .. } => None,
    }
}
