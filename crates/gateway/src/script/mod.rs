//! A model that follows a script.
//!
//! A file of replies stands in for a model, in every dialect. Each reply is
//! chosen by what the request itself shows, never by what came before, so the
//! same request has the same answer however many agents run side by side.
//! `docs/scripted-model.md` describes the format.

mod answer;
mod chat;
mod check;
mod file;
mod messages;
mod responses;
mod rule;
mod sight;
mod translate;

#[cfg(test)]
mod tests;

use blueflame_core::yaml::Problem;
use serde_json::Value;
use std::time::Duration;

pub use answer::{Answer, Ending};
pub use rule::When;
pub(crate) use sight::conversation;
pub use sight::{MARKER, Sight};

use blueflame_core::money::Usage;

/// A checked script.
#[derive(Clone, Debug)]
pub struct Script {
    rules: Vec<Rule>,
}

/// One reply and when it is given.
#[derive(Clone, Debug)]
struct Rule {
    when: When,
    /// Where it starts in the file.
    line: usize,
    reply: Reply,
    /// Wait before the first byte.
    delay: Duration,
    /// Wait before each further event.
    pause: Duration,
    ending: Ending,
}

#[derive(Clone, Debug)]
enum Reply {
    Speak { blocks: Vec<Block>, usage: Option<Usage> },
    Fail { status: u16, retry_after: Option<Duration>, kind: Option<String>, message: String },
}

/// A part of what the model says.
#[derive(Clone, Debug)]
enum Block {
    Text(String),
    Call {
        tool: String,
        /// Text for tools that take no JSON.
        input: Value,
    },
    /// The answer in the form that was asked for.
    Output(Value),
}

impl Script {
    /// Reads a script: with its warnings, or with every problem that keeps it
    /// from being used.
    pub fn read(bytes: &[u8]) -> Result<(Script, Vec<Problem>), Vec<Problem>> {
        check::read(bytes)
    }
}
