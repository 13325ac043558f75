//! Folding: a changeset's tasks as commits on top of what has landed.
//!
//! A worker started from the base plus the work of its dependencies, which has
//! landed since as other commits. So not the histories are merged, but exactly
//! the difference between start and finish of each task is applied, by a
//! three-way merge whose base is the start. The dependencies' changes are on
//! both sides of it and never come twice.
//!
//! Only objects are written, and one ref that keeps them; a conflict moves
//! nothing at all.

use blueflame_core::event::FoldResult;
use blueflame_core::ids::{AgentId, ChangesetId, Oid, SessionId, TaskId};
use blueflame_core::outcome::Fold;
use jiff::Timestamp;

use super::message::{About, MessageStyle};
use super::{Author, Landing, LandingError, Refs, shown};
use crate::git::GitError;
use crate::git::refs::RefChange;
use crate::git::trees::{NewCommit, Signing};

#[derive(Clone, Debug)]
pub struct FoldOrder {
    pub session: SessionId,
    pub changeset: ChangesetId,
    /// What has landed.
    pub onto: Oid,
    /// In the order in which they are folded.
    pub tasks: Vec<FoldTask>,
    pub author: Author,
    /// The date of the commits. The same order gives the same commits.
    pub when: Timestamp,
    pub style: MessageStyle,
    /// Who brought together what conflicted, if anyone had to.
    pub merger: Option<Merger>,
}

#[derive(Clone, Debug)]
pub struct Merger {
    pub agent: AgentId,
    /// What mergers of this changeset have cost.
    pub cost: String,
}

#[derive(Clone, Debug)]
pub struct FoldTask {
    pub source: Source,
    pub title: String,
    pub agent: Option<AgentId>,
    /// For the trailers, of everyone who worked on it; left out if empty.
    pub cost: String,
    pub validation: String,
}

/// The work of one task: from where it started to its finished commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub task: TaskId,
    pub start: Oid,
    pub commit: Oid,
}

impl Landing {
    pub fn fold(&self, order: &FoldOrder) -> Result<FoldResult, LandingError> {
        if order.tasks.is_empty() {
            return Err(LandingError::NothingToFold);
        }
        let signing = self.signing()?;
        let subjects = self.subjects(order)?;
        let mut tip = order.onto.clone();
        for (task, subjects) in order.tasks.iter().zip(&subjects) {
            let Source { start, commit, .. } = &task.source;
            let merged = self.git.merge_from(start, &tip, commit)?;
            if !merged.conflicts.is_empty() {
                let whole = self.merged_alone(&order.onto, &order.sources())?;
                return Ok(FoldResult::Conflict { files: shown(&whole.conflicts) });
            }
            let message =
                order.style.message(&task.about(subjects), &order.session, &order.changeset);
            tip = self.commit(&NewCommit {
                tree: &merged.tree,
                parents: &[&tip],
                message: &message,
                name: &order.author.name,
                email: &order.author.email,
                when: order.when,
                signing,
            })?;
        }
        self.folded(&order.session, &order.changeset, &order.onto, tip).map(FoldResult::Folded)
    }

    /// The first lines of the commits of each task.
    pub(super) fn subjects(&self, order: &FoldOrder) -> Result<Vec<Vec<String>>, LandingError> {
        let sources = order.tasks.iter().map(|task| &task.source);
        let ranges: Vec<_> = sources.map(|source| (&source.start, &source.commit)).collect();
        Ok(self.git.subjects(&ranges)?)
    }

    /// Keeps a folded commit and describes it.
    pub(super) fn folded(
        &self,
        session: &SessionId,
        changeset: &ChangesetId,
        onto: &Oid,
        commit: Oid,
    ) -> Result<Fold, LandingError> {
        let name = Refs(session).folded(changeset);
        let kept = [RefChange::Set { name: &name, to: &commit }];
        self.set_refs(&kept, "blueflame: fold")?;
        let patch = self.patch_of(onto, &commit)?;
        let stat = self.git.stat(onto, &commit)?;
        let lines = stat.iter().filter_map(|file| file.lines);
        let (insertions, deletions) = lines.fold((0, 0), |(more, less), (added, removed)| {
            (u32::saturating_add(more, added), u32::saturating_add(less, removed))
        });
        let files = u32::try_from(stat.len()).unwrap_or(u32::MAX);
        Ok(Fold { commit, patch, files, insertions, deletions })
    }

    pub(super) fn commit(&self, new: &NewCommit<'_>) -> Result<Oid, LandingError> {
        self.git.commit(new).map_err(|error| match error {
            GitError::Failed { message, .. } if new.signing == Signing::On => {
                LandingError::NotSigned { message }
            }
            error => error.into(),
        })
    }
}

impl FoldOrder {
    pub fn sources(&self) -> Vec<Source> {
        self.tasks.iter().map(|task| task.source.clone()).collect()
    }
}

impl FoldTask {
    pub(super) fn about<'a>(&'a self, subjects: &'a [String]) -> About<'a> {
        About {
            task: &self.source.task,
            title: &self.title,
            agent: self.agent.as_ref(),
            cost: &self.cost,
            validation: &self.validation,
            subjects,
        }
    }
}
