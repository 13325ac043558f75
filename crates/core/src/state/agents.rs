//! Agents coming and reporting.

use jiff::Timestamp;

use crate::event::{Process, Wave, Work};
use crate::ids::{AgentId, ExecutorName, Oid, Role};
use crate::money::{Budget, Spend};
use crate::rules::WaveMode;
use crate::skill::Handed;

use super::crew::Agent;
use super::merging::ChangesetPhase;
use super::task::Phase;
use super::{PlanStep, Refusal, Stage, State, ensure};

impl State {
    pub(super) fn claim(
        &mut self,
        at: Timestamp,
        id: &AgentId,
        work: &Work,
        executor: &ExecutorName,
        cap: Budget,
        grant: Budget,
    ) -> Result<(), Refusal> {
        ensure!(!self.crew.knows(id), "`{id}` was used before");
        self.check_claim(at, work, executor, cap, grant)?;
        match work {
            Work::Plan => {
                ensure!(
                    self.stage == Stage::Planning && self.planning.step == PlanStep::Wanted,
                    "no planner is wanted"
                );
                self.planning.step = PlanStep::Running;
            }
            Work::Develop { task, attempt } => {
                let place = self.place(task)?;
                let claimed = self.board.task(place);
                ensure!(claimed.phase == Phase::Pending, "`{task}` is not pending");
                ensure!(claimed.unmet == 0, "`{task}` needs tasks that are not done");
                ensure!(
                    *attempt == claimed.attempts + 1,
                    "the next attempt at `{task}` is number {}",
                    claimed.attempts + 1
                );
                self.check_locks_free(task)?;
                self.board.task_mut(place).attempts = *attempt;
                self.board.set_phase(place, Phase::Working { agent: id.clone() }, at);
            }
            Work::Validate { task, attempt } => {
                let place = self.place(task)?;
                let claimed = self.board.task(place);
                ensure!(*attempt == claimed.attempts, "that is not the attempt to validate");
                let Phase::Accepted { commit } = claimed.phase.clone() else {
                    return Err(format!("`{task}` is not ready for validation"));
                };
                let agent = id.clone();
                self.board.set_phase(place, Phase::Validating { commit, agent }, at);
            }
            Work::Resolve { changeset } => {
                let Some(changeset) = self.merging.get_mut(changeset) else {
                    return Err(format!("there is no changeset `{changeset}`"));
                };
                let ChangesetPhase::Conflicted { files } = changeset.phase.clone() else {
                    return Err("it has no conflict to resolve".into());
                };
                changeset.phase = ChangesetPhase::Resolving { agent: id.clone(), files };
            }
        }
        self.crew.hire(
            id.clone(),
            Agent {
                work: work.clone(),
                executor: executor.clone(),
                cap,
                grant,
                spend: Spend::default(),
                wants_grant: false,
                stop_sent: false,
                process: None,
                snapshot: None,
                claimed_at: at,
            },
        );
        Ok(())
    }

    /// Whether an agent may be started at all: no limit may be passed by an
    /// event, whoever wrote it.
    fn check_claim(
        &self,
        at: Timestamp,
        work: &Work,
        executor: &ExecutorName,
        cap: Budget,
        grant: Budget,
    ) -> Result<(), Refusal> {
        ensure!(!self.stopping, "the session is stopping");
        ensure!(!self.crew.is_closed(), "the budget is closed");
        let account = self.rules.account_of(executor);
        let paused = self.pauses.of(account, at);
        ensure!(paused.is_none(), "the provider asked for a pause");
        let backs_off = self.back_offs.of(work, account, at);
        ensure!(backs_off.is_none(), "it waits because the provider was overloaded");
        let full = self
            .rules
            .executor_caps
            .get(executor)
            .filter(|cap| self.crew.live_with(executor) >= **cap);
        ensure!(full.is_none(), "`{executor}` has all the agents that it may have");
        let role = work.role();
        let (places, wave) = match role {
            Role::Planner => (1, None),
            Role::Worker => (self.rules.workers, Some(Wave::Development)),
            Role::Validator if self.rules.waves == WaveMode::Pipelined => {
                (self.rules.validators, Some(Wave::Development))
            }
            Role::Validator => (self.rules.validators, Some(Wave::Validation)),
            Role::Merger => (1, Some(Wave::Merge)),
        };
        let stage = wave.map_or(Stage::Planning, Stage::Wave);
        ensure!(self.stage == stage, "it is not the time for a {role}");
        ensure!(self.crew.live_in(role) < places as usize, "all places for a {role} are taken");
        ensure!(
            (self.crew.live().len() as u64) < self.seats_in_memory(),
            "the memory holds no more agents"
        );
        ensure!(self.executor_chain(work).contains(&executor), "`{executor}` is not configured");
        ensure!(cap == *self.rules.agent_budgets.of(role), "a {role} has another limit");
        ensure!(self.crew.room().covers(0, grant, cap), "the session has no {grant} to give");
        Ok(())
    }

    pub(super) fn live_agent(&mut self, id: &AgentId) -> Result<&mut Agent, Refusal> {
        self.crew.live_mut(id).ok_or_else(|| format!("`{id}` is not at work"))
    }

    pub(super) fn agent_started(
        &mut self,
        id: &AgentId,
        process: &Process,
        skills: &[Handed],
    ) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        ensure!(agent.process.is_none(), "`{id}` was started before");
        agent.process = Some(process.clone());
        let role = agent.work.role();
        self.crew.taught(role, skills);
        Ok(())
    }

    pub(super) fn report_usage(&mut self, id: &AgentId, spend: &Spend) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        agent.spend = agent.spend.at_least(*spend);
        Ok(())
    }

    pub(super) fn want_grant(&mut self, id: &AgentId) -> Result<(), Refusal> {
        let agent = self.live_agent(id)?;
        ensure!(agent.grant != Budget::Unlimited, "`{id}` has no limit to extend");
        ensure!(agent.may_have_more(), "`{id}` has all it may ever have");
        agent.wants_grant = true;
        Ok(())
    }

    pub(super) fn grant(&mut self, id: &AgentId, grant: Budget) -> Result<(), Refusal> {
        let room = self.crew.room();
        let agent = self.live_agent(id)?;
        ensure!(agent.wants_grant, "`{id}` did not ask for more");
        let covered = room.covers(agent.held_in(&room), grant, agent.cap);
        ensure!(covered, "the session has no {grant} to give");
        agent.grant = grant;
        agent.wants_grant = false;
        Ok(())
    }

    pub(super) fn snapshot(&mut self, id: &AgentId, commit: &Oid) -> Result<(), Refusal> {
        self.live_agent(id)?.snapshot = Some(commit.clone());
        Ok(())
    }

    pub(super) fn stop_sent(&mut self, id: &AgentId) -> Result<(), Refusal> {
        self.live_agent(id)?.stop_sent = true;
        Ok(())
    }
}
