//! What is left of an attempt: `result.json`, written once, whole or not at
//! all.

use blueflame_core::ids::{AgentId, Oid};
use blueflame_core::money::{Spend, Usage};
use blueflame_core::outcome::Outcome;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    pub format: u32,
    pub agent: AgentId,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub ending: Ending,
    /// What the gateway counted.
    pub spend: Spend,
    /// What the agent program counted, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_usage: Option<Usage>,
    /// Tool calls that were judged, and those of them that were denied.
    pub calls: u64,
    pub denied: u64,
    /// How the program left: its exit code or signal in words.
    pub exit: String,
    /// The last snapshot of the work, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Oid>,
    /// Whether what the agent left is yet to be saved, by whoever finds that it has
    /// not finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsaved: bool,
    /// That the disk was full when it ended, in words: then it is not to blame for
    /// what it did not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_disk: Option<String>,
    /// What could not be done as it should, such as a snapshot that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model stopped by itself. What that is worth is found out by looking
    /// at what it left.
    Stopped {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// Anything else.
    Failed(Outcome),
}
