//! A plan as a planner writes it, or as a person edits it in `tasks.yaml`.
//!
//! Everything is optional here, so that the check can say what is missing in
//! which task. The comments are the descriptions that a planner is given.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Risk;
use crate::yaml::Spanned;

/// A plan: the tasks that together do what was asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    /// The tasks. An empty list means that there is nothing to do.
    #[schemars(required)]
    pub tasks: Option<Vec<Spanned<TaskFile>>>,

    // What `tasks.yaml` shows besides; it may stand there and changes nothing.
    #[schemars(skip)]
    #[expect(dead_code)]
    schema_version: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    session_id: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    wave_cycle: Option<IgnoredAny>,
}

/// One task, small enough for one agent to do alone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskFile {
    /// Unique name, such as `task-001`: letters, digits, `-` and `_`.
    #[schemars(required)]
    pub id: Option<Spanned<String>>,
    /// What the task does, in one line.
    #[schemars(required)]
    pub title: Option<Spanned<String>>,
    /// All that the agent needs to know to do the task.
    #[schemars(required)]
    pub description: Option<Spanned<String>>,
    /// Tasks with a lower number go first.
    #[schemars(required)]
    pub priority: Option<Spanned<u32>>,
    /// Tasks of one group are reviewed and landed together. Without it, the
    /// task is a group of its own.
    pub cohesion_group: Option<Spanned<String>>,
    /// Ids of tasks that must be finished before this one starts.
    pub dependencies: Option<Vec<Spanned<String>>>,
    /// Files and directories that this task alone may change. A directory
    /// covers everything below it.
    #[schemars(required)]
    pub file_locks: Option<Vec<Spanned<String>>>,
    /// Commands that must succeed when the task is done.
    pub acceptance: Option<Vec<Spanned<String>>>,
    /// How much could go wrong.
    pub risk: Option<Spanned<Risk>>,
    /// How long a worker will probably take, in minutes. Forecasts use it.
    #[schemars(range(min = 1, max = 1440))]
    pub estimate_minutes: Option<Spanned<u32>>,
    /// Model for this task, instead of the configured one.
    pub model: Option<Spanned<String>>,
    /// Executor for this task, instead of the configured one.
    pub executor: Option<Spanned<String>>,

    #[schemars(skip)]
    #[expect(dead_code)]
    status: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    agent_id: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    worktree: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    branch: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    retry_count: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    result: Option<IgnoredAny>,
    #[schemars(skip)]
    #[expect(dead_code)]
    history: Option<IgnoredAny>,
}
