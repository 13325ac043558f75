//! The policy: what agents may do, judged call by call.
//!
//! One source of truth for everyone who has to know: the hook, the embedded
//! agent, the check of a finished change, and the sandbox. [`Policy::judge`] is
//! a plain function of the rules, the call and what the [`Ground`] tells about
//! the file system. It denies whatever it does not understand, names the rule,
//! and says what to do instead, so that an agent can go on.

mod changes;
mod commands;
mod distinct;
pub mod examples;
mod globs;
mod ground;
mod naming;
mod paths;
mod planned;
mod protected;
mod reach;
mod rules;
mod secrets;
mod shell;
mod tools;
mod verdict;

use serde::Deserialize;
use serde_json::Value;

pub use changes::{Change, ChangeKind};
pub use distinct::Distinct;
pub use ground::{Found, Ground, Resolved};
pub use planned::{judge_for_sh, judge_planned};
pub use reach::Reach;
pub use rules::{CommitRule, NamingRule, PolicyError, PolicyRules, Scope, SkillRule, TestRule};
pub use verdict::{Decision, Rule, Verdict};

pub(crate) use commands::is_found;
use rules::Compiled;

/// One use of a tool, as an agent's program announces it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ToolCall {
    #[serde(rename = "tool_name", alias = "tool")]
    pub tool: String,
    #[serde(rename = "tool_input", alias = "input", default, deserialize_with = "distinct::value")]
    pub input: Value,
    /// The absolute directory the agent is in.
    #[serde(default)]
    pub cwd: String,
}

/// Rules, ready to judge.
#[derive(Clone, Debug)]
pub struct Policy {
    compiled: Compiled,
}

impl Policy {
    pub fn new(rules: PolicyRules) -> Result<Policy, PolicyError> {
        Ok(Policy { compiled: Compiled::new(rules)? })
    }

    /// The same for another part of the files. What takes time to make ready is
    /// shared.
    #[must_use]
    pub fn with_scope(&self, scope: Scope) -> Policy {
        let mut policy = self.clone();
        policy.compiled.rules.scope = scope;
        policy
    }

    pub fn rules(&self) -> &PolicyRules {
        &self.compiled.rules
    }

    /// Judges a tool call before it happens.
    pub fn judge(&self, call: &ToolCall, ground: &dyn Ground) -> Verdict {
        Verdict::of(self.judge_tool(call, ground), tools::target(call))
    }

    /// Judges the message of a commit.
    pub fn judge_message(&self, message: &str) -> Verdict {
        let first = message.lines().next().unwrap_or_default();
        Verdict::of(self.judge_commit(message), first)
    }
}
