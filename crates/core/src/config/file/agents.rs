//! Which agents run, with which models, and what confines them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::yaml::Spanned;

/// The model of each role: an alias such as `sonnet`, or a full model name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Models {
    /// Model that makes the plan.
    pub planner: Spanned<String>,
    /// Model that does the tasks.
    pub worker: Spanned<String>,
    /// Model that judges finished tasks.
    pub validator: Spanned<String>,
    /// Model that resolves conflicts.
    pub merger: Spanned<String>,
}

impl Default for Models {
    fn default() -> Self {
        Models {
            planner: "sonnet".into(),
            worker: "sonnet".into(),
            validator: "haiku".into(),
            merger: "sonnet".into(),
        }
    }
}

/// Which agent program runs which role: `claude`, `codex`, `opencode`,
/// `embedded` or a name from `custom`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Executors {
    /// Runs every role that has no executor of its own.
    pub default: Spanned<String>,
    /// Runs planners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner: Option<Spanned<String>>,
    /// Runs workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Spanned<String>>,
    /// Runs validators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validator: Option<Spanned<String>>,
    /// Runs mergers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merger: Option<Spanned<String>>,
    /// Tried in this order when an executor is missing or keeps failing.
    pub fallback: Vec<Spanned<String>>,
    /// Which account from `gateway.accounts` an executor uses, by its name
    /// [default: the one that `gateway` itself describes].
    pub accounts: BTreeMap<String, Spanned<String>>,
    /// The model of an executor, by its name, in place of the one in `models`; a
    /// task that names one goes before it.
    pub models: BTreeMap<String, Spanned<String>>,
    /// How many agents an executor may have at a time, by its name.
    pub at_most: BTreeMap<String, Spanned<u32>>,
    /// Agent programs of your own, by name.
    pub custom: BTreeMap<String, Spanned<CustomExecutor>>,
}

impl Default for Executors {
    fn default() -> Self {
        Executors {
            default: "claude".into(),
            planner: None,
            worker: None,
            validator: None,
            merger: None,
            fallback: Vec::new(),
            accounts: BTreeMap::new(),
            models: BTreeMap::new(),
            at_most: BTreeMap::new(),
            custom: BTreeMap::new(),
        }
    }
}

/// An agent program of your own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CustomExecutor {
    /// The program and its arguments. It gets the task on standard input.
    pub command: Vec<Spanned<String>>,
    /// How its output is understood.
    pub dialect: Spanned<Dialect>,
}

/// How the output of an agent program is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Plain text; the exit code says how it went.
    #[default]
    Plain,
    /// The JSON lines that `claude` writes.
    ClaudeStream,
    /// The JSON lines that `codex` writes.
    CodexJson,
    /// The JSON lines that `opencode` writes.
    OpencodeJson,
}

/// What stands between agents and the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gateway {
    /// Where model requests go: `anthropic`, `openai`, a URL, `script:FILE`
    /// (answers from a file, for tests) or `replay:SESSION`.
    pub upstream: Spanned<String>,
    /// Environment variable that holds the API key. Agents never see it.
    pub credential_env: Spanned<String>,
    /// Forward the agent's own login instead of using a key.
    pub passthrough_auth: Spanned<bool>,
    /// File with certificates (PEM) to trust besides the usual ones, for a
    /// provider of your own or behind a company's proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<Spanned<String>>,
    /// Keep the model traffic, so that the session can be replayed.
    pub record: Spanned<bool>,
    /// What models cost that Blue Flame does not know, or other prices for
    /// those it does, by the full name of the model.
    pub prices: BTreeMap<String, Spanned<ModelPrice>>,
    /// Further accounts, by name, for the executors that `executors.accounts`
    /// names. A pause that a provider asks for is for one account.
    pub accounts: BTreeMap<String, Spanned<Account>>,
}

/// One more account, with a key and limits of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Account {
    /// Where its requests go: `anthropic`, `openai`, a URL or `script:FILE`.
    pub upstream: Spanned<String>,
    /// Environment variable that holds its API key.
    pub credential_env: Spanned<String>,
    /// Forward the agent's own login instead of using a key.
    pub passthrough_auth: Spanned<bool>,
    /// File with certificates (PEM) to trust besides the usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<Spanned<String>>,
}

impl Default for Account {
    fn default() -> Self {
        let Gateway { upstream, credential_env, passthrough_auth, ca_file, .. } =
            Gateway::default();
        Account { upstream, credential_env, passthrough_auth, ca_file }
    }
}

/// What a model costs, in dollars for a million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelPrice {
    /// Dollars for a million tokens that the model reads.
    pub input: Spanned<f64>,
    /// Dollars for a million tokens that the model writes.
    pub output: Spanned<f64>,
    /// Dollars for a million tokens read from its cache [default: a tenth of
    /// `input`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Spanned<f64>>,
    /// Dollars for a million tokens written to its cache [default: five
    /// quarters of `input`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Spanned<f64>>,
}

impl Default for Gateway {
    fn default() -> Self {
        Gateway {
            upstream: "anthropic".into(),
            credential_env: "ANTHROPIC_API_KEY".into(),
            passthrough_auth: false.into(),
            ca_file: None,
            record: false.into(),
            prices: BTreeMap::new(),
            accounts: BTreeMap::new(),
        }
    }
}

/// What each agent's working copy contains. All paths are inside the
/// repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Worktree {
    /// Commands that are run in each new working copy, in the sandbox.
    pub prepare: Vec<Spanned<String>>,
    /// Untracked files that are copied in.
    pub copy: Vec<Spanned<String>>,
    /// Directories that are shared with it, read-only or copy-on-write.
    pub share: Vec<Spanned<String>>,
    /// Directories for build output: writable for every task, never committed.
    pub scratch: Vec<Spanned<String>>,
    /// Lay working copies over a checkout that they share, where the machine can
    /// do that. Otherwise each is a copy on btrfs, and a checkout of its own elsewhere.
    pub layers: bool,
}

impl Default for Worktree {
    fn default() -> Self {
        Worktree {
            prepare: Vec::new(),
            copy: Vec::new(),
            share: Vec::new(),
            scratch: Vec::new(),
            layers: true,
        }
    }
}

/// What confines an agent's process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Which boundary is used.
    pub mode: Spanned<SandboxMode>,
    /// Directories outside the repository that agents may read, absolute or
    /// starting with `~/`.
    pub read: Vec<Spanned<String>>,
    /// Seconds of processor time for one process of an agent.
    #[schemars(range(min = 1))]
    pub max_cpu_seconds: Spanned<u64>,
    /// Memory for one agent, in MiB; a command of the project has four times as much.
    #[schemars(range(min = 64))]
    pub max_memory_mb: Spanned<u64>,
    /// Size of one file that an agent writes, in MiB.
    #[schemars(range(min = 1))]
    pub max_file_size_mb: Spanned<u64>,
    /// Files that one process has open at the same time.
    #[schemars(range(min = 64))]
    pub max_open_files: Spanned<u64>,
    /// How much of the disk an agent or a command fills, in MiB.
    #[schemars(range(min = 16))]
    pub max_disk_mb: Spanned<u64>,
    /// Who counts the processes of an agent.
    pub process_limit: Spanned<ProcessLimit>,
    /// Must be false: agents reach their model through the gateway and
    /// nothing else.
    pub allow_network: Spanned<bool>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox {
            mode: SandboxMode::Auto.into(),
            read: Vec::new(),
            max_cpu_seconds: 600.into(),
            max_memory_mb: 2048.into(),
            max_file_size_mb: 50.into(),
            max_open_files: 1024.into(),
            max_disk_mb: 20_480.into(),
            process_limit: ProcessLimit::Kernel.into(),
            allow_network: false.into(),
        }
    }
}

/// Who counts the processes of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessLimit {
    /// The kernel; where it does not, nothing is started.
    #[default]
    Kernel,
    /// The kernel where it does, and else a look up to ten times a second, which a
    /// quick fork bomb outruns for a moment.
    Watched,
}

/// Which boundary is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// The strongest, or nothing is started.
    #[default]
    Auto,
    /// Linux namespaces: the strongest.
    Namespaces,
    /// Landlock rules of the Linux kernel: weaker.
    Landlock,
    /// No boundary: agents can change and read everything that you can.
    Off,
}
