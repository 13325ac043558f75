//! Landing: the one moment at which a changeset is in.
//!
//! One transaction moves the session's integration ref and names the changeset,
//! if the integration ref and the base branch are still where they were when the
//! changeset was folded. Before that, the change is compared with what the
//! person approved and with what the tasks did.

use blueflame_core::event::LandResult;
use blueflame_core::ids::{ChangesetId, Oid, SessionId};

use super::moving::refused;
use super::{Landing, LandingError, Refs, Source, Tip, branch_ref};
use crate::git::refs::{Moved, RefChange};

#[derive(Clone, Debug)]
pub struct LandOrder {
    pub session: SessionId,
    pub changeset: ChangesetId,
    pub base_branch: String,
    /// What the changeset was folded onto.
    pub tip: Tip,
    pub commit: Oid,
    /// The patch that the person approved.
    pub approved: String,
    pub work: Work,
}

/// What the changeset is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Its tasks, in the order in which they were folded.
    Tasks(Vec<Source>),
    /// The undoing of another changeset.
    Revert(super::LandedChangeset),
}

impl Landing {
    pub fn land(&self, order: &LandOrder) -> Result<LandResult, LandingError> {
        let LandOrder { session, changeset, commit, tip, .. } = order;
        let refs = Refs(session);
        let (integration, landed) = (refs.integration(), refs.landed(changeset));
        let [before, held] = self.git.commits_at([&landed, &integration])?;
        if let Some(before) = before {
            let is_there = match &held {
                Some(held) => before == *commit && self.git.is_in(commit, held)?,
                None => false,
            };
            return if is_there {
                Ok(LandResult::Landed)
            } else {
                let changeset = changeset.clone();
                Err(LandingError::LandedOtherwise { changeset, commit: before })
            };
        }
        if self.patch_of(&tip.onto, commit)? != order.approved {
            return Err(LandingError::NotApproved { commit: commit.clone() });
        }
        match &order.work {
            Work::Tasks(sources) => self.proof(&tip.onto, commit, sources)?,
            Work::Revert(undone) => self.revert_proof(&tip.onto, commit, undone)?,
        }
        self.ensure_nothing_lost(tip)?;
        let base = branch_ref(&order.base_branch);
        let changes = [
            RefChange::Verify { name: &base, holds: &tip.base },
            RefChange::Move { name: &integration, from: tip.integration.as_ref(), to: commit },
            RefChange::Move { name: &landed, from: None, to: commit },
        ];
        let why = format!("blueflame: land {changeset}");
        match self.move_refs(&changes, &why)? {
            Moved::Done => Ok(LandResult::Landed),
            Moved::Refused(message) => {
                let now = self.git.commits_at([&base, &integration])?;
                let still = now == [Some(tip.base.clone()), tip.integration.clone()];
                if still { Err(refused(message)) } else { Ok(LandResult::BaseMoved) }
            }
        }
    }

    /// Whatever landed before stays in: as history, or at least as content.
    pub(super) fn ensure_nothing_lost(&self, tip: &Tip) -> Result<(), LandingError> {
        let Some(landed) = &tip.integration else { return Ok(()) };
        if self.git.is_in(landed, &tip.onto)? || self.holds_content(&tip.onto, landed)? {
            return Ok(());
        }
        Err(LandingError::WouldLose { commit: tip.onto.clone(), landed: landed.clone() })
    }
}
