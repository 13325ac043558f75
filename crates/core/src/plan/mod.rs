//! The plan: what has to be done, by tasks that can be done alone.

use serde::{Deserialize, Serialize};

use crate::ids::{ExecutorName, GroupName, TaskId};
use crate::lock_path::LockPath;

/// A checked plan: ids are unique, dependencies known and free of circles,
/// and the groups can be put in an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub tasks: Vec<TaskSpec>,
}

/// One task as planned; what becomes of it is in the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub id: TaskId,
    pub title: String,
    pub description: String,
    /// Lower goes first.
    pub priority: u32,
    #[serde(rename = "cohesion_group")]
    pub group: GroupName,
    #[serde(default)]
    pub dependencies: Vec<TaskId>,
    pub file_locks: Vec<LockPath>,
    /// Commands that must succeed on the task's commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    Low,
    Mid,
    High,
}
