//! The page as one JSON document: `status.json` with more in it.

use std::collections::BTreeMap;

use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, ChangesetId, ExecutorName, GroupName, Role, TaskId};
use blueflame_core::money::Budget;
use blueflame_core::projection::{self, SpendView, StatusFile};
use blueflame_core::skill::Handed;
use blueflame_core::state::merging::ChangesetPhase;
use blueflame_core::state::task::Step;
use blueflame_core::state::{Proven, State};
use serde::Serialize;

use super::rows;
use super::{Orchestrator, Scene};
use crate::repo_lock::Holder;

/// Where a session stands.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    #[serde(flatten)]
    status: StatusFile<'a>,
    /// What agents at work hold of the budget beyond what they have spent.
    held: Option<Budget>,
    /// What of the budget is neither spent nor held.
    left: Option<Budget>,
    /// What the session does without that would make it safer.
    weaker: &'a [String],
    /// What was proven of the boundaries before it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    proven: Option<&'a Proven>,
    /// The skills that the last agent of each role was given.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skills: &'a BTreeMap<Role, Vec<Handed>>,
    orchestrator: OrchestratorView<'a>,
    task_list: Vec<TaskView<'a>>,
    agents: Vec<AgentView<'a>>,
    changesets: Vec<ChangesetView<'a>>,
}

/// Whether somebody works on the session.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum OrchestratorView<'a> {
    Unknown,
    None,
    Running {
        #[serde(flatten)]
        holder: Option<&'a Holder>,
    },
    /// It works on another session.
    Elsewhere {
        #[serde(flatten)]
        holder: &'a Holder,
    },
}

#[derive(Debug, Serialize)]
struct TaskView<'a> {
    id: &'a TaskId,
    group: &'a GroupName,
    title: &'a str,
    /// `null` as long as the plan waits for approval.
    phase: Option<Step>,
    attempts: u32,
    agent: Option<&'a AgentId>,
    #[serde(flatten)]
    spend: SpendView,
    remark: Option<String>,
}

#[derive(Debug, Serialize)]
struct AgentView<'a> {
    id: &'a AgentId,
    role: Role,
    work: &'a Work,
    executor: &'a ExecutorName,
    elapsed_seconds: u64,
    #[serde(flatten)]
    spend: SpendView,
}

#[derive(Debug, Serialize)]
struct ChangesetView<'a> {
    id: &'a ChangesetId,
    group: &'a GroupName,
    tasks: &'a [TaskId],
    phase: &'a ChangesetPhase,
}

/// Everything that is on the page, for scripts.
pub fn document<'a>(state: &'a State, scene: &'a Scene) -> Document<'a> {
    let tasks = rows::tasks(state).into_iter().map(|row| TaskView {
        id: row.id,
        group: row.group,
        title: row.title,
        phase: row.phase,
        attempts: row.attempts,
        agent: row.agent,
        spend: row.spend.into(),
        remark: row.remark,
    });
    let agents = rows::agents(state, scene.seen(state)).into_iter().map(|row| AgentView {
        id: row.id,
        role: row.role,
        work: row.work,
        executor: row.executor,
        elapsed_seconds: row.seconds,
        spend: row.spend.into(),
    });
    let changesets = rows::changesets(state).into_iter().map(|row| ChangesetView {
        id: row.id,
        group: row.group,
        tasks: row.tasks,
        phase: row.phase,
    });
    Document {
        status: projection::status_file(state),
        held: state.crew.held(),
        left: state.crew.left(),
        weaker: &state.weaker,
        proven: state.proven.as_ref(),
        skills: state.crew.skills(),
        orchestrator: match &scene.orchestrator {
            Orchestrator::NotAsked => OrchestratorView::Unknown,
            Orchestrator::Gone => OrchestratorView::None,
            Orchestrator::Here(holder) => OrchestratorView::Running { holder: holder.as_ref() },
            Orchestrator::Elsewhere(holder) => OrchestratorView::Elsewhere { holder },
        },
        task_list: tasks.collect(),
        agents: agents.collect(),
        changesets: changesets.collect(),
    }
}
