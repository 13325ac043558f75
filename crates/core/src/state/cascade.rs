//! What the fate of one task means for the others.
//!
//! Every change of a phase goes through [`Board::set_phase`] and is carried on
//! to dependents: work built on something that is done again is superseded,
//! what needs a failed task is blocked, and unblocked when the cause gets
//! another chance.

use jiff::Timestamp;

use crate::ids::TaskId;
use crate::rules::WaveMode;

use super::board::{Board, Place};
use super::task::{HistoryResult, Phase};

impl Board {
    /// Whether tasks that need this one may build on it. Work stands only as
    /// firmly as what it was built on. When tasks are validated as they come,
    /// it pays to wait for that: nothing is then built on work that a
    /// validator turns down.
    pub(super) fn is_met(&self, place: Place) -> bool {
        let task = &self.tasks[place];
        match task.phase {
            Phase::Merged { .. } => true,
            Phase::Validated { .. } => task.unmet == 0,
            Phase::Done { .. }
            | Phase::Accepting { .. }
            | Phase::Accepted { .. }
            | Phase::Validating { .. }
            | Phase::Unjudged { .. } => self.mode == WaveMode::Strict && task.unmet == 0,
            // Whatever the person answers, disputed work is not built on.
            Phase::Disputed { .. }
            | Phase::Pending
            | Phase::Requeued
            | Phase::Working { .. }
            | Phase::Built { .. }
            | Phase::Inspecting { .. }
            | Phase::Failed { .. }
            | Phase::Blocked { .. }
            | Phase::Dropped { .. } => false,
        }
    }

    /// Where a task goes that has to be done again without anyone's decision.
    pub(super) fn again(&self) -> Phase {
        if self.developing { Phase::Pending } else { Phase::Requeued }
    }

    /// Moves a task on, and everything that its move entails.
    pub(super) fn set_phase(&mut self, place: Place, phase: Phase, at: Timestamp) {
        let affected = self.change(place, phase);
        self.react(affected, at);
    }

    /// Lets tasks find out how they stand, and those their changes affect.
    pub(super) fn react(&mut self, mut affected: Vec<Place>, at: Timestamp) {
        while let Some(place) = affected.pop() {
            let Some(next) = self.reaction(place) else { continue };
            if self.tasks[place].phase.commit().is_some() {
                let why = "what it was built on is done again";
                self.note(place, at, HistoryResult::Superseded, why);
                self.tasks[place].start_afresh();
            }
            affected.extend(self.change(place, next));
        }
    }

    /// Changes one phase, brings all counts that hang on it up to date, and
    /// lists the tasks that may have to react.
    fn change(&mut self, place: Place, phase: Phase) -> Vec<Place> {
        let was_hopeless = self.tasks[place].phase.is_hopeless();
        self.update(place, |task| task.phase = phase);
        self.count_hopeless(place, was_hopeless);
        let mut affected = self.needed_by[place].clone();
        affected.push(place);
        let mut unsettled = vec![place];
        while let Some(place) = unsettled.pop() {
            let met = self.is_met(place);
            if met == self.tasks[place].met {
                continue;
            }
            self.tasks[place].met = met;
            for at in 0..self.needed_by[place].len() {
                let dependent = self.needed_by[place][at];
                self.update(dependent, |task| {
                    if met {
                        task.unmet = task.unmet.saturating_sub(1);
                    } else {
                        task.unmet += 1;
                        // Unfinished work has what it was built on in it.
                        task.snapshot = None;
                    }
                });
                unsettled.push(dependent);
                affected.push(dependent);
            }
        }
        affected
    }

    /// Tells the dependents of a task that there is hope for it again, or that
    /// there is none any more.
    fn count_hopeless(&mut self, place: Place, was_hopeless: bool) {
        let is_hopeless = self.tasks[place].phase.is_hopeless();
        if is_hopeless == was_hopeless {
            return;
        }
        for at in 0..self.needed_by[place].len() {
            let count = &mut self.tasks[self.needed_by[place][at]].hopeless_needs;
            *count = if is_hopeless { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// What a task becomes because of how its dependencies stand now.
    fn reaction(&self, place: Place) -> Option<Phase> {
        let task = &self.tasks[place];
        match &task.phase {
            Phase::Pending | Phase::Requeued => {
                self.hopeless_need(place).map(|by| Phase::Blocked { by })
            }
            Phase::Blocked { by } => match self.hopeless_need(place) {
                None => Some(self.again()),
                Some(cause) => (cause != *by).then_some(Phase::Blocked { by: cause }),
            },
            Phase::Built { .. }
            | Phase::Done { .. }
            | Phase::Accepted { .. }
            | Phase::Disputed { .. }
            | Phase::Unjudged { .. }
            | Phase::Validated { .. } => (task.unmet > 0).then(|| self.again()),
            // Someone is busy with the first four, and their end asks again;
            // the others are beyond the reach of their dependencies.
            Phase::Working { .. }
            | Phase::Inspecting { .. }
            | Phase::Accepting { .. }
            | Phase::Validating { .. }
            | Phase::Merged { .. }
            | Phase::Failed { .. }
            | Phase::Dropped { .. } => None,
        }
    }

    /// The failed or dropped task at the root of a dependency's trouble.
    fn hopeless_need(&self, place: Place) -> Option<TaskId> {
        // Almost always there is none, and a task may have very many needs.
        if self.tasks[place].hopeless_needs == 0 {
            return None;
        }
        self.needs[place].iter().find_map(|&need| match &self.tasks[need].phase {
            Phase::Blocked { by } => Some(by.clone()),
            phase if phase.is_hopeless() => Some(self.tasks[need].spec.id.clone()),
            _ => None,
        })
    }

    /// A new cycle: everything that was sent back takes part again.
    pub(super) fn readmit_requeued(&mut self, at: Timestamp) {
        for place in self.places_at(super::task::Step::Requeued) {
            self.set_phase(place, Phase::Pending, at);
        }
    }
}
