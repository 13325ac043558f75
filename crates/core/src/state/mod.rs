//! What is true now: a fold of the events, and nothing else.
//!
//! [`State::apply`] is the only writer. It refuses an event that cannot follow
//! the current state, as data and without changing anything, because such an
//! event means a damaged journal or a mistake in the shell.

mod agents;
pub mod back_offs;
pub mod board;
mod cascade;
mod changesets;
mod checks;
pub mod crew;
mod ends;
pub mod errands;
pub mod hooks;
pub mod merging;
pub mod pauses;
mod people;
mod session;
pub mod task;

use jiff::Timestamp;
use serde::Serialize;

use crate::event::{End, Event, Wave, Work};
use crate::gate::Gate;
use crate::ids::{ExecutorName, SessionId, TaskId};
use crate::outcome::Tally;
use crate::plan::Plan;
use crate::proof::Proof;
use crate::rules::Rules;

use back_offs::BackOffs;
use board::{Board, Place};
use crew::Crew;
use errands::{Errand, Revert};
use hooks::Hooks;
use merging::{Merging, Publishing};
use pauses::Pauses;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    pub session: SessionId,
    pub goal: String,
    pub rules: Rules,
    /// What it does without that would make it safer.
    pub weaker: Vec<String>,
    /// What is known of the boundaries that hold its agents, if anybody tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<Proven>,
    /// Fingerprint of the configuration the session runs by.
    pub config: String,
    /// The configuration file has changed since.
    pub config_drifted: bool,
    pub stage: Stage,
    /// 0 until the first plan is approved.
    pub cycle: u32,
    pub planning: Planning,
    pub board: Board,
    pub crew: Crew,
    pub merging: Merging,
    pub publishing: Publishing,
    /// What the person asked for while nobody runs the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errand: Option<Errand>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reverts: Vec<Revert>,
    pub hooks: Hooks,
    pub gate: Option<Gate>,
    pub pauses: Pauses,
    /// Work that waits because its provider was overloaded.
    #[serde(skip_serializing_if = "BackOffs::is_empty")]
    pub back_offs: BackOffs,
    /// How many agents the memory holds, by the last sample.
    pub memory_holds: Option<u64>,
    pub stopping: bool,
    pub suspended: bool,
    /// Why it stopped, where that is for the person to put right.
    pub obstacle: Option<String>,
    pub started_at: Timestamp,
    pub last_at: Timestamp,
    pub events: u64,
}

/// A proof, and what had changed since when the session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proven {
    pub proof: Proof,
    pub outdated: Vec<String>,
}

/// Which part of the session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Planning,
    /// A plan is approved or the person said to go on.
    CycleDue,
    Wave(Wave),
    /// Decided, but not yet recorded as the end.
    Closing(End),
    Ended(End),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planning {
    pub step: PlanStep,
    /// Plans the person sent back, this time around.
    pub rejections: u32,
    /// What the person and earlier tries have to say to the next planner.
    pub notes: Vec<String>,
    pub tally: Tally,
    pub executors_failed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStep {
    Wanted,
    Running,
    Proposed(Plan),
    Approved,
}

/// After this many rejected plans it is time to write one by hand.
pub const PLAN_REJECTIONS: u32 = 3;

/// An event that cannot follow the state it was applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` cannot follow: {why}")]
pub struct Illegal {
    pub event: String,
    pub why: String,
}

/// The reason alone; [`State::apply`] adds which event it was.
type Refusal = String;

/// Refuses unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}
use ensure;

impl State {
    /// The state after the first event, which starts a session.
    pub fn begin(at: Timestamp, event: &Event) -> Result<State, Illegal> {
        let Event::SessionStarted { session, goal, rules, config, plan, weaker } = event else {
            return Err(illegal(event, "a session begins with session.started"));
        };
        let board = Board::new(rules.waves);
        if let Some(plan) = plan {
            board.put_plan(plan, at).map_err(|bad| illegal(event, bad.to_string()))?;
        }
        Ok(State {
            session: session.clone(),
            goal: goal.clone(),
            rules: (**rules).clone(),
            weaker: weaker.clone(),
            proven: None,
            config: config.clone(),
            config_drifted: false,
            stage: Stage::Planning,
            cycle: 0,
            planning: Planning::from(plan.clone()),
            board,
            crew: Crew::new(rules.session_budget),
            merging: Merging::default(),
            publishing: Publishing::Nothing,
            errand: None,
            reverts: Vec::new(),
            hooks: Hooks::default(),
            gate: None,
            pauses: Pauses::default(),
            back_offs: BackOffs::default(),
            memory_holds: None,
            stopping: false,
            suspended: false,
            obstacle: None,
            started_at: at,
            last_at: at,
            events: 1,
        })
    }

    /// Folds a whole history.
    pub fn replay<'a>(
        history: impl IntoIterator<Item = (Timestamp, &'a Event)>,
    ) -> Result<Option<State>, Illegal> {
        let mut state: Option<State> = None;
        for (at, event) in history {
            match &mut state {
                None => state = Some(State::begin(at, event)?),
                Some(state) => state.apply(at, event)?,
            }
        }
        Ok(state)
    }

    /// Folds one fact in, or refuses it and stays as it was.
    pub fn apply(&mut self, at: Timestamp, event: &Event) -> Result<(), Illegal> {
        self.fold(at, event).map_err(|why| illegal(event, why))?;
        self.last_at = at;
        self.events += 1;
        Ok(())
    }

    fn fold(&mut self, at: Timestamp, event: &Event) -> Result<(), Refusal> {
        if !self.is_errand(event) {
            ensure!(!matches!(self.stage, Stage::Ended(_)), "the session has ended");
            let resumed = matches!(event, Event::SessionResumed { .. });
            ensure!(!self.suspended || resumed, "the session is suspended");
            ensure!(self.errand.is_none() || resumed, "the person asked for something else");
        }
        match event {
            Event::SessionStarted { .. } => Err("the session has started already".into()),
            Event::SessionProven { proof, outdated } => self.prove(proof, outdated),
            Event::SessionResumed { verify, .. } => {
                self.resume(at, verify.as_deref());
                Ok(())
            }
            Event::StopRequested => {
                self.stopping = true;
                Ok(())
            }
            Event::SessionObstructed { reason } => {
                self.obstruct(reason);
                Ok(())
            }
            Event::SessionSuspended => self.suspend(),
            Event::SessionEnded { end } => self.end(*end),
            Event::CycleStarted { cycle, config } => self.start_cycle(at, *cycle, config),
            Event::ValidationStarted => self.start_validation(),
            Event::MemorySampled { free_mb } => {
                self.sample_memory(*free_mb);
                Ok(())
            }
            Event::ProviderLimited { until, account } => {
                self.pause(at, *until, account);
                Ok(())
            }
            Event::PauseEnded => self.end_pauses(at),

            Event::GateOpened { gate } => self.open_gate(gate),
            Event::GateAnswered { gate, answer } => self.answer_gate(at, gate, answer),
            Event::GateWithdrawn { gate } => self.withdraw_gate(gate),

            Event::AgentClaimed { agent, work, executor, cap, grant, .. } => {
                self.claim(at, agent, work, executor, *cap, *grant)
            }
            Event::AgentStarted { agent, process, skills } => {
                self.agent_started(agent, process, skills)
            }
            Event::AgentStartFailed { agent, reason, fault } => {
                self.start_failed(at, agent, reason, *fault)
            }
            Event::UsageReported { agent, spend } => self.report_usage(agent, spend),
            Event::GrantWanted { agent } => self.want_grant(agent),
            Event::Granted { agent, grant } => self.grant(agent, *grant),
            Event::SnapshotTaken { agent, commit } => self.snapshot(agent, commit),
            Event::StopSent { agent } => self.stop_sent(agent),
            Event::AgentExited { agent, outcome, spend } => {
                self.agent_exited(at, agent, outcome, *spend)
            }
            Event::AgentLost { agent, spend } => self.agent_lost(at, agent, *spend),

            Event::InspectionStarted { task } => self.start_inspection(at, task),
            Event::InspectionFinished { task, violations } => {
                self.finish_inspection(at, task, violations)
            }
            Event::AcceptanceStarted { task } => self.start_acceptance(at, task),
            Event::AcceptanceFinished { task, failures } => {
                self.finish_acceptance(at, task, failures)
            }

            Event::MergePlanned { changesets } => self.plan_merge(changesets),
            Event::FoldStarted { changeset, tasks } => self.start_fold(changeset, tasks),
            Event::FoldFinished { changeset, result } => self.finish_fold(changeset, result),
            Event::VerifyStarted { changeset } if self.revert(changeset).is_some() => {
                self.start_revert_verify(changeset)
            }
            Event::VerifyStarted { changeset } => self.start_verify(changeset),
            Event::VerifyFinished { changeset, result, .. } if self.revert(changeset).is_some() => {
                self.finish_revert_verify(changeset, result)
            }
            Event::VerifyFinished { changeset, result, commands } => {
                self.finish_verify(at, changeset, result, commands)
            }
            Event::ChangesetDeferred { changeset, why } => self.defer(changeset, why),
            Event::LandStarted { changeset } if self.revert(changeset).is_some() => {
                self.start_revert_land(changeset)
            }
            Event::LandStarted { changeset } => self.start_land(changeset),
            Event::LandFinished { changeset, result } if self.revert(changeset).is_some() => {
                self.finish_revert_land(changeset, result)
            }
            Event::LandFinished { changeset, result } => self.finish_land(at, changeset, result),
            Event::PublishStarted { commit } => self.start_publish(commit),
            Event::PublishFinished { commit, result } => self.finish_publish(commit, result),

            Event::PublishRequested { commit, joins } => {
                self.request_publish(commit, joins.as_ref());
                Ok(())
            }
            Event::JointVerifyStarted { commit } => self.start_joint_verify(commit),
            Event::JointVerifyFinished { commit, result } => {
                self.finish_joint_verify(commit, result)
            }
            Event::RevertRequested { changeset, undoes, fold } => {
                self.request_revert(changeset, undoes, fold)
            }
            Event::SessionCleaned { .. } => {
                ensure!(matches!(self.stage, Stage::Ended(_)), "the session can still go on");
                Ok(())
            }
            Event::HookStarted { number, occasion } => self.start_hook(*number, occasion),
            Event::HookFinished { number, result } => self.finish_hook(*number, result),
        }
    }

    pub fn ended(&self) -> Option<End> {
        match self.stage {
            Stage::Ended(end) => Some(end),
            Stage::Planning | Stage::CycleDue | Stage::Wave(_) | Stage::Closing(_) => None,
        }
    }

    /// The executors for some work, best first: the one that the task names,
    /// then those of the role.
    pub fn executor_chain(&self, work: &Work) -> Vec<&ExecutorName> {
        let named = match work {
            Work::Develop { task, .. } => {
                self.board.get(task).and_then(|task| task.spec.executor.as_ref())
            }
            Work::Plan | Work::Validate { .. } | Work::Resolve { .. } => None,
        };
        let of_role = self.rules.executors.of(work.role()).iter();
        named.into_iter().chain(of_role.filter(|name| Some(*name) != named)).collect()
    }

    /// How many of them were found wanting already.
    pub fn executors_failed(&self, work: &Work) -> usize {
        let of_task = |task, failed: fn(&task::Task) -> usize| self.board.get(task).map(failed);
        let failed = match work {
            Work::Plan => Some(self.planning.executors_failed),
            Work::Develop { task, .. } => of_task(task, |task| task.executors_failed),
            Work::Validate { task, .. } => of_task(task, |task| task.validators_failed),
            Work::Resolve { changeset } => {
                self.merging.get(changeset).map(|changeset| changeset.mergers_failed)
            }
        };
        failed.unwrap_or(0)
    }

    fn place(&self, task: &TaskId) -> Result<Place, Refusal> {
        self.board.place(task).ok_or_else(|| format!("there is no task `{task}`"))
    }
}

impl Planning {
    /// Something for the next planner to know; the newest few are kept.
    fn note(&mut self, note: &str) {
        if self.notes.len() == task::History::LONGEST {
            self.notes.remove(0);
        }
        self.notes.push(task::clipped(note.to_owned()));
    }
}

impl From<Option<Plan>> for Planning {
    /// With a plan at hand there is something to approve; without one a
    /// planner is wanted.
    fn from(plan: Option<Plan>) -> Self {
        Planning {
            step: plan.map_or(PlanStep::Wanted, PlanStep::Proposed),
            rejections: 0,
            notes: Vec::new(),
            tally: Tally::default(),
            executors_failed: 0,
        }
    }
}

fn illegal(event: &Event, why: impl Into<String>) -> Illegal {
    let name = serde_json::to_value(event)
        .ok()
        .and_then(|value| value.get("t")?.as_str().map(str::to_owned))
        .unwrap_or_default();
    Illegal { event: name, why: why.into() }
}
