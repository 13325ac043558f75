//! Questions only a person can answer, and the answers there are.

use serde::{Deserialize, Serialize};

use crate::ids::{ChangesetId, TaskId};
use crate::lock_path::LockPath;
use crate::money::Budget;
use crate::plan::Plan;

/// A question. One is open at a time; its answer is a fact like any other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Is this the right plan?
    Plan,
    /// The validator failed this task's work: what now?
    ValidationFailed(TaskId),
    /// The validator itself keeps failing on this task: what now?
    ValidatorFailed(TaskId),
    /// Should this changeset land?
    Changeset(ChangesetId),
    /// The session's budget is spent: raise it or stop?
    Budget,
    /// A wave cycle is over and work remains: go on?
    Session,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Plan(PlanAnswer),
    ValidationFailed(ValidationAnswer),
    ValidatorFailed(ValidatorAnswer),
    Changeset(ChangesetAnswer),
    Budget(BudgetAnswer),
    Session(SessionAnswer),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAnswer {
    Approve,
    Quit,
    Replan {
        notes: String,
    },
    /// The person's own version, checked; it is shown again for approval.
    Edit {
        plan: Plan,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidationAnswer {
    Requeue {
        #[serde(default)]
        notes: String,
    },
    Edit {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_locks: Option<Vec<LockPath>>,
    },
    Drop,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidatorAnswer {
    /// The person looked at the diff and takes it.
    ManualPass,
    /// The task counts as failed.
    Skip,
    /// Another validator may try.
    Retry,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesetAnswer {
    Approve,
    /// Neither approved nor rejected: shown again in the next cycle.
    Skip,
    Reject {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetAnswer {
    Stop,
    /// More, in the unit of the session's budget.
    Raise {
        by: Budget,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionAnswer {
    /// On to the next cycle, giving the named failed or dropped tasks another
    /// chance.
    Continue {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        retry: Vec<TaskId>,
    },
    Replan {
        notes: String,
    },
    Stop,
}
