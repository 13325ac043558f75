//! A second opinion on a session, from its events alone.
//!
//! The auditor keeps its own books: who holds which files, who may spend what,
//! which work is sound, what the person approved. It never looks at the
//! core's state while the session runs, and it repeats none of its code.

mod changesets;
mod executors;
mod hooks;
mod money;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::event::{End, Event, StartFault, Work};
use blueflame_core::gate::{
    Answer, BudgetAnswer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer, ValidationAnswer,
    ValidatorAnswer,
};
use blueflame_core::ids::{AgentId, Role};
use blueflame_core::money::Spend;
use blueflame_core::outcome::{BudgetScope, Killer, Outcome, Product};
use blueflame_core::plan::Plan;
use blueflame_core::rules::{Rules, WaveMode};
use jiff::Timestamp;

use changesets::Changesets;
use executors::Executors;
use hooks::Hooks;
use money::Purse;
use tasks::Tasks;

/// What went wrong, in words.
pub type Finding = String;

macro_rules! must {
    ($condition:expr, $($finding:tt)+) => {
        if !$condition {
            return Err(format!($($finding)+));
        }
    };
}
use must;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Planning,
    Development,
    Validation,
    Merge,
}

#[derive(Debug)]
pub struct Auditor {
    rules: Rules,
    part: Part,
    cycle: u32,
    live: BTreeMap<AgentId, Work>,
    told_to_stop: BTreeSet<AgentId>,
    tasks: Tasks,
    purse: Purse,
    changesets: Changesets,
    hooks: Hooks,
    proposed: Option<Plan>,
    plan_rejections: u32,
    planner: Chances,
    gate: Option<Gate>,
    executors: Executors,
    stopping: bool,
    memory_holds: Option<u64>,
    person_stopped: bool,
    person_quit: bool,
    ended: Option<End>,
}

/// Failures that count, and those that are free for a while.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chances {
    pub(crate) counted: u32,
    pub(crate) free: u32,
    /// Executors that crashed or were not there.
    pub(crate) wanting: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    Agent,
    /// It broke, and another executor may do better.
    Crash,
    /// Its program could not be started; another can, or none can.
    Program,
    ProgramAtLast,
    /// Nobody could have been started there.
    Place,
    Circumstances,
    Us,
}

impl Chances {
    pub(crate) fn lose(&mut self, blame: Blame) {
        if matches!(blame, Blame::Crash | Blame::Program | Blame::ProgramAtLast) {
            self.wanting += 1;
        }
        match blame {
            Blame::Us | Blame::Program => {}
            Blame::Circumstances if self.free < 5 => self.free += 1,
            Blame::Circumstances
            | Blame::Agent
            | Blame::Crash
            | Blame::ProgramAtLast
            | Blame::Place => self.counted += 1,
        }
    }

    pub(crate) fn are_gone(self, retries: u32) -> bool {
        self.counted > retries
    }
}

/// Whose fault an end was; `None` for a good one.
fn blame(outcome: &Outcome) -> Option<Blame> {
    Some(match outcome {
        Outcome::Finished { .. } => return None,
        Outcome::BudgetSpent { limit: BudgetScope::Session }
        | Outcome::Killed { by: Killer::Us } => Blame::Us,
        Outcome::RateLimited { .. }
        | Outcome::Overloaded { .. }
        | Outcome::Killed { by: Killer::Other } => Blame::Circumstances,
        Outcome::Crashed { .. } => Blame::Crash,
        Outcome::NoOp
        | Outcome::Uncommitted
        | Outcome::MaxTurns
        | Outcome::BudgetSpent { limit: BudgetScope::Agent }
        | Outcome::TimedOut
        | Outcome::Killed { by: Killer::Memory }
        | Outcome::Violated { .. }
        | Outcome::Malformed { .. } => Blame::Agent,
    })
}

impl Auditor {
    pub fn new(rules: &Rules, plan: Option<&Plan>) -> Self {
        Auditor {
            rules: rules.clone(),
            part: Part::Planning,
            cycle: 0,
            live: BTreeMap::new(),
            told_to_stop: BTreeSet::new(),
            tasks: Tasks::new(rules.max_retries),
            purse: Purse::new(rules),
            changesets: Changesets::new(rules.publish, rules.max_retries),
            hooks: Hooks::new(rules),
            proposed: plan.cloned(),
            plan_rejections: 0,
            planner: Chances::default(),
            gate: None,
            executors: Executors::new(rules),
            stopping: false,
            memory_holds: None,
            person_stopped: false,
            person_quit: false,
            ended: None,
        }
    }

    /// Reads one event; an error is something that must never happen.
    pub fn observe(&mut self, at: Timestamp, event: &Event) -> Result<(), Finding> {
        must!(self.ended.is_none(), "an event after the end");
        match event {
            Event::SessionStarted { .. }
            | Event::SessionProven { .. }
            | Event::SnapshotTaken { .. }
            | Event::InspectionStarted { .. }
            | Event::AcceptanceStarted { .. }
            | Event::VerifyStarted { .. } => {}
            Event::SessionResumed { .. } => {
                self.gate = None;
                self.stopping = false;
                self.memory_holds = None;
                self.executors.resumed();
                self.told_to_stop.clear();
                self.hooks.orchestrator_went();
            }
            Event::StopRequested | Event::SessionObstructed { .. } => self.stopping = true,
            Event::SessionSuspended => {
                must!(self.live.is_empty(), "left while agents were at work");
                self.hooks.left()?;
            }
            Event::SessionEnded { end } => self.end(*end)?,
            Event::CycleStarted { cycle, .. } => {
                must!(*cycle == self.cycle + 1, "cycle {cycle} follows {}", self.cycle);
                must!(*cycle <= self.rules.max_wave_cycles, "more cycles than allowed");
                self.cycle = *cycle;
                self.part = Part::Development;
                self.changesets.new_cycle()?;
            }
            Event::ValidationStarted => {
                must!(self.rules.waves == WaveMode::Strict, "a validation wave of its own");
                must!(self.live.is_empty(), "validation began beside running agents");
                self.part = Part::Validation;
            }
            Event::MemorySampled { free_mb } => {
                self.memory_holds = self
                    .rules
                    .memory_per_agent_mb
                    .map(|each| (self.live.len() as u64 + free_mb / each).max(1));
            }
            Event::ProviderLimited { until, account } => self.executors.limited(account, *until),
            Event::PauseEnded => self.executors.pause_ended(at)?,
            Event::GateOpened { gate } => self.asked(gate)?,
            Event::GateAnswered { gate, answer } => self.answered(gate, answer)?,
            Event::GateWithdrawn { gate } => {
                must!(self.gate.take().as_ref() == Some(gate), "withdrew no question");
            }
            Event::AgentClaimed { agent, work, executor, cap, grant, passed_over } => {
                self.executors.claimed(at, agent, work, executor, passed_over)?;
                self.claimed(agent, work)?;
                self.purse.claimed(agent, *cap, *grant)?;
            }
            Event::AgentStarted { agent, .. } | Event::GrantWanted { agent } => {
                must!(self.live.contains_key(agent), "{agent} is not at work");
            }
            Event::StopSent { agent } => {
                must!(self.live.contains_key(agent), "{agent} is not at work");
                self.told_to_stop.insert(agent.clone());
            }
            Event::Granted { agent, grant } => self.purse.granted(agent, *grant)?,
            Event::UsageReported { agent, spend } => self.purse.used(agent, spend)?,
            Event::AgentStartFailed { agent, fault, .. } => {
                self.purse.left(agent, &Spend::default())?;
                let blame = match fault {
                    StartFault::Program => self.start_failed(agent),
                    StartFault::Place => Blame::Place,
                    StartFault::Stopped => Blame::Us,
                };
                self.left(agent, blame)?;
            }
            Event::AgentLost { agent, spend } => {
                match spend {
                    Some(spend) => self.purse.left(agent, spend)?,
                    None => self.purse.written_off(agent)?,
                }
                self.left(agent, Blame::Circumstances)?;
            }
            Event::AgentExited { agent, outcome, spend } => {
                self.purse.left(agent, spend)?;
                self.exited(at, agent, outcome)?;
            }
            Event::InspectionFinished { task, violations } => {
                self.tasks.inspected(task, violations.is_empty())?;
            }
            Event::AcceptanceFinished { task, failures } => {
                self.tasks.accepted(task, failures.is_empty())?;
            }
            Event::MergePlanned { changesets } => {
                must!(self.live.is_empty(), "the merge began beside running agents");
                self.part = Part::Merge;
                self.changesets.planned(changesets, &self.tasks)?;
            }
            Event::FoldStarted { changeset, tasks } => {
                self.changesets.folding(changeset, tasks, &self.tasks)?;
            }
            Event::FoldFinished { changeset, result } => {
                self.changesets.folded(changeset, result)?;
            }
            Event::VerifyFinished { changeset, result, .. } => {
                self.changesets.verified(changeset, result, &mut self.tasks)?;
            }
            Event::ChangesetDeferred { changeset, why } => {
                self.changesets.deferred(changeset, why, &self.tasks)?;
            }
            Event::LandStarted { changeset } => self.changesets.landing(changeset, &self.tasks)?,
            Event::LandFinished { changeset, result } => {
                self.changesets.landed(changeset, result, &mut self.tasks)?;
                self.hooks.landed(result);
            }
            Event::PublishStarted { commit } => self.changesets.publishing(commit)?,
            Event::PublishFinished { commit, .. } => self.changesets.published(commit),
            // Only people ask for these, and these people never do.
            Event::PublishRequested { .. }
            | Event::JointVerifyStarted { .. }
            | Event::JointVerifyFinished { .. }
            | Event::RevertRequested { .. }
            | Event::SessionCleaned { .. } => {
                return Err("an errand that nobody asked for".to_owned());
            }
            Event::HookStarted { occasion, .. } => {
                must!(!self.stopping, "a hook was started while stopping");
                self.hooks.started(occasion)?;
            }
            Event::HookFinished { .. } => self.hooks.finished()?,
        }
        Ok(())
    }

    fn claimed(&mut self, agent: &AgentId, work: &Work) -> Result<(), Finding> {
        must!(!self.stopping, "an agent was started while stopping");
        if self.rules.memory_per_agent_mb.is_some() {
            let holds = self.memory_holds.unwrap_or(1);
            must!((self.live.len() as u64) < holds, "more agents than the memory holds");
        }
        let in_role = self.live.values().filter(|other| other.role() == work.role()).count();
        let most = match work.role() {
            Role::Worker => self.rules.workers as usize,
            Role::Validator => self.rules.validators as usize,
            Role::Planner | Role::Merger => 1,
        };
        must!(in_role < most, "more than {most} agents as {}", work.role());
        match work {
            Work::Plan => {
                must!(self.part == Part::Planning, "a planner out of turn");
                must!(self.plan_rejections < 3, "a planner after three rejected plans");
                must!(!self.planner.are_gone(self.rules.max_retries), "a planner too many");
            }
            Work::Develop { task, attempt } => {
                must!(self.part == Part::Development, "{task} was started out of turn");
                self.tasks.working(task, *attempt, self.rules.waves)?;
            }
            Work::Validate { task, .. } => {
                self.hooks.validating(self.cycle)?;
                let turn = match self.rules.waves {
                    WaveMode::Strict => Part::Validation,
                    WaveMode::Pipelined => Part::Development,
                };
                must!(self.part == turn, "{task} was validated out of turn");
                self.tasks.validating(task)?;
            }
            Work::Resolve { changeset } => self.changesets.resolving(changeset)?,
        }
        must!(self.live.insert(agent.clone(), work.clone()).is_none(), "{agent} twice");
        Ok(())
    }

    fn exited(&mut self, at: Timestamp, agent: &AgentId, outcome: &Outcome) -> Result<(), Finding> {
        if let (Outcome::Overloaded { .. }, Some(work)) = (outcome, self.live.get(agent)) {
            self.executors.turned_away(at, agent, work);
        }
        if let Outcome::RateLimited { until } = outcome {
            self.executors.limited_by(agent, *until);
        }
        if let Some(blame) = blame(outcome) {
            return self.left(agent, blame);
        }
        let Outcome::Finished { product } = outcome else { return Ok(()) };
        self.executors.left(agent);
        let work = self.live.remove(agent).ok_or("a result of nobody")?;
        match (work, product) {
            (Work::Plan, Product::Plan(plan)) => self.proposed = Some(plan.clone()),
            (Work::Develop { task, .. }, Product::Commit(_)) => self.tasks.built(&task)?,
            (Work::Validate { task, .. }, Product::Verdict(verdict)) => {
                self.tasks.judged(&task, verdict.pass)?;
            }
            (Work::Resolve { changeset }, Product::Resolution(fold)) => {
                self.changesets.resolved(&changeset, fold)?;
            }
            (Work::Resolve { changeset }, Product::Unresolvable { .. }) => {
                self.changesets.returned(&changeset, &mut self.tasks)?;
            }
            (work, _) => return Err(format!("a strange product of {work:?}")),
        }
        Ok(())
    }

    /// A program that is not there costs a chance only when there is no other
    /// left to try.
    fn start_failed(&mut self, agent: &AgentId) -> Blame {
        let Some(work) = self.live.get(agent) else { return Blame::Agent };
        let configured = self.rules.executors.of(work.role());
        let (wanting, chain) = match work {
            Work::Plan => (self.planner.wanting, configured.len()),
            Work::Develop { task, .. } => self.tasks.executors(task, configured),
            Work::Validate { task, .. } => (self.tasks.validators_wanting(task), configured.len()),
            Work::Resolve { changeset } => (self.changesets.wanting(changeset), configured.len()),
        };
        if wanting + 1 < chain { Blame::Program } else { Blame::ProgramAtLast }
    }

    fn left(&mut self, agent: &AgentId, blame: Blame) -> Result<(), Finding> {
        let blame = match blame {
            // Only what was told to stop was stopped by us, or what ended while all
            // was being stopped.
            Blame::Us if !self.stopping && !self.told_to_stop.contains(agent) => {
                Blame::Circumstances
            }
            blame => blame,
        };
        self.executors.left(agent);
        let work = self.live.remove(agent).ok_or("an end of nobody")?;
        match work {
            Work::Plan => self.planner.lose(blame),
            Work::Develop { task, .. } => self.tasks.attempt_failed(&task, blame)?,
            Work::Validate { task, .. } => self.tasks.validator_failed(&task, blame)?,
            Work::Resolve { changeset } => {
                self.changesets.merger_failed(&changeset, blame, &mut self.tasks)?;
            }
        }
        Ok(())
    }

    fn asked(&mut self, gate: &Gate) -> Result<(), Finding> {
        must!(self.gate.is_none(), "two questions at once");
        match gate {
            Gate::Plan => must!(self.proposed.is_some(), "asked about no plan"),
            Gate::Changeset(changeset) => self.changesets.asked(changeset)?,
            Gate::Budget => self.purse.asked()?,
            Gate::Session => {
                must!(self.live.is_empty(), "asked to go on while agents work");
                must!(self.tasks.anything_open(), "asked to go on with nothing to do");
                must!(self.cycle < self.rules.max_wave_cycles, "asked for one cycle too many");
            }
            Gate::ValidationFailed(task) => self.tasks.asked_about_dispute(task)?,
            Gate::ValidatorFailed(task) => self.tasks.asked_about_validators(task)?,
        }
        self.gate = Some(gate.clone());
        Ok(())
    }

    fn answered(&mut self, gate: &Gate, answer: &Answer) -> Result<(), Finding> {
        must!(self.gate.take().as_ref() == Some(gate), "an answer to no question");
        match (gate, answer) {
            (_, Answer::Plan(answer)) => match answer {
                PlanAnswer::Approve => {
                    let plan = self.proposed.take().ok_or("approved no plan")?;
                    self.hooks.plan_approved();
                    self.tasks.plan(plan);
                }
                PlanAnswer::Edit { plan } => self.proposed = Some(plan.clone()),
                PlanAnswer::Replan { .. } => {
                    self.proposed = None;
                    self.plan_rejections += 1;
                    self.planner = Chances::default();
                }
                PlanAnswer::Quit => self.person_quit = true,
            },
            (Gate::ValidationFailed(task), Answer::ValidationFailed(answer)) => match answer {
                ValidationAnswer::Drop => self.tasks.dropped(task)?,
                ValidationAnswer::Requeue { .. } => self.tasks.sent_back(task)?,
                ValidationAnswer::Edit { description: _, file_locks } => {
                    self.tasks.edited(task, file_locks.as_deref())?;
                    self.tasks.sent_back(task)?;
                }
            },
            (Gate::ValidatorFailed(task), Answer::ValidatorFailed(answer)) => match answer {
                ValidatorAnswer::ManualPass => self.tasks.judged(task, true)?,
                ValidatorAnswer::Skip => self.tasks.given_up(task)?,
                ValidatorAnswer::Retry => self.tasks.validator_retried(task)?,
            },
            (Gate::Changeset(changeset), Answer::Changeset(answer)) => match answer {
                ChangesetAnswer::Approve => self.changesets.approved(changeset)?,
                ChangesetAnswer::Skip => self.changesets.skipped(changeset)?,
                ChangesetAnswer::Reject { .. } => {
                    self.changesets.returned(changeset, &mut self.tasks)?;
                }
            },
            (_, Answer::Budget(answer)) => match answer {
                BudgetAnswer::Stop => self.purse.close(),
                BudgetAnswer::Raise { by } => self.purse.raise(*by)?,
            },
            (_, Answer::Session(answer)) => match answer {
                SessionAnswer::Continue { retry } => {
                    for task in retry {
                        self.tasks.sent_back(task)?;
                    }
                }
                SessionAnswer::Replan { .. } => {
                    self.part = Part::Planning;
                    self.proposed = None;
                    self.plan_rejections = 0;
                    self.planner = Chances::default();
                }
                SessionAnswer::Stop => self.person_stopped = true,
            },
            _ => return Err("an answer to another question".into()),
        }
        Ok(())
    }

    /// What must have happened when a session is over.
    fn end(&mut self, end: End) -> Result<(), Finding> {
        must!(self.live.is_empty(), "ended while agents were at work");
        must!(self.gate.is_none(), "ended with a question open");
        self.changesets.nothing_in_limbo()?;
        self.hooks.ended()?;
        let open = self.tasks.anything_open();
        let lost = self.tasks.anything_lost();
        match end {
            End::Complete => must!(!open && !lost, "not everything landed"),
            End::Incomplete => must!(!open && lost, "ended although something could be done"),
            End::NothingToDo => {
                let empty = self.proposed.as_ref().is_some_and(|plan| plan.tasks.is_empty());
                must!(empty && self.cycle == 0, "there was something to do");
            }
            End::PlanningFailed => {
                must!(
                    self.planner.are_gone(self.rules.max_retries),
                    "the planner had chances left"
                );
            }
            End::PlanDeclined => must!(self.person_quit, "nobody declined the plan"),
            End::PlanRejectedTooOften => must!(self.plan_rejections == 3, "plans were left"),
            End::Stopped => must!(self.person_stopped, "nobody stopped the session"),
            End::Budget => must!(self.purse.is_closed(), "nobody stopped at the budget"),
            End::CycleLimit => {
                must!(self.cycle == self.rules.max_wave_cycles && open, "cycles were left");
            }
        }
        self.ended = Some(end);
        Ok(())
    }
}
