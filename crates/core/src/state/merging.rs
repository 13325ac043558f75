//! The changesets of one merge wave and how far each has come.

use serde::Serialize;

use crate::event::{Deferral, PlannedChangeset, VerifyResult};
use crate::ids::{AgentId, ChangesetId, Oid, TaskId};
use crate::outcome::{Fold, Tally};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesetPhase {
    Planned,
    Folding,
    Conflicted {
        files: Vec<String>,
    },
    Resolving {
        agent: AgentId,
        files: Vec<String>,
    },
    Folded {
        fold: Fold,
    },
    Verifying {
        fold: Fold,
    },
    /// The check passed on this very tree: ready for the person.
    Verified {
        fold: Fold,
    },
    Approved {
        fold: Fold,
    },
    Landing {
        fold: Fold,
    },
    Landed {
        commit: Oid,
    },
    Skipped,
    Rejected {
        reason: String,
    },
    /// Sent back by a check or a conflict rather than by a person.
    Returned {
        reason: String,
    },
    Deferred {
        why: Deferral,
    },
}

impl ChangesetPhase {
    /// Whether nothing more will happen to it in this wave.
    pub fn is_settled(&self) -> bool {
        match self {
            ChangesetPhase::Landed { .. }
            | ChangesetPhase::Skipped
            | ChangesetPhase::Rejected { .. }
            | ChangesetPhase::Returned { .. }
            | ChangesetPhase::Deferred { .. } => true,
            ChangesetPhase::Planned
            | ChangesetPhase::Folding
            | ChangesetPhase::Conflicted { .. }
            | ChangesetPhase::Resolving { .. }
            | ChangesetPhase::Folded { .. }
            | ChangesetPhase::Verifying { .. }
            | ChangesetPhase::Verified { .. }
            | ChangesetPhase::Approved { .. }
            | ChangesetPhase::Landing { .. } => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changeset {
    pub planned: PlannedChangeset,
    /// The tasks in it now: a guilty one is taken out.
    pub tasks: Vec<TaskId>,
    pub phase: ChangesetPhase,
    /// What was checked on the fold that was last found good.
    pub checked: Option<Checked>,
    /// The change that the person approved, by its patch.
    pub approved: Option<String>,
    /// How often the branch moved away under it.
    pub base_moves: u32,
    pub merger_tally: Tally,
    pub mergers_failed: usize,
}

impl Changeset {
    pub fn new(planned: &PlannedChangeset) -> Self {
        Changeset {
            planned: planned.clone(),
            tasks: planned.tasks.clone(),
            phase: ChangesetPhase::Planned,
            checked: None,
            approved: None,
            base_moves: 0,
            merger_tally: Tally::default(),
            mergers_failed: 0,
        }
    }

    /// Whether its tree was checked by exactly these commands.
    pub(super) fn was_checked_by(&self, commands: &[String]) -> bool {
        self.checked.as_ref().is_some_and(|checked| checked.commands == commands)
    }

    /// Takes over a checked fold. An approval given for the same change holds.
    pub(super) fn verified(&mut self, fold: Fold, checked: Checked) {
        self.checked = Some(checked);
        self.phase = if self.approved.as_ref() == Some(&fold.patch) {
            ChangesetPhase::Approved { fold }
        } else {
            ChangesetPhase::Verified { fold }
        };
    }
}

/// A check of a merged tree, as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub result: VerifyResult,
    pub commands: Vec<String>,
}

/// The changesets of one cycle, in the order in which they may land.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merging {
    pub changesets: Vec<Changeset>,
}

impl Merging {
    pub fn get(&self, id: &ChangesetId) -> Option<&Changeset> {
        self.changesets.iter().find(|changeset| changeset.planned.id == *id)
    }

    pub(super) fn get_mut(&mut self, id: &ChangesetId) -> Option<&mut Changeset> {
        self.changesets.iter_mut().find(|changeset| changeset.planned.id == *id)
    }

    /// The changeset whose turn it is.
    pub fn current(&self) -> Option<&Changeset> {
        self.changesets.iter().find(|changeset| !changeset.phase.is_settled())
    }

    /// The first changeset that this one builds on and that will not land now.
    pub fn unlanded_need<'a>(&self, changeset: &'a Changeset) -> Option<&'a ChangesetId> {
        changeset.planned.needs.iter().find(|need| {
            self.get(need)
                .is_some_and(|needed| !matches!(needed.phase, ChangesetPhase::Landed { .. }))
        })
    }
}

/// Where landed work stands on its way to the base branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Publishing {
    #[default]
    Nothing,
    Wanted {
        commit: Oid,
    },
    /// Joined with a base that moved, for somebody who asked for it.
    Joined {
        commit: Oid,
    },
    /// That tree is being checked.
    Checking {
        commit: Oid,
    },
    Running {
        commit: Oid,
    },
    Waiting {
        commit: Oid,
        reason: String,
    },
    Published {
        commit: Oid,
    },
}
