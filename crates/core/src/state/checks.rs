//! What the orchestrator finds out about a task's work by itself.

use jiff::Timestamp;

use crate::ids::TaskId;
use crate::outcome::{Counts, Next, Outcome};

use super::task::{HistoryResult, Phase};
use super::{Refusal, State, ensure};

impl State {
    pub(super) fn start_inspection(&mut self, at: Timestamp, task: &TaskId) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let Phase::Built { commit } = self.board.task(place).phase.clone() else {
            return Err(format!("`{task}` has nothing new to inspect"));
        };
        self.board.set_phase(place, Phase::Inspecting { commit }, at);
        Ok(())
    }

    pub(super) fn finish_inspection(
        &mut self,
        at: Timestamp,
        task: &TaskId,
        violations: &[String],
    ) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let Phase::Inspecting { commit } = self.board.task(place).phase.clone() else {
            return Err(format!("`{task}` is not being inspected"));
        };
        // Work whose ground is gone is superseded, whatever was found in it.
        if violations.is_empty() || self.board.task(place).is_doomed() {
            self.board.task_mut(place).forget_validators();
            self.board.set_phase(place, Phase::Done { commit }, at);
            return Ok(());
        }
        let outcome = Outcome::Violated { violations: violations.to_vec() };
        if let Some(consequence) = outcome.consequence() {
            self.attempt_failed(at, place, None, &consequence);
        }
        Ok(())
    }

    pub(super) fn start_acceptance(&mut self, at: Timestamp, task: &TaskId) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let Phase::Done { commit } = self.board.task(place).phase.clone() else {
            return Err(format!("`{task}` is not ready for acceptance"));
        };
        self.board.set_phase(place, Phase::Accepting { commit }, at);
        Ok(())
    }

    /// Commands that fail are evidence enough: no validator is paid to say
    /// so. The worker tries again with the output at hand, and when its
    /// retries are used up a person decides.
    pub(super) fn finish_acceptance(
        &mut self,
        at: Timestamp,
        task: &TaskId,
        failures: &[String],
    ) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let Phase::Accepting { commit } = self.board.task(place).phase.clone() else {
            return Err(format!("`{task}` is not in acceptance"));
        };
        if failures.is_empty() || self.board.task(place).is_doomed() {
            self.board.set_phase(place, Phase::Accepted { commit }, at);
            return Ok(());
        }
        let notes = failures.join("\n");
        let max_retries = self.rules.max_retries;
        let next = match self.board.task_mut(place).tally.count(Counts::Retry, max_retries) {
            Next::Retry => {
                self.board.note(place, at, HistoryResult::AcceptanceFailed, notes);
                self.board.again()
            }
            Next::GiveUp => Phase::Disputed { commit, notes },
        };
        self.board.set_phase(place, next, at);
        Ok(())
    }

    /// What is known to be wrong with a claim on a task's files, if anything.
    pub(super) fn check_locks_free(&self, task: &TaskId) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let locks = &self.board.task(place).spec.file_locks;
        let taken = self
            .board
            .held_locks()
            .into_iter()
            .find(|held| locks.iter().any(|lock| lock.overlaps(held)));
        ensure!(taken.is_none(), "its files are taken by another task");
        Ok(())
    }
}
