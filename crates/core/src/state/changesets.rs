//! Changesets on their way from validated tasks to the base branch.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::event::{
    Deferral, FoldResult, LandResult, PlannedChangeset, PublishResult, VerifyResult, Wave,
};
use crate::hook::Occasion;
use crate::ids::{ChangesetId, Oid, TaskId};

use super::merging::{Changeset, ChangesetPhase, Checked, Publishing};
use super::task::{HistoryResult, Phase};
use super::{Refusal, Stage, State, ensure};

impl State {
    pub(super) fn plan_merge(&mut self, planned: &[PlannedChangeset]) -> Result<(), Refusal> {
        ensure!(
            matches!(self.stage, Stage::Wave(Wave::Development | Wave::Validation)),
            "a merge follows development and validation"
        );
        ensure!(!planned.is_empty(), "there is nothing to merge");
        ensure!(self.crew.live().is_empty(), "agents are still at work");
        let mut seen = BTreeSet::new();
        for changeset in planned {
            ensure!(seen.insert(changeset.id.as_str()), "`{}` comes twice", changeset.id);
        }
        let mut seen = BTreeSet::new();
        for task in planned.iter().flat_map(|changeset| &changeset.tasks) {
            ensure!(seen.insert(task), "`{task}` is in two changesets");
            self.ensure_validated(task)?;
        }
        self.merging.changesets = planned.iter().map(Changeset::new).collect();
        self.board.set_developing(false);
        self.stage = Stage::Wave(Wave::Merge);
        Ok(())
    }

    fn ensure_validated(&self, task: &TaskId) -> Result<(), Refusal> {
        let place = self.place(task)?;
        ensure!(
            matches!(self.board.task(place).phase, Phase::Validated { .. }),
            "`{task}` is not validated"
        );
        Ok(())
    }

    fn changeset_mut(&mut self, id: &ChangesetId) -> Result<&mut Changeset, Refusal> {
        self.merging.get_mut(id).ok_or_else(|| format!("there is no changeset `{id}`"))
    }

    pub(super) fn start_fold(&mut self, id: &ChangesetId, tasks: &[TaskId]) -> Result<(), Refusal> {
        ensure!(!tasks.is_empty(), "there is nothing to fold");
        for task in tasks {
            self.ensure_validated(task)?;
        }
        let changeset = self.changeset_mut(id)?;
        ensure!(changeset.phase == ChangesetPhase::Planned, "it is not waiting to be folded");
        changeset.tasks = tasks.to_vec();
        changeset.phase = ChangesetPhase::Folding;
        Ok(())
    }

    pub(super) fn finish_fold(
        &mut self,
        id: &ChangesetId,
        result: &FoldResult,
    ) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        ensure!(changeset.phase == ChangesetPhase::Folding, "it is not being folded");
        changeset.phase = match result {
            FoldResult::Folded(fold) => ChangesetPhase::Folded { fold: fold.clone() },
            FoldResult::Conflict { files } => ChangesetPhase::Conflicted { files: files.clone() },
        };
        Ok(())
    }

    pub(super) fn start_verify(&mut self, id: &ChangesetId) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        let ChangesetPhase::Folded { fold } = changeset.phase.clone() else {
            return Err("it is not folded".into());
        };
        changeset.phase = ChangesetPhase::Verifying { fold };
        Ok(())
    }

    pub(super) fn finish_verify(
        &mut self,
        at: Timestamp,
        id: &ChangesetId,
        result: &VerifyResult,
        commands: &[String],
    ) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        let ChangesetPhase::Verifying { fold } = changeset.phase.clone() else {
            return Err("it is not being verified".into());
        };
        match result {
            VerifyResult::Passed | VerifyResult::PassedOnRerun | VerifyResult::NotConfigured => {
                let (result, commands) = (result.clone(), commands.to_vec());
                changeset.verified(fold, Checked { result, commands });
            }
            VerifyResult::Failed { culprit: Some(culprit), evidence } => {
                ensure!(changeset.tasks.contains(culprit), "`{culprit}` is not part of it");
                // The rest goes on without the guilty one.
                changeset.phase = ChangesetPhase::Planned;
                let place = self.place(culprit)?;
                self.send_back(at, place, HistoryResult::VerifyFailed, evidence.clone());
            }
            VerifyResult::Failed { culprit: None, evidence } => {
                self.return_changeset(at, id, HistoryResult::VerifyFailed, evidence)?;
            }
        }
        Ok(())
    }

    /// Sends a whole changeset back, all its tasks with it.
    pub(super) fn return_changeset(
        &mut self,
        at: Timestamp,
        id: &ChangesetId,
        result: HistoryResult,
        reason: &str,
    ) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        changeset.phase = ChangesetPhase::Returned { reason: reason.to_owned() };
        for task in changeset.tasks.clone() {
            let place = self.place(&task)?;
            self.send_back(at, place, result, reason.to_owned());
        }
        Ok(())
    }

    pub(super) fn defer(&mut self, id: &ChangesetId, why: &Deferral) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        ensure!(
            matches!(changeset.phase, ChangesetPhase::Planned | ChangesetPhase::Conflicted { .. }),
            "it is past deferring"
        );
        changeset.phase = ChangesetPhase::Deferred { why: why.clone() };
        Ok(())
    }

    pub(super) fn start_land(&mut self, id: &ChangesetId) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        let ChangesetPhase::Approved { fold } = changeset.phase.clone() else {
            return Err("it is not approved".into());
        };
        ensure!(
            changeset.approved.as_ref() == Some(&fold.patch),
            "what was approved is another change"
        );
        changeset.phase = ChangesetPhase::Landing { fold };
        Ok(())
    }

    pub(super) fn finish_land(
        &mut self,
        at: Timestamp,
        id: &ChangesetId,
        result: &LandResult,
    ) -> Result<(), Refusal> {
        let changeset = self.changeset_mut(id)?;
        let ChangesetPhase::Landing { fold } = changeset.phase.clone() else {
            return Err("it is not landing".into());
        };
        if *result == LandResult::BaseMoved {
            changeset.base_moves += 1;
            changeset.phase = ChangesetPhase::Planned;
            return Ok(());
        }
        changeset.phase = ChangesetPhase::Landed { commit: fold.commit.clone() };
        for task in changeset.tasks.clone() {
            let place = self.place(&task)?;
            let merged = Phase::Merged { changeset: id.clone(), commit: fold.commit.clone() };
            self.board.set_phase(place, merged, at);
        }
        if self.rules.publish {
            self.publishing = Publishing::Wanted { commit: fold.commit };
        } else {
            let (changeset, commit) = (id.clone(), fold.commit);
            self.hook_due(Occasion::Landed { changeset, commit, published: false });
        }
        Ok(())
    }

    pub(super) fn start_publish(&mut self, commit: &Oid) -> Result<(), Refusal> {
        ensure!(
            self.publishing == Publishing::Wanted { commit: commit.clone() },
            "that commit is not waiting to be published"
        );
        self.publishing = Publishing::Running { commit: commit.clone() };
        Ok(())
    }

    pub(super) fn finish_publish(
        &mut self,
        commit: &Oid,
        result: &PublishResult,
    ) -> Result<(), Refusal> {
        ensure!(
            self.publishing == Publishing::Running { commit: commit.clone() },
            "that commit is not being published"
        );
        self.publishing = match result {
            PublishResult::Published => Publishing::Published { commit: commit.clone() },
            PublishResult::Waiting { reason } => {
                Publishing::Waiting { commit: commit.clone(), reason: reason.clone() }
            }
        };
        self.errand = None;
        let landed =
            self.merging.changesets.iter().find(|changeset| {
                changeset.phase == ChangesetPhase::Landed { commit: commit.clone() }
            });
        if let Some(changeset) = landed.map(|changeset| changeset.planned.id.clone()) {
            let published = *result == PublishResult::Published;
            self.hook_due(Occasion::Landed { changeset, commit: commit.clone(), published });
        }
        Ok(())
    }
}
