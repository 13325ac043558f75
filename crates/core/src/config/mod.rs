//! The configuration, checked: what is in here needs no second look.
//!
//! [`read`] takes the bytes of a `blueflame.yaml` and gives the checked
//! [`Config`], or every problem with it. The file as written, with its
//! defaults, is [`ConfigFile`].

mod check;
pub mod file;
mod migrate;
mod schema;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};

pub use check::holds_credentials;
pub use file::{
    ConfigFile, Dialect, MergeTarget, NEWEST_SCHEMA, NamingStyle, ProcessLimit, SandboxMode,
};
pub(crate) use schema::titled;
pub use schema::{key_paths, schema};

use crate::forecast::Estimates;
use crate::hook::Hook;
use crate::ids::{AccountName, ExecutorName, Role, SessionId, SkillName};
use crate::lock_path::LockPath;
use crate::money::{Budget, Usd};
use crate::path_pattern::PathPattern;
use crate::path_rules::PathRules;
use crate::rules::{PerRole, Rules, WaveMode};
use crate::yaml::{Document, Limits as ReadLimits, Problem, Severity};

/// The executors that need no definition.
pub const BUILT_IN_EXECUTORS: [&str; 4] = ["claude", "codex", "opencode", "embedded"];

#[derive(Clone, Debug)]
pub struct Config {
    pub project: Project,
    pub concurrency: Concurrency,
    pub limits: Limits,
    pub sandbox: Sandbox,
    pub planning: Planning,
    pub models: PerRole<String>,
    pub executors: Executors,
    pub gateway: Gateway,
    pub worktree: Worktree,
    pub permissions: Permissions,
    pub validation: Validation,
    pub merge: Merge,
    pub waves: WaveMode,
    pub skills: Skills,
    pub memory: Option<Memory>,
    pub hooks: Hooks,
    pub estimates: Estimates,
}

#[derive(Clone, Debug)]
pub struct Project {
    /// `None` stands for the name of the repository's directory.
    pub name: Option<String>,
    /// As written; relative to the directory of the file.
    pub repo: String,
    pub base_branch: String,
    pub worktree_dir: LockPath,
    pub tasks_file: LockPath,
}

#[derive(Clone, Debug)]
pub struct Concurrency {
    pub workers: u32,
    pub validators: u32,
    /// In MiB; `None` when the number of agents does not follow the memory.
    pub memory_per_agent_mb: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub agent_timeout: Duration,
    pub idle_timeout: Duration,
    pub heartbeat_interval: Duration,
    pub max_retries: u32,
    pub max_wave_cycles: u32,
    pub session_budget: Budget,
    pub agent_budgets: PerRole<Budget>,
    /// From 0 to 100.
    pub warn_percent: u8,
}

#[derive(Clone, Debug)]
pub struct Sandbox {
    pub mode: SandboxMode,
    /// Absolute, or starting with `~/`; none of them holds credentials.
    pub read: Vec<String>,
    pub max_cpu_seconds: u64,
    pub max_memory_mb: u64,
    pub max_file_size_mb: u64,
    pub max_open_files: u64,
    pub max_disk_mb: u64,
    pub process_limit: ProcessLimit,
}

#[derive(Clone, Debug)]
pub struct Planning {
    pub interactive: bool,
}

#[derive(Clone, Debug)]
pub struct Executors {
    /// For each role the executors to try, best first; never empty.
    pub chains: PerRole<Vec<ExecutorName>>,
    pub custom: BTreeMap<ExecutorName, CustomExecutor>,
    /// The accounts of those that do not use the main one.
    pub accounts: BTreeMap<ExecutorName, AccountName>,
    /// The models of those that cannot use the one of the role.
    pub models: BTreeMap<ExecutorName, String>,
    /// How many agents an executor may have at a time.
    pub at_most: BTreeMap<ExecutorName, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomExecutor {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    pub dialect: Dialect,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    pub upstream: Upstream,
    pub credential_env: String,
    pub passthrough_auth: bool,
    /// Certificates that are trusted besides the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    pub record: bool,
    /// By the full name of a model; they come before the known ones.
    pub prices: BTreeMap<String, ModelPrice>,
    /// Besides the main one, which is described above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<AccountName, Account>,
}

/// An account at a provider: where requests go, and in whose name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    pub upstream: Upstream,
    pub credential_env: String,
    pub passthrough_auth: bool,
    pub ca_file: Option<String>,
}

impl Executors {
    /// The account that an executor's requests are made with.
    pub fn account_of(&self, executor: &ExecutorName) -> &AccountName {
        self.accounts.get(executor).unwrap_or(AccountName::main())
    }
}

impl Gateway {
    /// The same with an account in place of the main one, and without the others. A
    /// replay is of everything: nothing may reach a provider beside it.
    #[must_use]
    pub fn with_account(&self, name: &AccountName) -> Gateway {
        let mut gateway = Gateway { accounts: BTreeMap::new(), ..self.clone() };
        let replayed = matches!(self.upstream, Upstream::Replay(_));
        if let Some(account) = self.accounts.get(name).filter(|_| !replayed).cloned() {
            gateway.upstream = account.upstream;
            gateway.credential_env = account.credential_env;
            gateway.passthrough_auth = account.passthrough_auth;
            gateway.ca_file = account.ca_file;
        }
        gateway
    }

    /// The variables that hold keys, of all accounts.
    pub fn credential_variables(&self) -> impl Iterator<Item = &str> {
        let others = self.accounts.values().map(|account| account.credential_env.as_str());
        std::iter::once(self.credential_env.as_str()).chain(others)
    }
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    pub input: Usd,
    pub output: Usd,
    /// `None` stands for the usual share of the input price.
    pub cache_read: Option<Usd>,
    pub cache_write: Option<Usd>,
}

/// Where model requests go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    Anthropic,
    OpenAi,
    /// An `http` or `https` address.
    Url(String),
    /// A file with scripted answers, relative to the directory of the file.
    Script(String),
    /// The recorded traffic of a session.
    Replay(SessionId),
}

#[derive(Clone, Debug)]
pub struct Worktree {
    pub prepare: Vec<String>,
    pub copy: Vec<LockPath>,
    pub share: Vec<LockPath>,
    pub scratch: Vec<LockPath>,
    /// Whether working copies are laid over a checkout that they share, where that
    /// can be had.
    pub layers: bool,
}

#[derive(Clone, Debug)]
pub struct Permissions {
    pub paths: PathRules,
    pub allowed_tools: Vec<String>,
    pub blocked_tools: Vec<String>,
    /// Beginnings of commands; none is empty.
    pub allowed_commands: Vec<String>,
    pub blocked_patterns: Vec<Regex>,
}

#[derive(Clone, Debug)]
pub struct Validation {
    pub acceptance: Vec<String>,
    pub commit_format: Option<CommitFormat>,
    pub file_naming: FileNaming,
    /// `None` when tests are not required.
    pub require_tests: Option<RequireTests>,
    pub enforce_file_scope: bool,
    /// `None` when validators may run nothing.
    pub diagnostics: Option<Diagnostics>,
}

#[derive(Clone, Debug)]
pub struct CommitFormat {
    pub pattern: Regex,
    /// Fits the pattern.
    pub example: Option<String>,
}

#[derive(Clone, Debug)]
pub struct FileNaming {
    pub style: NamingStyle,
    pub enforce_for: Vec<PathPattern>,
}

#[derive(Clone, Debug)]
pub struct RequireTests {
    pub sources: Vec<PathPattern>,
    pub tests: Vec<PathPattern>,
}

#[derive(Clone, Debug)]
pub struct Diagnostics {
    pub commands: Vec<String>,
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Merge {
    pub verify: Vec<String>,
    pub target: MergeTarget,
}

/// Which skills agents should get, and where else to look for them.
#[derive(Clone, Debug)]
pub struct Skills {
    pub wanted: PerRole<Vec<SkillName>>,
    /// Those that the person wrote down: they are missed if they are not there.
    pub named: Vec<SkillName>,
    /// Names that the person wrote and that are others now, with those.
    pub renamed: Vec<(String, &'static str)>,
    /// Absolute, or starting with `~/`.
    pub folders: Vec<String>,
    pub trust_repository: bool,
    /// No agent may use a skill at all.
    pub tool_blocked: bool,
}

#[derive(Clone, Debug)]
pub struct Memory {
    pub archive_after_wave: bool,
    pub include_failure_notes: bool,
    /// The most tokens that a planner is told; a worker gets a quarter.
    pub context_tokens: usize,
    /// Whether `bd` gets a copy, once the person agreed to it on their machine.
    pub mirror: bool,
    /// `None` when memories stay as they are.
    pub decay: Option<Decay>,
}

#[derive(Clone, Debug)]
pub struct Decay {
    pub summarize_after_sessions: u32,
    pub preserve_failures_sessions: u32,
}

/// Commands of the person; `None` runs nothing.
#[derive(Clone, Debug)]
pub struct Hooks {
    pub post_plan: Option<String>,
    pub pre_validation: Option<String>,
    pub post_merge: Option<String>,
    pub on_failure: Option<String>,
    pub timeout: Duration,
}

impl Hooks {
    pub fn command(&self, hook: Hook) -> Option<&str> {
        let command = match hook {
            Hook::PostPlan => &self.post_plan,
            Hook::PreValidation => &self.pre_validation,
            Hook::PostMerge => &self.post_merge,
            Hook::OnFailure => &self.on_failure,
        };
        command.as_deref()
    }
}

impl Config {
    /// The part that decisions are made by.
    pub fn rules(&self) -> Rules {
        Rules {
            workers: self.concurrency.workers,
            validators: self.concurrency.validators,
            memory_per_agent_mb: self.concurrency.memory_per_agent_mb,
            max_retries: self.limits.max_retries,
            max_wave_cycles: self.limits.max_wave_cycles,
            session_budget: self.limits.session_budget,
            agent_budgets: self.limits.agent_budgets.clone(),
            warn_percent: self.limits.warn_percent,
            waves: self.waves,
            executors: self.executors.chains.clone(),
            accounts: self.executors.accounts.clone(),
            executor_caps: self.executors.at_most.clone(),
            publish: self.merge.target == MergeTarget::Base,
            hooks: Hook::ALL.into_iter().filter(|it| self.hooks.command(*it).is_some()).collect(),
            estimates: self.estimates.clone(),
        }
    }

    /// Whether agents of this role, or the session, have a budget in dollars.
    pub fn counts_dollars(&self, role: Role) -> bool {
        let dollars = |budget: &Budget| matches!(budget, Budget::Usd(_));
        dollars(&self.limits.session_budget) || dollars(self.limits.agent_budgets.of(role))
    }
}

/// What came out of reading a file.
#[derive(Debug)]
pub struct Reading {
    /// The file in its newest form with all defaults; `None` when it was too
    /// broken for that. Trust its values only if there is a `config`.
    pub file: Option<ConfigFile>,
    /// There unless a problem is an error.
    pub config: Option<Config>,
    pub problems: Vec<Problem>,
    /// What was assumed for a file of an older version.
    pub notes: Vec<String>,
}

impl Reading {
    /// The configuration and its warnings, or all problems.
    pub fn into_result(self) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
        match self.config {
            Some(config) => Ok((config, self.problems)),
            None => Err(self.problems),
        }
    }
}

/// Reads and checks a configuration file.
pub fn read(bytes: &[u8]) -> Reading {
    let document = match Document::parse(bytes, ReadLimits::CONFIG) {
        Ok(document) => document,
        Err(problems) => return Reading { file: None, config: None, problems, notes: Vec::new() },
    };
    let version = migrate::version(&document);
    let (file, problems) = document.read::<ConfigFile>();
    let Some(mut file) = file else {
        let problems = problems.into_sorted();
        return Reading { file: None, config: None, problems, notes: Vec::new() };
    };
    let notes = migrate::to_newest(&mut file, version.number);
    for problem in version.problems {
        problems.push(problem);
    }
    let broken = problems.has_errors();
    let mut problems = problems.into_sorted();
    let (config, found) = check::check(&file);
    // A value that could not be read was replaced by a placeholder; what is
    // wrong with the placeholder is not the person's problem.
    let known = |problem: &Problem| problems.iter().any(|earlier| earlier.hides(problem));
    let fresh: Vec<Problem> = found.into_iter().filter(|problem| !known(problem)).collect();
    let broken = broken || fresh.iter().any(|problem| problem.severity == Severity::Error);
    problems.extend(fresh);
    problems.sort_by_key(|problem| problem.span.map_or(usize::MAX, |span| span.start));
    Reading { file: Some(file), config: config.filter(|_| !broken), problems, notes }
}
