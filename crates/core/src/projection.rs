//! The state as people and scripts like to see it.
//!
//! `tasks.yaml`, `agents.json` and `status.json` are written from these. They
//! are views: nothing reads them back to decide, and they can be made anew
//! from the journal at any time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::event::{End, Wave, Work};
use crate::gate::Gate;
use crate::ids::{AgentId, ChangesetId, ExecutorName, GroupName, Role, SessionId, TaskId};
use crate::lock_path::LockPath;
use crate::money::{Budget, Spend, Usd};
use crate::plan::{Risk, TaskSpec};
use crate::state::back_offs::BackOffs;
use crate::state::merging::Publishing;
use crate::state::pauses::Pauses;
use crate::state::task::{HistoryEntry, HistoryResult, Phase, Step, Task};
use crate::state::{PlanStep, Stage, State};

/// `tasks.yaml`: the plan and what became of it.
#[derive(Debug, Serialize)]
pub struct TasksFile<'a> {
    pub schema_version: u32,
    pub session_id: &'a SessionId,
    pub wave_cycle: u32,
    pub tasks: Vec<TaskView<'a>>,
}

#[derive(Debug, Serialize)]
pub struct TaskView<'a> {
    pub id: &'a TaskId,
    pub title: &'a str,
    pub description: &'a str,
    pub status: &'static str,
    pub agent_id: Option<&'a AgentId>,
    pub priority: u32,
    pub cohesion_group: &'a GroupName,
    pub dependencies: &'a [TaskId],
    pub file_locks: &'a [LockPath],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub acceptance: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_minutes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<&'a ExecutorName>,
    pub branch: Option<String>,
    pub retry_count: u32,
    pub result: ResultView,
    pub history: Vec<HistoryView<'a>>,
}

#[derive(Debug, Serialize)]
pub struct ResultView {
    pub status: Option<&'static str>,
    pub notes: String,
}

#[derive(Debug, Serialize)]
pub struct HistoryView<'a> {
    pub attempt: u32,
    pub agent_id: Option<&'a AgentId>,
    pub timestamp: Timestamp,
    pub result: HistoryResult,
    pub notes: &'a str,
    pub rejection_reason: &'a str,
    #[serde(flatten)]
    pub spend: SpendView,
}

/// While a plan waits for approval, it is what there is to see and to edit.
pub fn tasks_file(state: &State) -> TasksFile<'_> {
    let tasks = match &state.planning.step {
        PlanStep::Proposed(plan) => plan.tasks.iter().map(spec_view).collect(),
        PlanStep::Wanted | PlanStep::Running | PlanStep::Approved => {
            let open = state.board.tasks().iter().filter(|task| task.step() != Step::Replaced);
            open.map(|task| task_view(state, task)).collect()
        }
    };
    TasksFile { schema_version: 1, session_id: &state.session, wave_cycle: state.cycle, tasks }
}

/// A task of which nothing has become yet.
fn spec_view(spec: &TaskSpec) -> TaskView<'_> {
    TaskView {
        id: &spec.id,
        title: &spec.title,
        description: &spec.description,
        status: status_word(Step::Waiting),
        agent_id: None,
        priority: spec.priority,
        cohesion_group: &spec.group,
        dependencies: &spec.dependencies,
        file_locks: &spec.file_locks,
        acceptance: &spec.acceptance,
        risk: spec.risk,
        estimate_minutes: spec.estimate_minutes,
        model: spec.model.as_deref(),
        executor: spec.executor.as_ref(),
        branch: None,
        retry_count: 0,
        result: ResultView { status: None, notes: String::new() },
        history: Vec::new(),
    }
}

fn task_view<'a>(state: &State, task: &'a Task) -> TaskView<'a> {
    let spec = &task.spec;
    let agent_id = match &task.phase {
        Phase::Working { agent } | Phase::Validating { agent, .. } => Some(agent),
        _ => None,
    };
    TaskView {
        status: status_word(task.step()),
        agent_id,
        branch: (task.attempts > 0).then(|| branch(&state.session, &spec.id, task.attempts)),
        retry_count: task.tally.retries,
        result: result_view(&task.phase),
        history: task.history.entries().iter().map(history_view).collect(),
        ..spec_view(spec)
    }
}

fn history_view(entry: &HistoryEntry) -> HistoryView<'_> {
    let rejected = entry.result == HistoryResult::Rejected;
    HistoryView {
        attempt: entry.attempt,
        agent_id: entry.agent.as_ref(),
        timestamp: entry.at,
        result: entry.result,
        notes: &entry.notes,
        rejection_reason: if rejected { &entry.notes } else { "" },
        spend: entry.spend.into(),
    }
}

/// The branch of one attempt; its name follows from what it is, so that it
/// can be found again after a crash.
pub fn branch(session: &SessionId, task: &TaskId, attempt: u32) -> String {
    format!("blueflame/{session}/{task}/a{attempt}")
}

fn result_view(phase: &Phase) -> ResultView {
    let (status, notes) = match phase {
        Phase::Validated { .. } | Phase::Merged { .. } => (Some("pass"), String::new()),
        Phase::Disputed { notes, .. } => (Some("fail"), notes.clone()),
        Phase::Failed { reason } => (Some("fail"), reason.clone()),
        Phase::Blocked { by } => (None, format!("needs {by}")),
        _ => (None, String::new()),
    };
    ResultView { status, notes }
}

/// The one word of the task file for where a task stands.
pub fn status_word(step: Step) -> &'static str {
    match step {
        Step::Waiting | Step::Ready => "pending",
        Step::Requeued => "requeued",
        Step::Working => "claimed",
        Step::Built
        | Step::Inspecting
        | Step::Done
        | Step::Accepting
        | Step::Accepted
        | Step::Validating
        | Step::Disputed
        | Step::Unjudged
        | Step::Validated => "done",
        Step::Merged => "merged",
        Step::Failed => "failed",
        Step::Blocked => "blocked",
        Step::Dropped | Step::Replaced => "dropped",
    }
}

/// `agents.json`: everyone who worked in this session.
#[derive(Debug, Serialize)]
pub struct AgentView<'a> {
    pub id: &'a AgentId,
    pub role: Role,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<&'a TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changeset: Option<&'a ChangesetId>,
    pub executor: &'a ExecutorName,
    pub start_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Timestamp>,
    #[serde(flatten)]
    pub spend: SpendView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpendView {
    pub cost_usd: f64,
    pub tokens_used: u64,
}

impl From<Spend> for SpendView {
    fn from(spend: Spend) -> Self {
        SpendView { cost_usd: dollars(spend.cost), tokens_used: spend.usage.total() }
    }
}

/// For display only: amounts are added up in whole micro-dollars.
#[expect(clippy::cast_precision_loss)]
fn dollars(amount: Usd) -> f64 {
    amount.micros() as f64 / 1e6
}

pub fn agents_file(state: &State) -> Vec<AgentView<'_>> {
    let past = state.crew.past().iter().map(|past| AgentView {
        status: past.outcome,
        end_time: Some(past.ended_at),
        ..agent_view(&past.agent, &past.work, &past.executor, past.claimed_at, past.spend)
    });
    let live = state.crew.live().iter().map(|(id, agent)| AgentView {
        status: if agent.process.is_some() { "running" } else { "starting" },
        pid: agent.process.as_ref().map(|process| process.pid),
        budget: Some(agent.cap),
        ..agent_view(id, &agent.work, &agent.executor, agent.claimed_at, agent.spend)
    });
    past.chain(live).collect()
}

fn agent_view<'a>(
    id: &'a AgentId,
    work: &'a Work,
    executor: &'a ExecutorName,
    start_time: Timestamp,
    spend: Spend,
) -> AgentView<'a> {
    let (attempt, changeset) = match work {
        Work::Develop { attempt, .. } | Work::Validate { attempt, .. } => (Some(*attempt), None),
        Work::Resolve { changeset } => (None, Some(changeset)),
        Work::Plan => (None, None),
    };
    AgentView {
        id,
        role: work.role(),
        status: "",
        pid: None,
        task_id: work.task(),
        attempt,
        changeset,
        executor,
        start_time,
        end_time: None,
        spend: spend.into(),
        budget: None,
    }
}

/// `status.json`: where the session stands, in one look.
#[derive(Debug, Serialize)]
pub struct StatusFile<'a> {
    pub session_id: &'a SessionId,
    pub goal: &'a str,
    pub stage: StageView,
    pub wave_cycle: u32,
    pub max_wave_cycles: u32,
    /// How many tasks stand where; steps without tasks are left out.
    pub tasks: BTreeMap<Step, usize>,
    pub running: Vec<&'a AgentId>,
    #[serde(flatten)]
    pub spend: SpendView,
    pub budget: Budget,
    /// Shares of lost agents, which count as spent too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_off: Option<Budget>,
    /// The share of the budget from which on people are warned is used up.
    pub budget_warning: bool,
    pub waiting_for: Option<&'a Gate>,
    /// When the first of the pauses ends.
    pub paused_until: Option<Timestamp>,
    /// The end of each, by account.
    #[serde(skip_serializing_if = "Pauses::is_empty")]
    pub pauses: &'a Pauses,
    /// Work that waits because its provider was overloaded.
    #[serde(skip_serializing_if = "BackOffs::is_empty")]
    pub back_offs: &'a BackOffs,
    pub config_changed: bool,
    pub publishing: &'a Publishing,
    pub started: Timestamp,
    pub updated: Timestamp,
    pub events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StageView {
    Planning,
    BetweenCycles,
    Development,
    Validation,
    Merge,
    Stopping,
    Suspended,
    Ended(End),
}

pub fn stage(state: &State) -> StageView {
    match state.stage {
        Stage::Ended(end) => StageView::Ended(end),
        _ if state.suspended => StageView::Suspended,
        _ if state.stopping => StageView::Stopping,
        Stage::Closing(_) => StageView::Stopping,
        Stage::Planning => StageView::Planning,
        Stage::CycleDue => StageView::BetweenCycles,
        Stage::Wave(Wave::Development) => StageView::Development,
        Stage::Wave(Wave::Validation) => StageView::Validation,
        Stage::Wave(Wave::Merge) => StageView::Merge,
    }
}

pub fn status_file(state: &State) -> StatusFile<'_> {
    let mut tasks: BTreeMap<Step, usize> = BTreeMap::new();
    for task in state.board.tasks() {
        *tasks.entry(task.step()).or_default() += 1;
    }
    StatusFile {
        session_id: &state.session,
        goal: &state.goal,
        stage: stage(state),
        wave_cycle: state.cycle,
        max_wave_cycles: state.rules.max_wave_cycles,
        tasks,
        running: state.crew.live().keys().collect(),
        spend: state.crew.spent().into(),
        budget: state.crew.session_budget(),
        written_off: state.crew.written_off(),
        budget_warning: state.crew.is_nearly_spent(state.rules.warn_percent),
        waiting_for: state.gate.as_ref(),
        paused_until: state.pauses.next_end(),
        pauses: &state.pauses,
        back_offs: &state.back_offs,
        config_changed: state.config_drifted,
        publishing: &state.publishing,
        started: state.started_at,
        updated: state.last_at,
        events: state.events,
    }
}
