//! How many agents, for how long, for how much.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::yaml::{DurationText, Spanned};

/// How many agents work at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Concurrency {
    /// Planners; always 1.
    #[schemars(range(min = 1, max = 1))]
    pub planning: Spanned<u32>,
    /// Workers, 1 to 8.
    #[schemars(range(min = 1, max = 8))]
    pub development: Spanned<u32>,
    /// Validators, 1 to 8.
    #[schemars(range(min = 1, max = 8))]
    pub validation: Spanned<u32>,
    /// Mergers; always 1.
    #[schemars(range(min = 1, max = 1))]
    pub merge: Spanned<u32>,
    /// Start fewer agents when memory is short.
    pub adaptive: Spanned<bool>,
    /// Free memory that each agent must find, in MiB; used when `adaptive` is
    /// true.
    #[schemars(range(min = 1))]
    pub adaptive_min_ram_per_agent_mb: Spanned<u64>,
}

impl Default for Concurrency {
    fn default() -> Self {
        Concurrency {
            planning: 1.into(),
            development: 4.into(),
            validation: 2.into(),
            merge: 1.into(),
            adaptive: true.into(),
            adaptive_min_ram_per_agent_mb: 600.into(),
        }
    }
}

/// Time, attempts and money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// How long one agent may run before it is stopped.
    pub agent_timeout: Spanned<DurationText>,
    /// How long an agent may give no sign of life before it is stopped: it says
    /// nothing, no request to its model is under way and no command of its runs.
    pub idle_timeout: Spanned<DurationText>,
    /// How often it is checked that an agent is alive.
    pub heartbeat_interval: Spanned<DurationText>,
    /// How often a failed task is tried again.
    #[schemars(range(max = 20))]
    pub max_retries: Spanned<u32>,
    /// How many cycles of plan, work and review a session may have.
    #[schemars(range(min = 1, max = 1000))]
    pub max_wave_cycles: Spanned<u32>,
    /// Most dollars for a whole session; 0 is unlimited. Set this or
    /// `max_session_tokens`, not both.
    #[schemars(range(min = 0.0))]
    pub max_session_cost_usd: Spanned<f64>,
    /// Most tokens for a whole session, read and written; 0 is unlimited.
    pub max_session_tokens: Spanned<u64>,
    pub token_budget: TokenBudget,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            agent_timeout: "300s".into(),
            idle_timeout: "120s".into(),
            heartbeat_interval: "30s".into(),
            max_retries: 2.into(),
            max_wave_cycles: 5.into(),
            max_session_cost_usd: 10.0.into(),
            max_session_tokens: 0.into(),
            token_budget: TokenBudget::default(),
        }
    }
}

/// What one agent of each role may spend: dollars or tokens, not both; 0 is
/// unlimited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenBudget {
    /// Most dollars for a planner.
    #[schemars(range(min = 0.0))]
    pub planner_usd: Spanned<f64>,
    /// Most tokens for a planner.
    pub planner_tokens: Spanned<u64>,
    /// Most dollars for a worker.
    #[schemars(range(min = 0.0))]
    pub worker_usd: Spanned<f64>,
    /// Most tokens for a worker.
    pub worker_tokens: Spanned<u64>,
    /// Most dollars for a validator.
    #[schemars(range(min = 0.0))]
    pub validator_usd: Spanned<f64>,
    /// Most tokens for a validator.
    pub validator_tokens: Spanned<u64>,
    /// Most dollars for a merger.
    #[schemars(range(min = 0.0))]
    pub merger_usd: Spanned<f64>,
    /// Most tokens for a merger.
    pub merger_tokens: Spanned<u64>,
    /// Share of a budget at which you are warned: 0.8 is 80%.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub warn_threshold: Spanned<f64>,
}

impl Default for TokenBudget {
    fn default() -> Self {
        TokenBudget {
            planner_usd: 0.40.into(),
            planner_tokens: 0.into(),
            worker_usd: 1.50.into(),
            worker_tokens: 0.into(),
            validator_usd: 0.15.into(),
            validator_tokens: 0.into(),
            merger_usd: 0.50.into(),
            merger_tokens: 0.into(),
            warn_threshold: 0.8.into(),
        }
    }
}
