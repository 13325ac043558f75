//! `blueflame.yaml` as it is written: every key, with its default.
//!
//! These types are the one place for keys and defaults. The reader, the JSON
//! Schema and `config show` are all made from them, and the comments are the
//! descriptions that editors show. Nothing here is checked yet.

mod agents;
mod limits;
mod permissions;
mod session;
mod validation;

pub use agents::{
    Account, CustomExecutor, Dialect, Executors, Gateway, ModelPrice, Models, ProcessLimit,
    Sandbox, SandboxMode, Worktree,
};
pub use limits::{Concurrency, Limits, TokenBudget};
pub use permissions::{BashRules, Permissions};
pub use session::{
    Beads, DecayPolicy, Forecast, Hooks, Merge, MergeTarget, Planning, Project, Skills,
    Superpowers, WavePace, Waves,
};
pub use validation::{
    CommitFormat, FileNaming, FileScope, NamingStyle, RequireTests, Validation,
    ValidatorDiagnostics,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::yaml::Spanned;

/// The newest `schema_version` this program reads.
pub const NEWEST_SCHEMA: u32 = 2;

/// The configuration of Blue Flame for one repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// Version of this file's format: 2 is the current one. Files of version 1
    /// are understood as well. Without it, the file is read as version 1.
    #[schemars(range(min = 1, max = 2))]
    pub schema_version: Spanned<u32>,
    pub project: Project,
    pub concurrency: Concurrency,
    pub limits: Limits,
    pub sandbox: Sandbox,
    pub planning: Planning,
    pub models: Models,
    pub executors: Executors,
    pub gateway: Gateway,
    pub worktree: Worktree,
    pub permissions: Permissions,
    pub validation: Validation,
    pub merge: Merge,
    pub waves: Waves,
    pub superpowers: Superpowers,
    pub skills: Skills,
    pub beads: Beads,
    pub hooks: Hooks,
    pub forecast: Forecast,
}

impl Default for ConfigFile {
    fn default() -> Self {
        ConfigFile {
            schema_version: NEWEST_SCHEMA.into(),
            project: Project::default(),
            concurrency: Concurrency::default(),
            limits: Limits::default(),
            sandbox: Sandbox::default(),
            planning: Planning::default(),
            models: Models::default(),
            executors: Executors::default(),
            gateway: Gateway::default(),
            worktree: Worktree::default(),
            permissions: Permissions::default(),
            validation: Validation::default(),
            merge: Merge::default(),
            waves: Waves::default(),
            superpowers: Superpowers::default(),
            skills: Skills::default(),
            beads: Beads::default(),
            hooks: Hooks::default(),
            forecast: Forecast::default(),
        }
    }
}

/// A list of texts that nobody wrote.
fn texts(list: &[&str]) -> Vec<Spanned<String>> {
    list.iter().map(|text| Spanned::from(*text)).collect()
}
