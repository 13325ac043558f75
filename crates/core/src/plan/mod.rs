//! The plan: what has to be done, by tasks that can be done alone.

mod check;
mod file;
mod order;
mod relations;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use crate::config::{self, BUILT_IN_EXECUTORS, Config};
use crate::ids::{ExecutorName, GroupName, TaskId};
use crate::lock_path::LockPath;
use crate::path_rules::PathRules;
use crate::yaml::Problem;

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
    /// How long a worker will probably take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorName>,
}

/// How much could go wrong.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    Low,
    Mid,
    High,
}

/// What a plan is checked against.
#[derive(Clone, Debug)]
pub struct PlanContext<'c> {
    pub paths: &'c PathRules,
    /// Names that a task may give as its executor.
    pub executors: Vec<&'c str>,
    pub commit_format: Option<&'c config::CommitFormat>,
    /// Tasks of earlier plans that have landed: a new plan may build on them,
    /// but not use their ids again.
    pub landed: BTreeSet<TaskId>,
}

impl<'c> PlanContext<'c> {
    pub fn of(config: &'c Config) -> Self {
        let custom = config.executors.custom.keys().map(ExecutorName::as_str);
        PlanContext {
            paths: &config.permissions.paths,
            executors: BUILT_IN_EXECUTORS.into_iter().chain(custom).collect(),
            commit_format: config.validation.commit_format.as_ref(),
            landed: BTreeSet::new(),
        }
    }

    /// For a plan in the middle of a session.
    #[must_use]
    pub fn after(self, landed: BTreeSet<TaskId>) -> Self {
        PlanContext { landed, ..self }
    }
}

impl Plan {
    /// Reads a plan, YAML or JSON, and checks it: the plan with its warnings,
    /// or every problem that keeps it from being worked on.
    pub fn read(
        bytes: &[u8],
        context: &PlanContext<'_>,
    ) -> Result<(Plan, Vec<Problem>), Vec<Problem>> {
        check::read(bytes, context)
    }
}

/// The JSON Schema that a planner's answer must follow.
pub fn schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    config::titled(generator.into_root_schema_for::<file::PlanFile>(), "Blue Flame plan")
}
