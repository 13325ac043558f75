//! What is said between a hook and the attempt process: one line each way.

use blueflame_core::policy::Decision;
use serde::{Deserialize, Serialize};

use crate::executor::Ruling;

/// The version of these two lines. Both ends are the same program, unless
/// somebody replaced it while an agent runs.
pub const VERSION: u32 = 1;

/// The most that a program may tell its hook. A patch of this size is one that
/// nobody looks over.
pub const LONGEST_EVENT: u64 = 8 << 20;

/// The longest question: the event with what comes before and after it.
pub const LONGEST_QUESTION: u64 = LONGEST_EVENT + (64 << 10);

pub const LONGEST_ANSWER: u64 = 64 << 10;

/// Whose hook it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Codex,
    /// A program of the person's own.
    Custom,
    Opencode,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Codex => "codex",
            Dialect::Custom => "custom",
            Dialect::Opencode => "opencode",
        }
    }

    pub fn named(name: &str) -> Option<Dialect> {
        let all = [Dialect::Codex, Dialect::Custom, Dialect::Opencode];
        all.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// A hook's question. The event is what the program told the hook, untouched.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question<E> {
    pub version: u32,
    pub dialect: Dialect,
    /// Shows that the hook is the one that was set up for this attempt.
    pub proof: String,
    pub event: E,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub version: u32,
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl From<&Ruling> for Answer {
    fn from(ruling: &Ruling) -> Self {
        let (decision, reason) = match ruling {
            Ruling::Allow => (Decision::Allow, String::new()),
            Ruling::Deny { reason } => (Decision::Deny, reason.clone()),
        };
        Answer { version: VERSION, decision, reason }
    }
}

impl Answer {
    pub fn ruling(self) -> Ruling {
        match self.decision {
            Decision::Allow => Ruling::Allow,
            Decision::Deny => Ruling::Deny { reason: self.reason },
        }
    }
}
