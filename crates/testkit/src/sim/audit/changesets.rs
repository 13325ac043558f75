//! The auditor's book of changesets: what was checked, approved and landed.

use std::collections::BTreeMap;

use blueflame_core::event::{Deferral, FoldResult, LandResult, PlannedChangeset, VerifyResult};
use blueflame_core::ids::{ChangesetId, Oid, TaskId};
use blueflame_core::outcome::Fold;

use super::tasks::Tasks;
use super::{Blame, Chances, Finding, must};

#[derive(Clone, Debug)]
struct Entry {
    planned: PlannedChangeset,
    tasks: Vec<TaskId>,
    fold: Option<Fold>,
    conflicted: bool,
    verified: bool,
    approved_patch: Option<String>,
    /// The last word on it: landed, or the reason why not.
    settled: Option<&'static str>,
    base_moves: u32,
    mergers: Chances,
}

#[derive(Debug)]
pub struct Changesets {
    entries: BTreeMap<ChangesetId, Entry>,
    publish: bool,
    max_retries: u32,
    last_landed: Option<Oid>,
    publish_reported: Option<Oid>,
}

impl Changesets {
    pub fn new(publish: bool, max_retries: u32) -> Self {
        Changesets {
            entries: BTreeMap::new(),
            publish,
            max_retries,
            last_landed: None,
            publish_reported: None,
        }
    }

    fn entry(&mut self, id: &ChangesetId) -> Result<&mut Entry, Finding> {
        self.entries.get_mut(id).ok_or_else(|| format!("changeset {id} was never planned"))
    }

    pub fn new_cycle(&mut self) -> Result<(), Finding> {
        self.nothing_in_limbo()?;
        self.entries.clear();
        Ok(())
    }

    pub fn planned(&mut self, planned: &[PlannedChangeset], tasks: &Tasks) -> Result<(), Finding> {
        must!(!planned.is_empty(), "a merge of nothing");
        for (at, changeset) in planned.iter().enumerate() {
            for need in &changeset.needs {
                let before = planned[..at].iter().any(|earlier| earlier.id == *need);
                must!(before, "{} comes before {need}, which it needs", changeset.id);
            }
            for task in &changeset.tasks {
                must!(tasks.has_passed(task), "{task} is merged without having been validated");
                for need in tasks.needs(task).iter().filter(|need| !tasks.has_landed(need)) {
                    let there = changeset.tasks.contains(need)
                        || planned.iter().any(|other| {
                            changeset.needs.contains(&other.id) && other.tasks.contains(need)
                        });
                    must!(there, "{task} is merged without {need}");
                }
            }
            let entry = Entry {
                planned: changeset.clone(),
                tasks: changeset.tasks.clone(),
                fold: None,
                conflicted: false,
                verified: false,
                approved_patch: None,
                settled: None,
                base_moves: 0,
                mergers: Chances::default(),
            };
            must!(
                self.entries.insert(changeset.id.clone(), entry).is_none(),
                "{} is planned twice",
                changeset.id
            );
        }
        Ok(())
    }

    pub fn folding(
        &mut self,
        id: &ChangesetId,
        folded: &[TaskId],
        tasks: &Tasks,
    ) -> Result<(), Finding> {
        for need in &self.entry(id)?.planned.needs.clone() {
            must!(
                self.entry(need)?.settled == Some("landed"),
                "{id} is folded before {need} landed"
            );
        }
        for (at, task) in folded.iter().enumerate() {
            must!(tasks.has_passed(task), "{task} is folded without having been validated");
            for need in tasks.needs(task) {
                must!(
                    tasks.has_landed(need) || folded[..at].contains(need),
                    "{task} is folded before {need}"
                );
            }
        }
        let entry = self.entry(id)?;
        must!(entry.settled.is_none(), "{id} was settled and is folded again");
        entry.tasks = folded.to_vec();
        (entry.fold, entry.verified, entry.conflicted) = (None, false, false);
        Ok(())
    }

    pub fn folded(&mut self, id: &ChangesetId, result: &FoldResult) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        match result {
            FoldResult::Folded(fold) => entry.fold = Some(fold.clone()),
            FoldResult::Conflict { .. } => entry.conflicted = true,
        }
        Ok(())
    }

    pub fn resolving(&mut self, id: &ChangesetId) -> Result<(), Finding> {
        let retries = self.max_retries;
        let entry = self.entry(id)?;
        must!(entry.conflicted, "a merger for {id}, which has no conflict");
        must!(!entry.mergers.are_gone(retries), "one merger too many for {id}");
        Ok(())
    }

    pub fn wanting(&self, id: &ChangesetId) -> usize {
        self.entries.get(id).map_or(0, |entry| entry.mergers.wanting)
    }

    pub fn resolved(&mut self, id: &ChangesetId, fold: &Fold) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        entry.fold = Some(fold.clone());
        entry.conflicted = false;
        Ok(())
    }

    pub fn merger_failed(
        &mut self,
        id: &ChangesetId,
        blame: Blame,
        tasks: &mut Tasks,
    ) -> Result<(), Finding> {
        let retries = self.max_retries;
        let entry = self.entry(id)?;
        entry.mergers.lose(blame);
        if entry.mergers.are_gone(retries) { self.returned(id, tasks) } else { Ok(()) }
    }

    pub fn verified(
        &mut self,
        id: &ChangesetId,
        result: &VerifyResult,
        tasks: &mut Tasks,
    ) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        must!(entry.fold.is_some(), "{id} was verified without being folded");
        match result {
            VerifyResult::Passed | VerifyResult::PassedOnRerun | VerifyResult::NotConfigured => {
                entry.verified = true;
            }
            VerifyResult::Failed { culprit: Some(culprit), .. } => {
                entry.fold = None;
                tasks.sent_back(culprit)?;
            }
            VerifyResult::Failed { culprit: None, .. } => self.returned(id, tasks)?,
        }
        Ok(())
    }

    /// Rejected, or sent back on evidence: the tasks start afresh.
    pub fn returned(&mut self, id: &ChangesetId, tasks: &mut Tasks) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        entry.settled = Some("returned");
        for task in entry.tasks.clone() {
            tasks.sent_back(&task)?;
        }
        Ok(())
    }

    pub fn asked(&mut self, id: &ChangesetId) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        must!(entry.verified, "{id} was shown before it was verified");
        let patch = entry.fold.as_ref().map(|fold| &fold.patch);
        must!(patch != entry.approved_patch.as_ref(), "{id} was approved and is asked about again");
        Ok(())
    }

    pub fn approved(&mut self, id: &ChangesetId) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        entry.approved_patch = entry.fold.as_ref().map(|fold| fold.patch.clone());
        Ok(())
    }

    pub fn skipped(&mut self, id: &ChangesetId) -> Result<(), Finding> {
        self.entry(id)?.settled = Some("skipped");
        Ok(())
    }

    /// Deferring needs a reason that is true.
    pub fn deferred(
        &mut self,
        id: &ChangesetId,
        why: &Deferral,
        tasks: &Tasks,
    ) -> Result<(), Finding> {
        let entry = self.entry(id)?.clone();
        let holds = match why {
            Deferral::NeedsUnlanded(need) => {
                entry.planned.needs.contains(need)
                    && !matches!(self.entry(need)?.settled, None | Some("landed"))
            }
            Deferral::NothingLeft => !entry.tasks.iter().any(|task| tasks.has_passed(task)),
            Deferral::NoBudget => entry.conflicted,
            Deferral::BaseKeepsMoving => entry.base_moves >= 5,
        };
        must!(holds, "{id} was deferred because {why:?}, which is not so");
        self.entry(id)?.settled = Some("deferred");
        Ok(())
    }

    pub fn landing(&mut self, id: &ChangesetId, tasks: &Tasks) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        must!(entry.verified, "{id} lands without its tree having been verified");
        let patch = entry.fold.as_ref().map(|fold| &fold.patch);
        must!(
            patch.is_some() && patch == entry.approved_patch.as_ref(),
            "{id} lands without having been approved"
        );
        for task in &entry.tasks {
            must!(tasks.has_passed(task), "{task} lands without having been validated");
        }
        Ok(())
    }

    pub fn landed(
        &mut self,
        id: &ChangesetId,
        result: &LandResult,
        tasks: &mut Tasks,
    ) -> Result<(), Finding> {
        let entry = self.entry(id)?;
        if *result == LandResult::BaseMoved {
            entry.base_moves += 1;
            (entry.fold, entry.verified) = (None, false);
            return Ok(());
        }
        entry.settled = Some("landed");
        let landed = entry.tasks.clone();
        self.last_landed = entry.fold.as_ref().map(|fold| fold.commit.clone());
        for task in landed {
            tasks.landed(&task)?;
        }
        Ok(())
    }

    pub fn publishing(&mut self, commit: &Oid) -> Result<(), Finding> {
        must!(self.publish, "published although the work was to stay on its branch");
        must!(self.last_landed.as_ref() == Some(commit), "published what did not land last");
        Ok(())
    }

    pub fn published(&mut self, commit: &Oid) {
        self.publish_reported = Some(commit.clone());
    }

    /// Approved means landed, or there is a reason; landed means published, or
    /// there is a reason.
    pub fn nothing_in_limbo(&self) -> Result<(), Finding> {
        for (id, entry) in &self.entries {
            must!(entry.settled.is_some(), "changeset {id} is left in limbo");
        }
        if self.publish {
            must!(
                self.last_landed == self.publish_reported,
                "what landed last was never published"
            );
        }
        Ok(())
    }
}
