//! The person's own commands at certain moments of a session.
//!
//! Each is run at most once for one occasion, whatever happens to the
//! orchestrator meanwhile: a message that is sent twice, or a deployment that is
//! started twice, does more harm than one that is missing and said to be.

use serde::{Deserialize, Serialize};

use crate::ids::{ChangesetId, Oid, TaskId};

/// Which command it is, by its key under `hooks` in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    PostPlan,
    PreValidation,
    PostMerge,
    OnFailure,
}

impl Hook {
    pub const ALL: [Hook; 4] =
        [Hook::PostPlan, Hook::PreValidation, Hook::PostMerge, Hook::OnFailure];

    pub fn name(self) -> &'static str {
        match self {
            Hook::PostPlan => "post_plan",
            Hook::PreValidation => "pre_validation",
            Hook::PostMerge => "post_merge",
            Hook::OnFailure => "on_failure",
        }
    }
}

/// What a hook is run for. No two are the same in one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// The person approved a plan; they are counted from 1.
    PlanApproved { plan: u32 },
    /// The first validation of a cycle is about to begin.
    ValidationDue { cycle: u32 },
    /// A changeset landed, and its way to the base branch is clear: it is
    /// there, it has to wait, or it was never to go there.
    Landed { changeset: ChangesetId, commit: Oid, published: bool },
    /// A task failed for good, as far as this cycle goes.
    TaskFailed { task: TaskId, attempt: u32, reason: String },
}

impl Occasion {
    pub fn hook(&self) -> Hook {
        match self {
            Occasion::PlanApproved { .. } => Hook::PostPlan,
            Occasion::ValidationDue { .. } => Hook::PreValidation,
            Occasion::Landed { .. } => Hook::PostMerge,
            Occasion::TaskFailed { .. } => Hook::OnFailure,
        }
    }

    /// The task it is about, if it is about one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Occasion::TaskFailed { task, .. } => Some(task),
            Occasion::PlanApproved { .. }
            | Occasion::ValidationDue { .. }
            | Occasion::Landed { .. } => None,
        }
    }

    /// The changeset it is about, if it is about one.
    pub fn changeset(&self) -> Option<&ChangesetId> {
        match self {
            Occasion::Landed { changeset, .. } => Some(changeset),
            Occasion::PlanApproved { .. }
            | Occasion::ValidationDue { .. }
            | Occasion::TaskFailed { .. } => None,
        }
    }
}

/// What came of a hook. Nothing of it changes what the session does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookResult {
    Passed,
    Failed {
        reason: String,
    },
    /// It was ended together with the session, or nobody was there to see its
    /// end. It is not run again.
    CutShort,
}
