//! The tasks, agents and changesets of a session, one row each.

use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, ChangesetId, ExecutorName, GroupName, Role, TaskId};
use blueflame_core::money::Spend;
use blueflame_core::state::merging::{Changeset, ChangesetPhase};
use blueflame_core::state::task::{Phase, Step, Task};
use blueflame_core::state::{PlanStep, State};
use jiff::Timestamp;

use crate::amounts;
use crate::narrate;

#[derive(Debug)]
pub struct TaskRow<'a> {
    pub id: &'a TaskId,
    pub group: &'a GroupName,
    pub title: &'a str,
    /// `None` as long as the plan waits for approval.
    pub phase: Option<Step>,
    pub attempts: u32,
    /// Who works on it now.
    pub agent: Option<&'a AgentId>,
    /// What all its agents have cost.
    pub spend: Spend,
    /// What a person should know about where it stands.
    pub remark: Option<String>,
}

/// The tasks of the plan. What a later plan does without is left out.
pub fn tasks(state: &State) -> Vec<TaskRow<'_>> {
    if let PlanStep::Proposed(plan) = &state.planning.step {
        let specs = plan.tasks.iter();
        return specs
            .map(|spec| TaskRow {
                id: &spec.id,
                group: &spec.group,
                title: &spec.title,
                phase: None,
                attempts: 0,
                agent: None,
                spend: Spend::default(),
                remark: None,
            })
            .collect();
    }
    let open = state.board.tasks().iter().filter(|task| task.step() != Step::Replaced);
    open.map(|task| TaskRow {
        id: &task.spec.id,
        group: &task.spec.group,
        title: &task.spec.title,
        phase: Some(task.step()),
        attempts: task.attempts,
        agent: match &task.phase {
            Phase::Working { agent } | Phase::Validating { agent, .. } => Some(agent),
            _ => None,
        },
        spend: spent_on(state, &task.spec.id),
        remark: remark(task),
    })
    .collect()
}

fn spent_on(state: &State, task: &TaskId) -> Spend {
    let past = state.crew.past().iter().map(|past| (&past.work, past.spend));
    let live = state.crew.live().values().map(|agent| (&agent.work, agent.spend));
    past.chain(live)
        .filter(|(work, _)| work.task() == Some(task))
        .fold(Spend::default(), |sum, (_, spend)| sum.plus(spend))
}

fn remark(task: &Task) -> Option<String> {
    match &task.phase {
        Phase::Failed { reason } => Some(reason.clone()),
        Phase::Blocked { by } => Some(format!("needs {by}")),
        Phase::Disputed { notes, .. } => Some(notes.clone()),
        Phase::Unjudged { .. } => Some("no validator could judge it".into()),
        Phase::Requeued => {
            task.history.entries().last().map(|entry| format!("last time: {}", entry.notes))
        }
        Phase::Pending
        | Phase::Working { .. }
        | Phase::Built { .. }
        | Phase::Inspecting { .. }
        | Phase::Done { .. }
        | Phase::Accepting { .. }
        | Phase::Accepted { .. }
        | Phase::Validating { .. }
        | Phase::Validated { .. }
        | Phase::Merged { .. }
        | Phase::Dropped { .. } => None,
    }
}

/// Where a task stands, for people.
pub fn phase_word(phase: Option<Step>) -> &'static str {
    match phase {
        None => "proposed",
        Some(Step::Waiting) => "waiting",
        Some(Step::Ready) => "ready",
        Some(Step::Requeued) => "sent back",
        Some(Step::Working) => "working",
        Some(Step::Built) => "built",
        Some(Step::Inspecting) => "inspecting",
        Some(Step::Done) => "done",
        Some(Step::Accepting) => "testing",
        Some(Step::Accepted) => "tested",
        Some(Step::Validating) => "validating",
        Some(Step::Disputed) => "disputed",
        Some(Step::Unjudged) => "unjudged",
        Some(Step::Validated) => "validated",
        Some(Step::Merged) => "merged",
        Some(Step::Failed) => "failed",
        Some(Step::Blocked) => "blocked",
        Some(Step::Dropped | Step::Replaced) => "dropped",
    }
}

#[derive(Debug)]
pub struct AgentRow<'a> {
    pub id: &'a AgentId,
    pub role: Role,
    pub work: &'a Work,
    pub does: String,
    pub executor: &'a ExecutorName,
    /// Since it was claimed.
    pub seconds: u64,
    pub spend: Spend,
    pub remark: &'static str,
}

/// The agents at work, up to a moment.
pub fn agents(state: &State, until: Timestamp) -> Vec<AgentRow<'_>> {
    let live = state.crew.live().iter();
    live.map(|(id, agent)| AgentRow {
        id,
        role: agent.work.role(),
        work: &agent.work,
        does: does(&agent.work),
        executor: &agent.executor,
        seconds: amounts::between(agent.claimed_at, until).as_secs(),
        spend: agent.spend,
        remark: if agent.stop_sent {
            "was told to stop"
        } else if agent.wants_grant {
            "waits for more budget"
        } else if agent.process.is_none() {
            "is starting"
        } else {
            ""
        },
    })
    .collect()
}

/// What an agent was started for, in few words.
pub fn does(work: &Work) -> String {
    match work {
        Work::Plan => "plans".into(),
        Work::Develop { task, attempt } => format!("{task}, attempt {attempt}"),
        Work::Validate { task, attempt } => format!("validates {task}, attempt {attempt}"),
        Work::Resolve { changeset } => format!("resolves {changeset}"),
    }
}

#[derive(Debug)]
pub struct ChangesetRow<'a> {
    pub id: &'a ChangesetId,
    pub group: &'a GroupName,
    pub tasks: &'a [TaskId],
    pub phase: &'a ChangesetPhase,
    pub stands: String,
}

/// The changesets of this cycle, in the order in which they may land.
pub fn changesets(state: &State) -> Vec<ChangesetRow<'_>> {
    let row = |changeset: &'_ Changeset| {
        let taken_back = state.reverted_by(&changeset.planned.id).is_some();
        let since = if taken_back { ", taken back since" } else { "" };
        format!("{}{since}", stands(&changeset.phase))
    };
    let all = state.merging.changesets.iter();
    all.map(|changeset| ChangesetRow {
        id: &changeset.planned.id,
        group: &changeset.planned.group,
        tasks: &changeset.tasks,
        phase: &changeset.phase,
        stands: row(changeset),
    })
    .collect()
}

fn stands(phase: &ChangesetPhase) -> String {
    match phase {
        ChangesetPhase::Planned => "planned".into(),
        ChangesetPhase::Folding => "being folded".into(),
        ChangesetPhase::Conflicted { files } => format!("conflicts in {}", files.join(", ")),
        ChangesetPhase::Resolving { agent, files } => {
            format!("{agent} resolves conflicts in {}", files.join(", "))
        }
        ChangesetPhase::Folded { .. } => "folded, to be checked".into(),
        ChangesetPhase::Verifying { .. } => "being checked".into(),
        ChangesetPhase::Verified { .. } => "checked, waits for review".into(),
        ChangesetPhase::Approved { .. } => "approved".into(),
        ChangesetPhase::Landing { .. } => "landing".into(),
        ChangesetPhase::Landed { commit } => {
            format!("landed as {}", narrate::short(commit.as_str()))
        }
        ChangesetPhase::Skipped => "skipped by the person".into(),
        ChangesetPhase::Rejected { reason } => format!("rejected: {reason}"),
        ChangesetPhase::Returned { reason } => format!("sent back: {reason}"),
        ChangesetPhase::Deferred { why } => narrate::deferral(why),
    }
}
