//! What an attempt process is told: `spec.json`, written once by the
//! orchestrator before the process starts, and never changed.
//!
//! There is no secret in it. Secrets go over standard input, so that they are
//! in no file, no command line and no environment.

use std::path::PathBuf;
use std::time::Duration;

use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, ExecutorName, Oid, SessionId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::Budget;
use blueflame_core::policy::PolicyRules;
use serde::{Deserialize, Serialize};

use crate::executor::Order;
use crate::sandbox::Terms;

/// The version of this file's format.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub format: u32,
    pub session: SessionId,
    pub agent: AgentId,
    pub work: Work,
    pub executor: ExecutorName,
    /// What the executor is, if it is one of the person's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<config::CustomExecutor>,
    /// The agent program; absolute.
    pub program: PathBuf,
    /// Where it works; absolute.
    pub workspace: PathBuf,
    /// The commit that it finds there.
    pub start: Oid,
    /// `PATH` for the agent and all that it starts.
    pub path: String,
    pub author: Author,
    pub order: Order,
    pub policy: PolicyRules,
    /// What confines the agent's processes.
    pub sandbox: Terms,
    pub limits: Limits,
    pub model: Model,
    /// `None` for those who change nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Snapshots>,
}

/// Whose name is on the agent's commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Author {
    pub name: String,
    pub email: String,
}

impl Author {
    /// The program itself, for where the person has not told git who they are.
    pub fn program() -> Author {
        Author { name: "Blue Flame".into(), email: "blueflame@localhost".into() }
    }
}

/// What the attempt process holds its agent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// From start to end.
    pub wall: Duration,
    /// Without any sign of life: no output, no request, no tool call.
    pub idle: Duration,
    /// Between being asked to stop and being killed.
    pub grace: Duration,
    /// Its own budget.
    pub cap: Budget,
    /// Its share of the session's budget at the start.
    pub grant: Budget,
    /// How long a request waits for a larger share.
    pub grant_wait: Duration,
    /// How often its attempt process says that it is there; not at all, if it
    /// is older than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Duration>,
}

/// Where its model is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub gateway: config::Gateway,
    /// Where relative paths of scripts start.
    pub directory: PathBuf,
    /// Traffic to answer from, for a replay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<PathBuf>,
}

/// How unfinished work is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshots {
    pub every: Duration,
    /// The object store that has what the work started from.
    pub objects: PathBuf,
    /// Build output and the like, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<LockPath>,
}

/// What is never written down.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    #[serde(default)]
    pub credential: Option<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(..)")
    }
}
