//! What a session holds itself to while it decides.
//!
//! The part of the configuration that scheduling, retries and budgets need,
//! already checked. It is written into the journal when a session starts, so
//! that a replay decides by the rules of its day and not by today's file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::forecast::Estimates;
use crate::hook::Hook;
use crate::ids::{AccountName, ExecutorName, Role};
use crate::money::Budget;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    pub workers: u32,
    pub validators: u32,
    /// Free memory that each agent must find, in MiB; `None` leaves the
    /// number of agents to `workers` and `validators` alone.
    pub memory_per_agent_mb: Option<u64>,
    pub max_retries: u32,
    pub max_wave_cycles: u32,
    pub session_budget: Budget,
    pub agent_budgets: PerRole<Budget>,
    /// Share of a budget, in percent, from which on people are warned.
    pub warn_percent: u8,
    pub waves: WaveMode,
    /// For each role the executors to try, best first; never empty.
    pub executors: PerRole<Vec<ExecutorName>>,
    /// The accounts of those executors that do not use the main one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<ExecutorName, AccountName>,
    /// How many agents an executor may have at a time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub executor_caps: BTreeMap<ExecutorName, u32>,
    /// Whether landed work goes on to the base branch, or stays on its own.
    pub publish: bool,
    /// The hooks that there are commands for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// What a forecast is made from. Nothing is decided by it.
    #[serde(default, skip_serializing_if = "Estimates::are_usual")]
    pub estimates: Estimates,
}

impl Rules {
    /// The account that an executor's requests are made with.
    pub fn account_of(&self, executor: &ExecutorName) -> &AccountName {
        self.accounts.get(executor).unwrap_or(AccountName::main())
    }
}

/// One value for each role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerRole<T> {
    pub planner: T,
    pub worker: T,
    pub validator: T,
    pub merger: T,
}

impl<T> PerRole<T> {
    pub fn of(&self, role: Role) -> &T {
        match role {
            Role::Planner => &self.planner,
            Role::Worker => &self.worker,
            Role::Validator => &self.validator,
            Role::Merger => &self.merger,
        }
    }

    pub fn of_mut(&mut self, role: Role) -> &mut T {
        match role {
            Role::Planner => &mut self.planner,
            Role::Worker => &mut self.worker,
            Role::Validator => &mut self.validator,
            Role::Merger => &mut self.merger,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaveMode {
    /// All development, then all validation, then the merge.
    #[default]
    Strict,
    /// A task is validated as soon as it is done.
    Pipelined,
}
