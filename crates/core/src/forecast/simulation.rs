//! A session on paper: decided by the core, with agents that take as long as
//! estimated and never fail.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::decide::{Action, decide};
use crate::event::{Event, FoldResult, LandResult, Process, PublishResult, VerifyResult, Work};
use crate::gate::{Answer, ChangesetAnswer, Gate, PlanAnswer};
use crate::ids::{ChangesetId, Oid, SessionId, TaskId};
use crate::money::{Budget, Spend};
use crate::outcome::{Fold, Outcome, Product, Verdict};
use crate::plan::Plan;
use crate::rules::{PerRole, Rules};
use crate::state::State;

/// Everything that takes time, in the order in which it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Schedule {
    pub spans: Vec<Span>,
    /// When the session ends.
    pub seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    pub what: Doing,
    /// In seconds since the plan was approved.
    pub start: u64,
    pub end: u64,
}

/// What takes time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    Agent(Work),
    Acceptance(TaskId),
    Verification(ChangesetId),
}

impl Schedule {
    /// When the last worker is done.
    pub fn development_seconds(&self) -> u64 {
        let ends = self.spans.iter().filter_map(|span| match &span.what {
            Doing::Agent(Work::Develop { .. }) => Some(span.end),
            Doing::Agent(_) | Doing::Acceptance(_) | Doing::Verification(_) => None,
        });
        ends.max().unwrap_or(0)
    }
}

/// Carries a plan through with so many workers; `None` if the core comes to a
/// stop on the way.
pub fn run(rules: &Rules, plan: &Plan, workers: u32) -> Option<Schedule> {
    // Memory, money and hooks are of the day; this is about the plan.
    let rules = Rules {
        workers,
        memory_per_agent_mb: None,
        session_budget: Budget::Unlimited,
        agent_budgets: PerRole::default(),
        hooks: Vec::new(),
        ..rules.clone()
    };
    let first = Event::SessionStarted {
        session: SessionId::new("ses-00000000-000000").ok()?,
        goal: String::new(),
        rules: Box::new(rules),
        config: String::new(),
        plan: Some(plan.clone()),
        weaker: Vec::new(),
    };
    let state = State::begin(Timestamp::UNIX_EPOCH, &first).ok()?;
    let mut paper = Paper { state, now: 0, names: 0, agenda: BTreeMap::new(), spans: Vec::new() };
    // Each task has a handful of events; a core that goes in circles is stopped.
    let most = 100 * (plan.tasks.len() + 10);
    for _ in 0..most {
        paper.act()?;
        if paper.state.ended().is_some() {
            return Some(Schedule { spans: paper.spans, seconds: paper.now });
        }
        let ((at, _), (event, span)) = paper.agenda.pop_first()?;
        paper.now = at;
        paper.spans.extend(span);
        paper.apply(&event)?;
    }
    None
}

struct Paper {
    state: State,
    now: u64,
    /// Names given so far: of agents, commits and things that will happen.
    names: u32,
    agenda: BTreeMap<(u64, u32), (Event, Option<Span>)>,
    spans: Vec<Span>,
}

impl Paper {
    fn apply(&mut self, event: &Event) -> Option<()> {
        let at = Timestamp::from_second(i64::try_from(self.now).ok()?).ok()?;
        self.state.apply(at, event).ok()
    }

    fn name(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    fn commit(&mut self) -> Option<Oid> {
        Oid::new(format!("{:040x}", self.name())).ok()
    }

    /// Does everything that is to be done now.
    fn act(&mut self) -> Option<()> {
        loop {
            let mut acted = false;
            for action in decide(&self.state) {
                let number = self.name();
                let intent = action.intent(number, "")?;
                self.apply(&intent)?;
                self.begin(action, &intent)?;
                acted = true;
            }
            if !acted {
                return Some(());
            }
        }
    }

    /// What follows by itself goes on the agenda.
    fn begin(&mut self, action: Action, intent: &Event) -> Option<()> {
        let estimates = self.state.rules.estimates.clone();
        match action {
            Action::Spawn { work, .. } => {
                let Event::AgentClaimed { agent, .. } = intent else { return None };
                let agent = agent.clone();
                let process = Process { pid: 0, start_time: 0, boot_id: String::new() };
                self.apply(&Event::AgentStarted {
                    agent: agent.clone(),
                    process,
                    skills: Vec::new(),
                })?;
                let (seconds, product) = match &work {
                    Work::Develop { task, .. } => {
                        let estimate = estimates.of(&self.state.board.get(task)?.spec);
                        (estimate.seconds, Product::Commit(self.commit()?))
                    }
                    Work::Validate { .. } => {
                        let verdict =
                            Verdict { pass: true, notes: String::new(), issues: Vec::new() };
                        (estimates.validator.seconds, Product::Verdict(verdict))
                    }
                    // There is a plan, and nothing conflicts on paper.
                    Work::Plan | Work::Resolve { .. } => return None,
                };
                let outcome = Outcome::Finished { product };
                let exited = Event::AgentExited { agent, outcome, spend: Spend::default() };
                self.later(seconds, exited, Some(Doing::Agent(work)));
            }
            Action::Inspect { task } => {
                self.later(0, Event::InspectionFinished { task, violations: Vec::new() }, None);
            }
            Action::Accept { task } => {
                let own = !self.state.board.get(&task)?.spec.acceptance.is_empty();
                let checks = estimates.accepts || own;
                let seconds = if checks { estimates.check_seconds } else { 0 };
                let doing = checks.then(|| Doing::Acceptance(task.clone()));
                let event = Event::AcceptanceFinished { task, failures: Vec::new() };
                self.later(seconds, event, doing);
            }
            Action::Fold { changeset, .. } => {
                let commit = self.commit()?;
                let patch = changeset.to_string();
                let fold = Fold { commit, patch, files: 0, insertions: 0, deletions: 0 };
                let result = FoldResult::Folded(fold);
                self.later(0, Event::FoldFinished { changeset, result }, None);
            }
            Action::Verify { changeset } => {
                let seconds = if estimates.verifies { estimates.check_seconds } else { 0 };
                let doing = estimates.verifies.then(|| Doing::Verification(changeset.clone()));
                let (result, commands) = (VerifyResult::Passed, Vec::new());
                self.later(seconds, Event::VerifyFinished { changeset, result, commands }, doing);
            }
            Action::Land { changeset } => {
                let result = LandResult::Landed;
                self.later(0, Event::LandFinished { changeset, result }, None);
            }
            Action::Publish { commit } => {
                let result = PublishResult::Published;
                self.later(0, Event::PublishFinished { commit, result }, None);
            }
            Action::Ask { gate } => {
                let answer = match gate {
                    Gate::Plan => Answer::Plan(PlanAnswer::Approve),
                    Gate::Changeset(_) => Answer::Changeset(ChangesetAnswer::Approve),
                    Gate::ValidationFailed(_)
                    | Gate::ValidatorFailed(_)
                    | Gate::Budget
                    | Gate::Session => return None,
                };
                self.later(0, Event::GateAnswered { gate, answer }, None);
            }
            Action::StartCycle { .. }
            | Action::StartValidation
            | Action::PlanMerge { .. }
            | Action::End { .. } => {}
            Action::Grant { .. }
            | Action::StopAgent { .. }
            | Action::Defer { .. }
            | Action::RunHook { .. }
            | Action::VerifyJoint { .. }
            | Action::Withdraw { .. }
            | Action::WaitUntil { .. }
            | Action::Suspend => return None,
        }
        Some(())
    }

    fn later(&mut self, seconds: u64, event: Event, doing: Option<Doing>) {
        let end = self.now.saturating_add(seconds);
        let span = doing.map(|what| Span { what, start: self.now, end });
        let number = self.name();
        self.agenda.insert((end, number), (event, span));
    }
}
