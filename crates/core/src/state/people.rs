//! Questions and answers.

use jiff::Timestamp;

use crate::event::{End, Wave};
use crate::gate::{
    Answer, BudgetAnswer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer, ValidationAnswer,
    ValidatorAnswer,
};
use crate::ids::{ChangesetId, TaskId};
use crate::outcome::Tally;

use super::board::Place;
use super::merging::ChangesetPhase;
use super::task::{Dropped, HistoryResult, Judge, Phase};
use super::{PLAN_REJECTIONS, PlanStep, Planning, Refusal, Stage, State, ensure};

impl State {
    pub(super) fn open_gate(&mut self, gate: &Gate) -> Result<(), Refusal> {
        ensure!(self.gate.is_none(), "another question is open");
        ensure!(self.is_open_question(gate), "there is no such question now");
        self.gate = Some(gate.clone());
        Ok(())
    }

    pub(super) fn withdraw_gate(&mut self, gate: &Gate) -> Result<(), Refusal> {
        ensure!(self.gate.as_ref() == Some(gate), "that question is not open");
        self.gate = None;
        Ok(())
    }

    fn is_open_question(&self, gate: &Gate) -> bool {
        match gate {
            Gate::Plan => matches!(self.planning.step, PlanStep::Proposed(_)),
            Gate::ValidationFailed(task) => self
                .board
                .get(task)
                .is_some_and(|task| matches!(task.phase, Phase::Disputed { .. })),
            Gate::ValidatorFailed(task) => self
                .board
                .get(task)
                .is_some_and(|task| matches!(task.phase, Phase::Unjudged { .. })),
            Gate::Changeset(id) => self.merging.get(id).is_some_and(|changeset| {
                matches!(changeset.phase, ChangesetPhase::Verified { .. })
            }),
            Gate::Budget => self.crew.room().is_empty() && !self.crew.is_closed(),
            Gate::Session => matches!(self.stage, Stage::Wave(_)) && self.crew.live().is_empty(),
        }
    }

    pub(super) fn answer_gate(
        &mut self,
        at: Timestamp,
        gate: &Gate,
        answer: &Answer,
    ) -> Result<(), Refusal> {
        ensure!(self.gate.as_ref() == Some(gate), "that question is not open");
        match (gate, answer) {
            (Gate::Plan, Answer::Plan(answer)) => self.answer_plan(at, answer)?,
            (Gate::ValidationFailed(task), Answer::ValidationFailed(answer)) => {
                self.answer_validation(at, task, answer)?;
            }
            (Gate::ValidatorFailed(task), Answer::ValidatorFailed(answer)) => {
                self.answer_validator(at, task, answer)?;
            }
            (Gate::Changeset(id), Answer::Changeset(answer)) => {
                self.answer_changeset(at, id, answer)?;
            }
            (Gate::Budget, Answer::Budget(answer)) => self.answer_budget(answer)?,
            (Gate::Session, Answer::Session(answer)) => self.answer_session(at, answer)?,
            _ => return Err("that is the answer to another question".into()),
        }
        self.gate = None;
        Ok(())
    }

    fn answer_plan(&mut self, at: Timestamp, answer: &PlanAnswer) -> Result<(), Refusal> {
        let PlanStep::Proposed(proposed) = &self.planning.step else {
            return Err("no plan is proposed".into());
        };
        match answer {
            PlanAnswer::Approve => {
                self.board = self.board.put_plan(proposed, at).map_err(|bad| bad.to_string())?;
                self.planning.step = PlanStep::Approved;
                self.stage = Stage::CycleDue;
                self.plan_was_approved();
            }
            PlanAnswer::Quit => self.stage = Stage::Closing(End::PlanDeclined),
            PlanAnswer::Replan { notes } => {
                self.planning.rejections += 1;
                self.planning.note(notes);
                self.planning.tally = Tally::default();
                self.planning.executors_failed = 0;
                self.planning.step = PlanStep::Wanted;
                if self.planning.rejections >= PLAN_REJECTIONS {
                    self.stage = Stage::Closing(End::PlanRejectedTooOften);
                }
            }
            PlanAnswer::Edit { plan } => {
                self.board.put_plan(plan, at).map_err(|bad| bad.to_string())?;
                self.planning.step = PlanStep::Proposed(plan.clone());
            }
        }
        Ok(())
    }

    fn answer_validation(
        &mut self,
        at: Timestamp,
        task: &TaskId,
        answer: &ValidationAnswer,
    ) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let Phase::Disputed { notes: finding, .. } = self.board.task(place).phase.clone() else {
            return Err(format!("`{task}` is not in dispute"));
        };
        match answer {
            ValidationAnswer::Requeue { notes } => {
                let told = if notes.is_empty() {
                    finding
                } else {
                    format!("{finding}\nthe person: {notes}")
                };
                self.send_back(at, place, HistoryResult::ValidationFailed, told);
            }
            ValidationAnswer::Edit { description, file_locks } => {
                ensure!(
                    file_locks.as_ref().is_none_or(|locks| !locks.is_empty()),
                    "a task needs at least one file of its own"
                );
                let spec = &mut self.board.task_mut(place).spec;
                if let Some(description) = description {
                    spec.description.clone_from(description);
                }
                if let Some(file_locks) = file_locks {
                    spec.file_locks.clone_from(file_locks);
                }
                self.send_back(at, place, HistoryResult::ValidationFailed, finding);
            }
            ValidationAnswer::Drop => {
                self.board.note(place, at, HistoryResult::ValidationFailed, finding);
                self.board.set_phase(place, Phase::Dropped { why: Dropped::ByPerson }, at);
            }
        }
        Ok(())
    }

    fn answer_validator(
        &mut self,
        at: Timestamp,
        task: &TaskId,
        answer: &ValidatorAnswer,
    ) -> Result<(), Refusal> {
        let place = self.place(task)?;
        let Phase::Unjudged { commit } = self.board.task(place).phase.clone() else {
            return Err(format!("`{task}` is not waiting for a judgement"));
        };
        let next = match answer {
            ValidatorAnswer::ManualPass => Phase::Validated { commit, by: Judge::Person },
            ValidatorAnswer::Skip => {
                self.give_up(at, place, "no validator could judge it".into());
                return Ok(());
            }
            ValidatorAnswer::Retry => {
                self.board.task_mut(place).forget_validators();
                Phase::Accepted { commit }
            }
        };
        self.board.set_phase(place, next, at);
        Ok(())
    }

    fn answer_changeset(
        &mut self,
        at: Timestamp,
        id: &ChangesetId,
        answer: &ChangesetAnswer,
    ) -> Result<(), Refusal> {
        let Some(changeset) = self.merging.get_mut(id) else {
            return Err(format!("there is no changeset `{id}`"));
        };
        let ChangesetPhase::Verified { fold } = changeset.phase.clone() else {
            return Err(format!("changeset `{id}` is not under review"));
        };
        match answer {
            ChangesetAnswer::Approve => {
                changeset.approved = Some(fold.patch.clone());
                changeset.phase = ChangesetPhase::Approved { fold };
            }
            ChangesetAnswer::Skip => changeset.phase = ChangesetPhase::Skipped,
            ChangesetAnswer::Reject { reason } => {
                changeset.phase = ChangesetPhase::Rejected { reason: reason.clone() };
                for task in changeset.tasks.clone() {
                    let place = self.place(&task)?;
                    self.send_back(at, place, HistoryResult::Rejected, reason.clone());
                }
            }
        }
        Ok(())
    }

    fn answer_budget(&mut self, answer: &BudgetAnswer) -> Result<(), Refusal> {
        match answer {
            BudgetAnswer::Stop => self.crew.close(),
            BudgetAnswer::Raise { by } => {
                self.crew.raise(*by)?;
            }
        }
        Ok(())
    }

    fn answer_session(&mut self, at: Timestamp, answer: &SessionAnswer) -> Result<(), Refusal> {
        match answer {
            SessionAnswer::Continue { retry } => {
                let places =
                    retry.iter().map(|task| self.place(task)).collect::<Result<Vec<_>, _>>()?;
                for &place in &places {
                    let task = self.board.task(place);
                    ensure!(
                        matches!(
                            task.phase,
                            Phase::Failed { .. } | Phase::Dropped { why: Dropped::ByPerson }
                        ),
                        "`{}` has neither failed nor been dropped",
                        task.spec.id
                    );
                }
                self.board.set_developing(false);
                for place in places {
                    self.board.task_mut(place).start_afresh();
                    self.board.set_phase(place, Phase::Requeued, at);
                }
                self.stage = Stage::CycleDue;
            }
            SessionAnswer::Replan { notes } => {
                self.planning = Planning::from(None);
                self.planning.note(notes);
                self.stage = Stage::Planning;
            }
            SessionAnswer::Stop => self.stage = Stage::Closing(End::Stopped),
        }
        Ok(())
    }

    /// Sends work back by a person's decision or on evidence against it: the
    /// next cycle does it again, with a fresh set of retries.
    pub(super) fn send_back(
        &mut self,
        at: Timestamp,
        place: Place,
        result: HistoryResult,
        notes: String,
    ) {
        self.board.note(place, at, result, notes);
        self.board.task_mut(place).start_afresh();
        self.board.set_phase(place, Phase::Requeued, at);
    }

    /// A planner that cannot come up with anything ends the session, unless
    /// there is earlier work whose fate the person still has to decide.
    pub(super) fn give_up_planning(&mut self) {
        self.stage = if self.cycle == 0 {
            Stage::Closing(End::PlanningFailed)
        } else {
            self.planning.step = PlanStep::Approved;
            Stage::Wave(Wave::Merge)
        };
    }
}
