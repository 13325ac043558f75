//! Facts: what happened, in the past tense and complete.
//!
//! The journal is a list of these and the only thing that survives a crash.
//! An event that announces an effect (`...Started`, `AgentClaimed`) is durable
//! before the effect begins, so that recovery knows what to look for.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::gate::{Answer, Gate};
use crate::hook::{HookResult, Occasion};
use crate::ids::{
    AccountName, AgentId, ChangesetId, ExecutorName, GroupName, Oid, Role, SessionId, TaskId,
};
use crate::money::{Budget, Spend};
use crate::outcome::{Fold, Outcome};
use crate::plan::Plan;
use crate::proof::Proof;
use crate::rules::Rules;
use crate::skill::Handed;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", content = "d")]
pub enum Event {
    // The session itself.
    #[serde(rename = "session.started")]
    SessionStarted {
        session: SessionId,
        /// What the person asked for.
        goal: String,
        rules: Box<Rules>,
        /// Fingerprint of the configuration, to notice when it changes.
        config: String,
        /// A plan that the person brought along, in place of a planner's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Plan>,
        /// What this session does without that would make it safer, in words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        weaker: Vec<String>,
    },
    /// What `blueflame doctor --prove` found before the session began.
    #[serde(rename = "session.proven")]
    SessionProven {
        proof: Proof,
        /// What had changed between the two, by which it says little about this
        /// session.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outdated: Vec<String>,
    },
    /// Another orchestrator process took the session over.
    #[serde(rename = "session.resumed")]
    SessionResumed {
        /// Bytes of an unfinished last write that were set aside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repaired_bytes: Option<u64>,
        /// What `merge.verify` says now, if the one who resumed knew: what was
        /// checked otherwise is checked again before anyone is asked about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verify: Option<Vec<String>>,
    },
    /// The person asked to stop for now.
    #[serde(rename = "session.stop_requested")]
    StopRequested,
    /// The repository is in a state that only the person can put right, so the
    /// session stops.
    #[serde(rename = "session.obstructed")]
    SessionObstructed { reason: String },
    /// The orchestrator left with work still open; it can be resumed.
    #[serde(rename = "session.suspended")]
    SessionSuspended,
    #[serde(rename = "session.ended")]
    SessionEnded { end: End },

    // The pace.
    /// The next cycle begins, with its development wave.
    #[serde(rename = "cycle.started")]
    CycleStarted { cycle: u32, config: String },
    #[serde(rename = "validation.started")]
    ValidationStarted,
    #[serde(rename = "memory.sampled")]
    MemorySampled { free_mb: u64 },
    /// A provider asked everyone who uses an account to wait.
    #[serde(rename = "provider.limited")]
    ProviderLimited {
        until: Timestamp,
        #[serde(default, skip_serializing_if = "AccountName::is_main")]
        account: AccountName,
    },
    /// Every pause that is over by now has ended.
    #[serde(rename = "provider.pause_ended")]
    PauseEnded,

    // People.
    #[serde(rename = "gate.opened")]
    GateOpened { gate: Gate },
    #[serde(rename = "gate.answered")]
    GateAnswered { gate: Gate, answer: Answer },
    /// Something else settled the question while it was open.
    #[serde(rename = "gate.withdrawn")]
    GateWithdrawn { gate: Gate },

    // Agents.
    /// The claim comes before the process: a crash in between loses nothing.
    #[serde(rename = "agent.claimed")]
    AgentClaimed {
        agent: AgentId,
        work: Work,
        executor: ExecutorName,
        /// Its own limit.
        cap: Budget,
        /// Its share of the session's budget for now.
        grant: Budget,
        /// The executors that would have come before this one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        passed_over: Vec<PassedOver>,
    },
    #[serde(rename = "agent.started")]
    AgentStarted {
        agent: AgentId,
        process: Process,
        /// The skills that it was given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skills: Vec<Handed>,
    },
    /// It could not be started; the claim is taken back.
    #[serde(rename = "agent.start_failed")]
    AgentStartFailed {
        agent: AgentId,
        reason: String,
        #[serde(default, skip_serializing_if = "StartFault::is_program")]
        fault: StartFault,
    },
    /// Its running total; a repeated or late report changes nothing.
    #[serde(rename = "agent.usage")]
    UsageReported { agent: AgentId, spend: Spend },
    /// It is close to the end of its share of the session's budget.
    #[serde(rename = "agent.grant_wanted")]
    GrantWanted { agent: AgentId },
    #[serde(rename = "agent.granted")]
    Granted { agent: AgentId, grant: Budget },
    /// Its unfinished work was saved.
    #[serde(rename = "agent.snapshot")]
    SnapshotTaken { agent: AgentId, commit: Oid },
    #[serde(rename = "agent.stop_sent")]
    StopSent { agent: AgentId },
    #[serde(rename = "agent.exited")]
    AgentExited { agent: AgentId, outcome: Outcome, spend: Spend },
    /// Found gone at recovery, without a result. What it spent may be known
    /// from its own records; if not, its whole share counts as spent.
    #[serde(rename = "agent.lost")]
    AgentLost { agent: AgentId, spend: Option<Spend> },

    // Checks that the orchestrator runs itself.
    #[serde(rename = "inspection.started")]
    InspectionStarted { task: TaskId },
    #[serde(rename = "inspection.finished")]
    InspectionFinished { task: TaskId, violations: Vec<String> },
    #[serde(rename = "acceptance.started")]
    AcceptanceStarted { task: TaskId },
    #[serde(rename = "acceptance.finished")]
    AcceptanceFinished { task: TaskId, failures: Vec<String> },

    // Changesets.
    #[serde(rename = "merge.planned")]
    MergePlanned { changesets: Vec<PlannedChangeset> },
    #[serde(rename = "fold.started")]
    FoldStarted { changeset: ChangesetId, tasks: Vec<TaskId> },
    #[serde(rename = "fold.finished")]
    FoldFinished { changeset: ChangesetId, result: FoldResult },
    #[serde(rename = "verify.started")]
    VerifyStarted { changeset: ChangesetId },
    #[serde(rename = "verify.finished")]
    VerifyFinished {
        changeset: ChangesetId,
        result: VerifyResult,
        /// The commands that were run, as they were then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commands: Vec<String>,
    },
    #[serde(rename = "changeset.deferred")]
    ChangesetDeferred { changeset: ChangesetId, why: Deferral },
    #[serde(rename = "land.started")]
    LandStarted { changeset: ChangesetId },
    #[serde(rename = "land.finished")]
    LandFinished { changeset: ChangesetId, result: LandResult },
    #[serde(rename = "publish.started")]
    PublishStarted { commit: Oid },
    #[serde(rename = "publish.finished")]
    PublishFinished { commit: Oid, result: PublishResult },

    // What the person asks of a session that nobody runs.
    /// Landed work is to be brought to the base branch now.
    #[serde(rename = "publish.requested")]
    PublishRequested {
        commit: Oid,
        /// Where the base branch has moved away to, if the commit joins it with
        /// what landed: nobody has checked that tree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joins: Option<Oid>,
    },
    #[serde(rename = "joint.verify_started")]
    JointVerifyStarted { commit: Oid },
    #[serde(rename = "joint.verify_finished")]
    JointVerifyFinished { commit: Oid, result: VerifyResult },
    /// A landed changeset is to be taken back, by exactly this change.
    #[serde(rename = "revert.requested")]
    RevertRequested {
        /// Under which the undoing lands.
        changeset: ChangesetId,
        undoes: ChangesetId,
        fold: Fold,
    },
    /// Something that the session had left behind was removed.
    #[serde(rename = "session.cleaned")]
    SessionCleaned { removed: Vec<String>, bytes: u64 },
    // Commands of the person's own.
    /// Recorded before it is run, and never again for the same occasion.
    #[serde(rename = "hook.started")]
    HookStarted { number: u32, occasion: Occasion },
    #[serde(rename = "hook.finished")]
    HookFinished { number: u32, result: HookResult },
}

/// What kept an agent from being started. Journals that do not say mean its
/// program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFault {
    /// Its program is missing or cannot be used: another one may do.
    #[default]
    Program,
    /// Its place could not be made ready: no room, a failing
    /// `worktree.prepare`, work to build on that does not fit together.
    Place,
    /// The session stopped meanwhile.
    Stopped,
}

impl StartFault {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_program(&self) -> bool {
        *self == StartFault::Program
    }
}

/// What an agent was started for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Plan,
    /// Attempts at one task are numbered from 1 and never reuse a number:
    /// branches and directories are named after it.
    Develop {
        task: TaskId,
        attempt: u32,
    },
    Validate {
        task: TaskId,
        attempt: u32,
    },
    Resolve {
        changeset: ChangesetId,
    },
}

impl Work {
    pub fn role(&self) -> Role {
        match self {
            Work::Plan => Role::Planner,
            Work::Develop { .. } => Role::Worker,
            Work::Validate { .. } => Role::Validator,
            Work::Resolve { .. } => Role::Merger,
        }
    }

    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Work::Develop { task, .. } | Work::Validate { task, .. } => Some(task),
            Work::Plan | Work::Resolve { .. } => None,
        }
    }
}

/// Enough to know a process again, even after its number was reused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub start_time: u64,
    pub boot_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wave {
    Development,
    Validation,
    Merge,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChangeset {
    pub id: ChangesetId,
    pub group: GroupName,
    /// In the order in which they are folded.
    pub tasks: Vec<TaskId>,
    /// Changesets of this merge that have to land first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<ChangesetId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldResult {
    Folded(Fold),
    Conflict { files: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyResult {
    /// The check passed on exactly the folded tree.
    Passed,
    /// It failed once and passed when it was run again.
    PassedOnRerun,
    /// No check is configured; the person is told so.
    NotConfigured,
    /// It failed twice. The guilty task, if one could be singled out.
    Failed { culprit: Option<TaskId>, evidence: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deferral {
    /// A changeset that it builds on did not land.
    NeedsUnlanded(ChangesetId),
    /// None of its tasks is ready any more.
    NothingLeft,
    /// It conflicts and no merger may be started any more.
    NoBudget,
    /// Approved, but the branch it should land on would not hold still.
    BaseKeepsMoving,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandResult {
    Landed,
    /// Someone moved the branch meanwhile: fold and verify again.
    BaseMoved,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishResult {
    Published,
    /// It has to wait for the person, who is told why.
    Waiting {
        reason: String,
    },
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Every task landed.
    Complete,
    /// The plan had no tasks.
    NothingToDo,
    /// Tasks were left failed, blocked or dropped.
    Incomplete,
    /// No planner came up with a usable plan.
    PlanningFailed,
    /// The person did not want the plan.
    PlanDeclined,
    /// Every plan was sent back; time to write one by hand.
    PlanRejectedTooOften,
    /// The person stopped although work remained.
    Stopped,
    /// The budget was spent and not raised.
    Budget,
    /// The last allowed wave cycle is over and work remains.
    CycleLimit,
}

/// An executor that was not taken for some work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    pub executor: ExecutorName,
    pub because: Shortcoming,
}

/// Why it was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortcoming {
    /// It could not be started for this work, or did not do it.
    Failed,
    /// The provider of its account asked for a pause.
    Paused { until: Timestamp },
    /// Its provider was overloaded, and this work waits a while for it.
    Overloaded { until: Timestamp },
    /// It has as many agents as `executors.at_most` lets it have.
    Full { agents: u32 },
}
