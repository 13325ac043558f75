//! The auditor's book of tasks: files held, chances used, work that is sound.

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::ids::{ExecutorName, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::rules::WaveMode;

use super::{Blame, Chances, Finding, must};

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude one another")]
struct Entry {
    spec: TaskSpec,
    attempts: u32,
    busy: bool,
    built: bool,
    /// Inspected and not found wanting.
    sound: bool,
    accepted: bool,
    passed: bool,
    /// Its commands failed once too often: a person decides.
    disputed: bool,
    /// A validator failed it.
    failed_review: bool,
    landed: bool,
    /// Failed for good, or dropped by the person.
    lost: bool,
    chances: Chances,
    validators: Chances,
}

#[derive(Debug)]
pub struct Tasks {
    entries: BTreeMap<TaskId, Entry>,
    attempts_before: BTreeMap<TaskId, u32>,
    max_retries: u32,
}

impl Tasks {
    pub fn new(max_retries: u32) -> Self {
        Tasks { entries: BTreeMap::new(), attempts_before: BTreeMap::new(), max_retries }
    }

    /// A new plan: what landed stays, everything else is as the plan says.
    pub fn plan(&mut self, plan: Plan) {
        for (id, entry) in &self.entries {
            self.attempts_before.insert(id.clone(), entry.attempts);
        }
        let kept: BTreeMap<TaskId, Entry> = std::mem::take(&mut self.entries).into_iter().collect();
        for spec in plan.tasks {
            let same = kept.get(&spec.id).filter(|old| old.spec == spec && old.passed);
            let entry = match same {
                Some(old) => old.clone(),
                None => Entry {
                    attempts: self.attempts_before.get(&spec.id).copied().unwrap_or(0),
                    busy: false,
                    built: false,
                    sound: false,
                    accepted: false,
                    passed: false,
                    disputed: false,
                    failed_review: false,
                    landed: false,
                    lost: false,
                    chances: Chances::default(),
                    validators: Chances::default(),
                    spec: spec.clone(),
                },
            };
            self.entries.insert(spec.id.clone(), entry);
        }
        self.entries.extend(kept.into_iter().filter(|(_, entry)| entry.landed));
        // Kept work counts only if what it was built on was kept as well.
        let unsound: Vec<TaskId> = self
            .entries
            .iter()
            .filter(|(_, entry)| !entry.sound)
            .map(|(id, _)| id.clone())
            .collect();
        for id in unsound {
            self.spoil_dependents(&id);
        }
    }

    fn entry(&mut self, task: &TaskId) -> Result<&mut Entry, Finding> {
        self.entries.get_mut(task).ok_or_else(|| format!("{task} is in no plan"))
    }

    pub fn working(&mut self, task: &TaskId, attempt: u32, waves: WaveMode) -> Result<(), Finding> {
        let entry = self.entry(task)?.clone();
        must!(!entry.busy && !entry.landed, "{task} was started twice");
        must!(!entry.lost, "{task} was given up and started all the same");
        must!(!entry.chances.are_gone(self.max_retries), "{task} has no chances left");
        must!(attempt == entry.attempts + 1, "attempt {attempt} follows {}", entry.attempts);
        for need in &entry.spec.dependencies {
            let needed = self.entries.get(need).ok_or_else(|| format!("{need} is unknown"))?;
            let there = needed.landed
                || match waves {
                    WaveMode::Strict => needed.sound,
                    WaveMode::Pipelined => needed.passed,
                };
            must!(there, "{task} was started before {need} was done");
        }
        for (other, busy) in self.entries.iter().filter(|(_, entry)| entry.busy) {
            let clash = entry
                .spec
                .file_locks
                .iter()
                .any(|ours| busy.spec.file_locks.iter().any(|theirs| same_file(ours, theirs)));
            must!(!clash, "{task} and {other} own the same files");
        }
        self.spoil(task)?;
        let entry = self.entry(task)?;
        entry.busy = true;
        entry.attempts = attempt;
        Ok(())
    }

    pub fn built(&mut self, task: &TaskId) -> Result<(), Finding> {
        let entry = self.entry(task)?;
        entry.busy = false;
        entry.built = true;
        Ok(())
    }

    pub fn attempt_failed(&mut self, task: &TaskId, blame: Blame) -> Result<(), Finding> {
        let retries = self.max_retries;
        let entry = self.entry(task)?;
        entry.busy = false;
        entry.chances.lose(blame);
        entry.lost = entry.chances.are_gone(retries);
        Ok(())
    }

    pub fn inspected(&mut self, task: &TaskId, clean: bool) -> Result<(), Finding> {
        must!(self.entry(task)?.built, "{task} was inspected with nothing built");
        if !clean {
            return self.attempt_failed(task, Blame::Agent);
        }
        let entry = self.entry(task)?;
        entry.sound = true;
        entry.validators = Chances::default();
        Ok(())
    }

    pub fn accepted(&mut self, task: &TaskId, passed: bool) -> Result<(), Finding> {
        let retries = self.max_retries;
        let entry = self.entry(task)?;
        must!(entry.built, "{task} was accepted with nothing built");
        if !entry.sound {
            // What it was built on is gone: whatever was found is moot.
            return Ok(());
        }
        if passed {
            entry.accepted = true;
        } else {
            entry.chances.lose(Blame::Agent);
            let gone = entry.chances.are_gone(retries);
            self.spoil(task)?;
            self.entry(task)?.disputed = gone;
        }
        Ok(())
    }

    pub fn validating(&mut self, task: &TaskId) -> Result<(), Finding> {
        let entry = self.entry(task)?;
        must!(entry.sound && entry.accepted, "{task} was validated before it was accepted");
        must!(!entry.validators.are_gone(1), "{task} had its two validators");
        Ok(())
    }

    pub fn validator_failed(&mut self, task: &TaskId, blame: Blame) -> Result<(), Finding> {
        let validators = &mut self.entry(task)?.validators;
        validators.lose(blame);
        // Whatever was wrong with it, the next one should be another one.
        validators.wanting += usize::from(blame == Blame::Agent);
        Ok(())
    }

    pub fn validator_retried(&mut self, task: &TaskId) -> Result<(), Finding> {
        self.entry(task)?.validators = Chances::default();
        Ok(())
    }

    pub fn judged(&mut self, task: &TaskId, pass: bool) -> Result<(), Finding> {
        let entry = self.entry(task)?;
        // What it was built on may have been sent back meanwhile.
        entry.passed = pass && entry.sound;
        entry.failed_review = !pass && entry.sound;
        if !pass {
            // Whatever a person says of it, nothing is built on it as it is.
            self.spoil_dependents(task);
        }
        Ok(())
    }

    /// How many executors were found wanting, of how many there are.
    pub fn executors(&self, task: &TaskId, configured: &[ExecutorName]) -> (usize, usize) {
        let Some(entry) = self.entries.get(task) else { return (0, 0) };
        let extra = entry.spec.executor.as_ref().is_some_and(|own| !configured.contains(own));
        (entry.chances.wanting, configured.len() + usize::from(extra))
    }

    pub fn validators_wanting(&self, task: &TaskId) -> usize {
        self.entries.get(task).map_or(0, |entry| entry.validators.wanting)
    }

    pub fn asked_about_dispute(&self, task: &TaskId) -> Result<(), Finding> {
        let entry = self.entries.get(task).ok_or("asked about nothing")?;
        must!(entry.disputed || entry.failed_review, "asked about {task}, which nobody disputes");
        Ok(())
    }

    pub fn asked_about_validators(&self, task: &TaskId) -> Result<(), Finding> {
        let entry = self.entries.get(task).ok_or("asked about nothing")?;
        must!(entry.validators.are_gone(1), "asked about {task} with validators left to try");
        Ok(())
    }

    pub fn dropped(&mut self, task: &TaskId) -> Result<(), Finding> {
        self.given_up(task)
    }

    pub fn given_up(&mut self, task: &TaskId) -> Result<(), Finding> {
        self.spoil(task)?;
        self.entry(task)?.lost = true;
        Ok(())
    }

    pub fn edited(&mut self, task: &TaskId, locks: Option<&[LockPath]>) -> Result<(), Finding> {
        if let Some(locks) = locks {
            self.entry(task)?.spec.file_locks = locks.to_vec();
        }
        self.entry(task)?.spec.description = "said better".into();
        Ok(())
    }

    /// A person or the evidence sent it back: it starts afresh.
    pub fn sent_back(&mut self, task: &TaskId) -> Result<(), Finding> {
        self.spoil(task)?;
        let entry = self.entry(task)?;
        must!(!entry.landed, "{task} was sent back after it landed");
        entry.lost = false;
        entry.chances = Chances::default();
        entry.validators = Chances::default();
        Ok(())
    }

    pub fn landed(&mut self, task: &TaskId) -> Result<(), Finding> {
        let entry = self.entry(task)?;
        must!(entry.passed, "{task} landed without having been validated");
        must!(!entry.landed, "{task} landed twice");
        entry.landed = true;
        Ok(())
    }

    pub fn has_passed(&self, task: &TaskId) -> bool {
        self.entries.get(task).is_some_and(|entry| entry.passed && !entry.landed)
    }

    pub fn has_landed(&self, task: &TaskId) -> bool {
        self.entries.get(task).is_some_and(|entry| entry.landed)
    }

    pub fn needs(&self, task: &TaskId) -> &[TaskId] {
        self.entries.get(task).map_or(&[], |entry| &entry.spec.dependencies)
    }

    /// The work on a task, and all work built on it, is worth nothing now.
    fn spoil(&mut self, task: &TaskId) -> Result<(), Finding> {
        let entry = self.entry(task)?;
        (entry.built, entry.sound, entry.accepted, entry.passed) = (false, false, false, false);
        (entry.disputed, entry.failed_review) = (false, false);
        self.spoil_dependents(task);
        Ok(())
    }

    fn spoil_dependents(&mut self, task: &TaskId) {
        let mut spoilt = vec![task.clone()];
        while let Some(cause) = spoilt.pop() {
            for (id, entry) in &mut self.entries {
                let depends = entry.spec.dependencies.contains(&cause) && !entry.landed;
                let worked_on = entry.sound || entry.accepted || entry.passed || entry.disputed;
                if depends && worked_on {
                    (entry.sound, entry.accepted, entry.passed) = (false, false, false);
                    (entry.disputed, entry.failed_review) = (false, false);
                    entry.chances = Chances::default();
                    spoilt.push(id.clone());
                }
            }
        }
    }

    /// Tasks that cannot go on, because they or something they need was lost.
    fn out_of_reach(&self) -> BTreeSet<&TaskId> {
        let mut out: BTreeSet<&TaskId> =
            self.entries.iter().filter(|(_, entry)| entry.lost).map(|(id, _)| id).collect();
        loop {
            let more: Vec<&TaskId> = self
                .entries
                .iter()
                .filter(|(id, entry)| {
                    !entry.landed
                        && !out.contains(id)
                        && entry.spec.dependencies.iter().any(|need| out.contains(need))
                })
                .map(|(id, _)| id)
                .collect();
            if more.is_empty() {
                return out;
            }
            out.extend(more);
        }
    }

    pub fn anything_open(&self) -> bool {
        let out = self.out_of_reach();
        self.entries.iter().any(|(id, entry)| !entry.landed && !out.contains(id))
    }

    pub fn anything_lost(&self) -> bool {
        self.entries.values().any(|entry| entry.lost)
    }
}

/// The same file, or one a directory above the other.
fn same_file(one: &LockPath, other: &LockPath) -> bool {
    let (one, other) = (format!("{one}/"), format!("{other}/"));
    one.starts_with(&other) || other.starts_with(&one)
}
