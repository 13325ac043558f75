//! Agents going: what they leave, and what becomes of work they did not finish.

use jiff::Timestamp;

use crate::event::{StartFault, Work};
use crate::hook::Occasion;
use crate::ids::{AgentId, ChangesetId, Oid};
use crate::money::Spend;
use crate::outcome::{Consequence, Counts, Killer, Next, Outcome, Product, Wait};

use super::back_offs;
use super::board::Place;
use super::crew::Agent;
use super::merging::ChangesetPhase;
use super::task::{HistoryResult, Judge, Phase};
use super::{PlanStep, Refusal, State, ensure};

/// A validator that breaks gets one more try before a person is asked.
const VALIDATOR_RETRIES: u32 = 1;

impl State {
    /// The claim is rolled back. Another executor may have more luck, if it was
    /// the program that was wanting.
    pub(super) fn start_failed(
        &mut self,
        at: Timestamp,
        id: &AgentId,
        reason: &str,
        fault: StartFault,
    ) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        ensure!(agent.process.is_none(), "`{id}` is running");
        let work = agent.work.clone();
        let another = self.executors_failed(&work) + 1 < self.executor_chain(&work).len();
        let counts = match fault {
            // A program that is not there is no attempt, as long as there is
            // another one to try.
            StartFault::Program if another => Counts::Unavailable,
            StartFault::Program => Counts::Retry,
            StartFault::Place => Counts::Unfit,
            StartFault::Stopped => Counts::Never,
        };
        let consequence = Consequence {
            counts,
            keep_work: true,
            next_executor: fault == StartFault::Program,
            wait: Wait::Nobody,
            note: format!("could not be started: {reason}"),
        };
        self.unfinished(at, id, Spend::default(), "not-started", &consequence)
    }

    pub(super) fn agent_lost(
        &mut self,
        at: Timestamp,
        id: &AgentId,
        spend: Option<Spend>,
    ) -> Result<(), Refusal> {
        self.live_agent(id)?;
        if spend.is_none() {
            self.crew.write_off(id);
        }
        let lost = Outcome::Killed { by: Killer::Other };
        match lost.consequence() {
            Some(consequence) => {
                self.unfinished(at, id, spend.unwrap_or_default(), "lost", &consequence)
            }
            None => Ok(()),
        }
    }

    pub(super) fn agent_exited(
        &mut self,
        at: Timestamp,
        id: &AgentId,
        outcome: &Outcome,
        spend: Spend,
    ) -> Result<(), Refusal> {
        if let Some(consequence) = outcome.consequence() {
            return self.unfinished(at, id, spend, outcome.name(), &consequence);
        }
        let Outcome::Finished { product } = outcome else { return Ok(()) };
        let work = self.live_agent(id)?.work.clone();
        self.take_product(at, &work, product)?;
        self.back_offs.done(&work);
        if let Some(agent) = self.crew.dismiss(id, spend, outcome.name(), at) {
            self.remember_worker(id, &agent);
        }
        Ok(())
    }

    fn take_product(
        &mut self,
        at: Timestamp,
        work: &Work,
        product: &Product,
    ) -> Result<(), Refusal> {
        match (work, product) {
            (Work::Plan, Product::Plan(plan)) => {
                self.board.put_plan(plan, at).map_err(|bad| bad.to_string())?;
                self.planning.step = PlanStep::Proposed(plan.clone());
            }
            (Work::Develop { task, .. }, Product::Commit(commit)) => {
                let place = self.place(task)?;
                self.board.task_mut(place).snapshot = None;
                self.board.set_phase(place, Phase::Built { commit: commit.clone() }, at);
            }
            (Work::Validate { task, .. }, Product::Verdict(verdict)) => {
                let place = self.place(task)?;
                let Phase::Validating { commit, .. } = self.board.task(place).phase.clone() else {
                    return Err(format!("`{task}` is not being validated"));
                };
                let next = if verdict.pass {
                    Phase::Validated { commit, by: Judge::Validator }
                } else {
                    let findings = [&[verdict.notes.clone()][..], &verdict.issues].concat();
                    Phase::Disputed { commit, notes: findings.join("\n") }
                };
                self.board.set_phase(place, next, at);
            }
            (Work::Resolve { changeset }, Product::Resolution(fold)) => {
                let Some(changeset) = self.merging.get_mut(changeset) else {
                    return Err(format!("there is no changeset `{changeset}`"));
                };
                changeset.phase = ChangesetPhase::Folded { fold: fold.clone() };
            }
            (Work::Resolve { changeset }, Product::Unresolvable { report }) => {
                self.return_changeset(at, changeset, HistoryResult::Conflicted, report)?;
            }
            _ => return Err("that is not what this agent was to make".into()),
        }
        Ok(())
    }

    /// Books a run that did not finish and decides what becomes of its work.
    fn unfinished(
        &mut self,
        at: Timestamp,
        id: &AgentId,
        spend: Spend,
        outcome: &'static str,
        consequence: &Consequence,
    ) -> Result<(), Refusal> {
        let Some(agent) = self.crew.dismiss(id, spend, outcome, at) else {
            return Err(format!("`{id}` is not at work"));
        };
        let account = self.rules.account_of(&agent.executor).clone();
        match consequence.wait {
            Wait::Nobody => self.back_offs.got_through(&agent.work, &account),
            Wait::Account { until } => {
                self.back_offs.got_through(&agent.work, &account);
                self.pause(at, until, &account);
            }
            Wait::Work => {
                let chance = back_offs::chance(&self.session, id);
                self.back_offs.turned_away(&agent.work, &account, at, chance);
            }
        }
        self.remember_worker(id, &agent);
        // Only what we really stopped is our doing. What ends while all is being
        // stopped may be told of before it was told to stop itself, and is begun
        // again at the earliest when the person resumes.
        let counts = match consequence.counts {
            Counts::Never if !agent.stop_sent && !self.stopping => Counts::Free,
            counts => counts,
        };
        let consequence = &Consequence { counts, ..consequence.clone() };
        match &agent.work {
            Work::Plan => self.planner_failed(consequence),
            Work::Develop { task, .. } => {
                let place = self.place(task)?;
                self.attempt_failed(at, place, agent.snapshot, consequence);
            }
            Work::Validate { task, .. } => {
                let place = self.place(task)?;
                self.validator_failed(at, place, consequence);
            }
            Work::Resolve { changeset } => self.merger_failed(at, changeset, consequence)?,
        }
        Ok(())
    }

    /// Keeps who worked on a task last, for its history.
    fn remember_worker(&mut self, id: &AgentId, agent: &Agent) {
        if let Work::Develop { task, .. } = &agent.work
            && let Some(place) = self.board.place(task)
        {
            self.board.task_mut(place).last_worker = Some((id.clone(), agent.spend));
        }
    }

    fn planner_failed(&mut self, consequence: &Consequence) {
        let planning = &mut self.planning;
        planning.note(&consequence.note);
        planning.executors_failed += usize::from(consequence.next_executor);
        planning.step = PlanStep::Wanted;
        match planning.tally.count(consequence.counts, self.rules.max_retries) {
            Next::Retry => {}
            Next::GiveUp => self.give_up_planning(),
        }
    }

    fn merger_failed(
        &mut self,
        at: Timestamp,
        id: &ChangesetId,
        consequence: &Consequence,
    ) -> Result<(), Refusal> {
        let max_retries = self.rules.max_retries;
        let Some(changeset) = self.merging.get_mut(id) else { return Ok(()) };
        let ChangesetPhase::Resolving { files, .. } = changeset.phase.clone() else {
            return Ok(());
        };
        changeset.mergers_failed += usize::from(consequence.next_executor);
        match changeset.merger_tally.count(consequence.counts, max_retries) {
            Next::Retry => {
                changeset.phase = ChangesetPhase::Conflicted { files };
                Ok(())
            }
            Next::GiveUp => {
                let report = format!("conflicts in {}; {}", files.join(", "), consequence.note);
                self.return_changeset(at, id, HistoryResult::Conflicted, &report)
            }
        }
    }

    /// An attempt at a task came to nothing: again, or never again.
    pub(super) fn attempt_failed(
        &mut self,
        at: Timestamp,
        place: Place,
        snapshot: Option<Oid>,
        consequence: &Consequence,
    ) {
        self.board.note(place, at, HistoryResult::Failed, consequence.note.clone());
        let max_retries = self.rules.max_retries;
        let task = self.board.task_mut(place);
        // Without a newer snapshot the one it started from is still the best.
        let keep = consequence.keep_work && !task.is_doomed();
        task.snapshot = if keep { snapshot.or(task.snapshot.take()) } else { None };
        task.executors_failed += usize::from(consequence.next_executor);
        match task.tally.count(consequence.counts, max_retries) {
            Next::Retry => {
                let next = self.board.again();
                self.board.set_phase(place, next, at);
            }
            Next::GiveUp => self.give_up(at, place, consequence.note.clone()),
        }
    }

    /// A task failed for good, as far as this cycle goes.
    pub(super) fn give_up(&mut self, at: Timestamp, place: Place, reason: String) {
        let task = self.board.task(place);
        let (id, attempt) = (task.spec.id.clone(), task.attempts);
        self.hook_due(Occasion::TaskFailed { task: id, attempt, reason: reason.clone() });
        self.board.set_phase(place, Phase::Failed { reason }, at);
    }

    fn validator_failed(&mut self, at: Timestamp, place: Place, consequence: &Consequence) {
        let Phase::Validating { commit, .. } = self.board.task(place).phase.clone() else { return };
        let task = self.board.task_mut(place);
        // Whatever its failure was, another executor may see it differently; in
        // a place that is not fit for one, none would see anything.
        let failed = matches!(consequence.counts, Counts::Retry | Counts::Unavailable);
        task.validators_failed += usize::from(failed);
        let next = match task.validator_tally.count(consequence.counts, VALIDATOR_RETRIES) {
            Next::Retry => Phase::Accepted { commit },
            Next::GiveUp => Phase::Unjudged { commit },
        };
        self.board.set_phase(place, next, at);
    }
}
