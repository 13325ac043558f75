//! What a person asks of a session that nobody runs any more: to publish what
//! waits, or to take a landed changeset back.
//!
//! An errand begins with the request and is over when nothing more can be done
//! about it. While it lasts, nothing else happens in the session. One that was
//! cut short is simply asked for again.

use serde::Serialize;

use crate::event::{Event, LandResult, VerifyResult, Work};
use crate::ids::{ChangesetId, Oid};
use crate::outcome::Fold;

use super::merging::Publishing;
use super::task::{Phase, Step};
use super::{Refusal, Stage, State, ensure};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Errand {
    Publish,
    Revert { changeset: ChangesetId },
}

/// The undoing of a landed changeset, which lands as a changeset itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Revert {
    pub changeset: ChangesetId,
    pub undoes: ChangesetId,
    pub phase: RevertPhase,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RevertPhase {
    /// The person wants exactly this change.
    Requested {
        fold: Fold,
    },
    Verifying {
        fold: Fold,
    },
    Verified {
        fold: Fold,
    },
    Landing {
        fold: Fold,
    },
    Landed {
        commit: Oid,
    },
    /// The base moved meanwhile: it has to be folded and asked for again.
    BaseMoved,
    Failed {
        evidence: String,
    },
}

impl Revert {
    /// The change on its way, if it is on its way.
    pub fn fold(&self) -> Option<&Fold> {
        match &self.phase {
            RevertPhase::Requested { fold }
            | RevertPhase::Verifying { fold }
            | RevertPhase::Verified { fold }
            | RevertPhase::Landing { fold } => Some(fold),
            RevertPhase::Landed { .. } | RevertPhase::BaseMoved | RevertPhase::Failed { .. } => {
                None
            }
        }
    }

    pub fn has_landed(&self) -> bool {
        matches!(self.phase, RevertPhase::Landed { .. })
    }
}

impl State {
    pub fn revert(&self, changeset: &ChangesetId) -> Option<&Revert> {
        self.reverts.iter().find(|revert| revert.changeset == *changeset)
    }

    /// The landed changeset that undoes this one. An undoing that was undone
    /// itself does not count.
    pub fn reverted_by(&self, changeset: &ChangesetId) -> Option<&Revert> {
        self.reverts.iter().find(|revert| {
            revert.undoes == *changeset
                && revert.has_landed()
                && self.reverted_by(&revert.changeset).is_none()
        })
    }

    /// Whether an event may come after the end of a session, or while nobody
    /// runs it.
    pub(super) fn is_errand(&self, event: &Event) -> bool {
        match event {
            Event::PublishRequested { .. }
            | Event::RevertRequested { .. }
            | Event::SessionCleaned { .. } => true,
            Event::JointVerifyStarted { .. }
            | Event::JointVerifyFinished { .. }
            | Event::PublishStarted { .. }
            | Event::PublishFinished { .. } => self.errand.is_some(),
            Event::VerifyStarted { changeset }
            | Event::VerifyFinished { changeset, .. }
            | Event::LandStarted { changeset }
            | Event::LandFinished { changeset, .. } => self.revert(changeset).is_some(),
            _ => false,
        }
    }

    pub(super) fn request_publish(&mut self, commit: &Oid, joins: Option<&Oid>) {
        let commit = commit.clone();
        self.publishing = match joins {
            // Nobody has checked the two together.
            Some(_) => Publishing::Joined { commit },
            None => Publishing::Wanted { commit },
        };
        self.errand = Some(Errand::Publish);
    }

    pub(super) fn start_joint_verify(&mut self, commit: &Oid) -> Result<(), Refusal> {
        ensure!(
            self.publishing == Publishing::Joined { commit: commit.clone() },
            "that commit does not wait to be checked"
        );
        self.publishing = Publishing::Checking { commit: commit.clone() };
        Ok(())
    }

    pub(super) fn finish_joint_verify(
        &mut self,
        commit: &Oid,
        result: &VerifyResult,
    ) -> Result<(), Refusal> {
        ensure!(
            self.publishing == Publishing::Checking { commit: commit.clone() },
            "that commit is not being checked"
        );
        let commit = commit.clone();
        match result {
            VerifyResult::Passed | VerifyResult::PassedOnRerun | VerifyResult::NotConfigured => {
                self.publishing = Publishing::Wanted { commit };
            }
            VerifyResult::Failed { evidence, .. } => {
                let reason = format!(
                    "the base branch moved, and with it the landed work does not pass \
                     `merge.verify`: {evidence}"
                );
                self.publishing = Publishing::Waiting { commit, reason };
                self.errand = None;
            }
        }
        Ok(())
    }

    pub(super) fn request_revert(
        &mut self,
        changeset: &ChangesetId,
        undoes: &ChangesetId,
        fold: &Fold,
    ) -> Result<(), Refusal> {
        ensure!(matches!(self.stage, Stage::Ended(_)), "the session can still go on");
        ensure!(self.merging.get(changeset).is_none(), "`{changeset}` is another changeset");
        ensure!(self.has_landed(undoes), "`{undoes}` has not landed");
        if let Some(by) = self.reverted_by(undoes) {
            return Err(format!("`{}` took `{undoes}` back already", by.changeset));
        }
        let landed = self.revert(changeset).is_some_and(Revert::has_landed);
        ensure!(!landed, "`{changeset}` has landed already");
        self.reverts.retain(|revert| revert.changeset != *changeset);
        self.reverts.push(Revert {
            changeset: changeset.clone(),
            undoes: undoes.clone(),
            phase: RevertPhase::Requested { fold: fold.clone() },
        });
        self.errand = Some(Errand::Revert { changeset: changeset.clone() });
        Ok(())
    }

    pub(super) fn start_revert_verify(&mut self, id: &ChangesetId) -> Result<(), Refusal> {
        let revert = self.revert_mut(id)?;
        let RevertPhase::Requested { fold } = revert.phase.clone() else {
            return Err("it is not folded".into());
        };
        revert.phase = RevertPhase::Verifying { fold };
        Ok(())
    }

    pub(super) fn finish_revert_verify(
        &mut self,
        id: &ChangesetId,
        result: &VerifyResult,
    ) -> Result<(), Refusal> {
        let revert = self.revert_mut(id)?;
        let RevertPhase::Verifying { fold } = revert.phase.clone() else {
            return Err("it is not being verified".into());
        };
        match result {
            VerifyResult::Passed | VerifyResult::PassedOnRerun | VerifyResult::NotConfigured => {
                revert.phase = RevertPhase::Verified { fold };
            }
            VerifyResult::Failed { evidence, .. } => {
                revert.phase = RevertPhase::Failed { evidence: evidence.clone() };
                self.errand = None;
            }
        }
        Ok(())
    }

    pub(super) fn start_revert_land(&mut self, id: &ChangesetId) -> Result<(), Refusal> {
        let revert = self.revert_mut(id)?;
        let RevertPhase::Verified { fold } = revert.phase.clone() else {
            return Err("it is not verified".into());
        };
        revert.phase = RevertPhase::Landing { fold };
        Ok(())
    }

    pub(super) fn finish_revert_land(
        &mut self,
        id: &ChangesetId,
        result: &LandResult,
    ) -> Result<(), Refusal> {
        let publish = self.rules.publish;
        let revert = self.revert_mut(id)?;
        let RevertPhase::Landing { fold } = revert.phase.clone() else {
            return Err("it is not landing".into());
        };
        match result {
            LandResult::BaseMoved => {
                revert.phase = RevertPhase::BaseMoved;
                self.errand = None;
            }
            LandResult::Landed => {
                revert.phase = RevertPhase::Landed { commit: fold.commit.clone() };
                self.errand = publish.then(|| Errand::Revert { changeset: id.clone() });
                if publish {
                    self.publishing = Publishing::Wanted { commit: fold.commit };
                }
            }
        }
        Ok(())
    }

    /// Whether a changeset of this session landed, undone since or not.
    pub fn has_landed(&self, changeset: &ChangesetId) -> bool {
        self.landed_changesets().any(|landed| landed == changeset)
    }

    /// Everything that landed; a changeset of several tasks comes several times.
    pub fn landed_changesets(&self) -> impl Iterator<Item = &ChangesetId> {
        let tasks = self.board.tasks().iter().filter_map(|task| match &task.phase {
            Phase::Merged { changeset, .. } => Some(changeset),
            _ => None,
        });
        let reverts = self.reverts.iter().filter(|revert| revert.has_landed());
        tasks.chain(reverts.map(|revert| &revert.changeset))
    }

    /// Whether an agent run may have left work that did not land. What nobody
    /// knows of may be such work too.
    pub fn may_hold_unlanded(&self, work: Option<&Work>) -> bool {
        match work {
            Some(Work::Develop { task, .. }) => self
                .board
                .get(task)
                .is_none_or(|task| !matches!(task.step(), Step::Merged | Step::Replaced)),
            Some(Work::Plan | Work::Validate { .. } | Work::Resolve { .. }) => false,
            None => true,
        }
    }

    /// Whether something landed that is not known to be on the base branch.
    pub fn has_unpublished(&self) -> bool {
        match self.publishing {
            Publishing::Nothing => self.landed_changesets().next().is_some(),
            Publishing::Published { .. } => false,
            Publishing::Wanted { .. }
            | Publishing::Joined { .. }
            | Publishing::Checking { .. }
            | Publishing::Running { .. }
            | Publishing::Waiting { .. } => true,
        }
    }

    fn revert_mut(&mut self, id: &ChangesetId) -> Result<&mut Revert, Refusal> {
        let found = self.reverts.iter_mut().find(|revert| revert.changeset == *id);
        found.ok_or_else(|| format!("nothing is undone as `{id}`"))
    }
}
