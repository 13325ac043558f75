//! What an attempt process and an orchestrator say to each other, a line of
//! JSON each, over the control socket.

use std::collections::BTreeMap;

use blueflame_core::ids::Oid;
use blueflame_core::money::{Budget, Spend};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::executor::{Question, Sight};

/// From the attempt process. The lasting ones are in `reports.jsonl` too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// What it has spent so far; it only grows.
    Usage { spend: Spend },
    /// It waits for a larger share of the session's budget.
    GrantWanted,
    /// It does not wait for that any more.
    GrantNotWanted,
    /// The provider wants a pause; the time is missing if it named none.
    ProviderLimited { status: u16, until: Option<Timestamp> },
    /// A snapshot of its unfinished work was taken.
    Snapshot { commit: Oid },
    /// The agent asks the person. The answer goes back under this ticket.
    Questions { ticket: String, questions: Vec<Question> },
    /// The questions of this ticket need no answer any more.
    QuestionsWithdrawn { ticket: String },
    /// A tool call was judged.
    Judged { tool: String, target: String, allowed: bool, rule: String },
    /// What can be seen of the agent.
    Seen(Sight),
    /// Something of ours did not work; the agent goes on.
    Warning { text: String },
    /// The attempt process is there. This is said on the line only.
    Heartbeat,
    /// The result is sealed; nothing more follows.
    Ended,
}

impl Report {
    /// Whether it still means something to whoever connects later.
    pub fn lasts(&self) -> bool {
        !matches!(self, Report::Seen(Sight::Said { .. }) | Report::Heartbeat)
    }
}

/// To the attempt process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Its share of the session's budget from now on, in total.
    Grant {
        grant: Budget,
    },
    /// Stop, within the grace that the spec gives.
    Stop,
    Answer {
        ticket: String,
        answers: BTreeMap<String, String>,
    },
}
