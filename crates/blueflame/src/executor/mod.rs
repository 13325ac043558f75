//! What can run an agent.
//!
//! An [`Executor`] says how a program is started and gives a [`Conversation`]
//! that understands what the program says. Both are plain functions of what
//! they are given: they start nothing, read no clock and touch no file. The
//! attempt process does what they say.

pub mod claude;
pub mod embedded;
pub mod find;
pub mod stream;
pub mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use blueflame_core::money::{Budget, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use version::{Tested, Version};

/// A kind of agent program.
pub trait Executor: fmt::Debug + Sync {
    fn name(&self) -> &'static str;

    /// The program to look for when the configuration names none; `None` for
    /// what is part of Blue Flame.
    fn program(&self) -> Option<&'static str>;

    /// The versions that its tests have run against; `None` where a version
    /// means nothing.
    fn tested(&self) -> Option<Tested>;

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch;

    fn converse(&self, order: &Order) -> Box<dyn Conversation>;
}

/// The executors that come with Blue Flame.
pub const ALL: [&dyn Executor; 2] = [&claude::Claude, &embedded::Embedded];

/// The executor of this name, if there is one.
pub fn named(name: &str) -> Option<&'static dyn Executor> {
    ALL.into_iter().find(|executor| executor.name() == name)
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub model: String,
    /// The rules of its role.
    pub system: String,
    /// This job.
    pub prompt: String,
    /// The tools it is offered, by the names that claude has for them.
    pub tools: Vec<String>,
    /// The shape of what it has to return, if it has to return something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Told to programs that have a flag for it; the gateway holds them to it
    /// in any case.
    #[serde(default)]
    pub budget: Budget,
    /// Whether it may put questions to the person.
    #[serde(default)]
    pub may_ask: bool,
}

/// Where a program finds itself.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub program: &'a Path,
    /// Its home: empty, and its own.
    pub home: &'a Path,
    pub tmp: &'a Path,
    /// Where files for it may be put that it need not write.
    pub files: &'a Path,
    pub gateway: &'a Path,
    /// What the gateway wants to be shown.
    pub token: &'a str,
    /// A login of the person that is passed on; only if that was asked for.
    pub login: Option<&'a str>,
}

/// How to start a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// What it needs beyond what every agent has.
    pub environment: BTreeMap<String, OsString>,
    /// Files to write before.
    pub files: Vec<(PathBuf, String)>,
}

/// What the attempt process does for a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write this line to the program.
    Send(String),
    /// Say whether the call may be made, to [`Conversation::judged`].
    Judge { ticket: String, call: Call },
    /// Put the questions to the person; the answers go to
    /// [`Conversation::answered`].
    Ask { ticket: String, questions: Vec<Question> },
    /// Something worth showing.
    Show(Sight),
    /// It has said its last word: close its input and let it leave.
    Over,
    /// A call was made that nobody was asked about: stop it at once.
    Breach { why: String },
}

/// A tool call that an agent wants to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub tool: String,
    pub input: Value,
    /// Where it stands; empty if the program does not say.
    pub cwd: String,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    Deny { reason: String },
}

/// A question of an agent to the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub question: String,
    #[serde(default)]
    pub header: String,
    #[serde(default)]
    pub options: Vec<Choice>,
    #[serde(default, rename = "multiSelect")]
    pub multi_select: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub label: String,
    #[serde(default)]
    pub description: String,
}

/// What can be seen of an agent at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sight", rename_all = "snake_case")]
pub enum Sight {
    /// It is up and runs this version of itself.
    Ready {
        version: String,
    },
    Said {
        text: String,
    },
    Used {
        tool: String,
    },
    /// It asks its model again after an error.
    Retries {
        status: Option<u16>,
    },
}

/// One talk with a running program.
pub trait Conversation: fmt::Debug + Send {
    /// What to do as soon as it runs.
    fn open(&mut self) -> Vec<Step>;

    /// A line of its output, without the line break.
    fn heard(&mut self, line: &[u8]) -> Vec<Step>;

    /// A line that was too long to be kept.
    fn missed(&mut self, bytes: u64) -> Vec<Step>;

    fn judged(&mut self, ticket: &str, ruling: &Ruling) -> Vec<Step>;

    /// The answers, by question.
    fn answered(&mut self, ticket: &str, answers: &BTreeMap<String, String>) -> Vec<Step>;

    /// What makes it stop by itself, if anything does.
    fn interrupt(&mut self) -> Vec<Step>;

    /// What the program itself made of the run, once it is gone.
    fn account(&self) -> Account;
}

/// How a run ended, as far as the program says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    pub end: Told,
    /// Its last words.
    pub text: String,
    pub output: Option<Value>,
    /// The tokens it counted itself.
    pub usage: Option<Usage>,
    /// How many of its calls were not allowed.
    pub denied: u32,
}

/// What a program says of its own end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// It never said.
    #[default]
    Nothing,
    /// The model had nothing more to do.
    Finished,
    MaxTurns,
    /// Its own budget flag stopped it.
    Budget,
    /// The model never returned what was asked for.
    BadOutput,
    Interrupted,
    /// The API failed it; without a status, it could not be reached.
    Api {
        status: Option<u16>,
        message: String,
    },
    Failed {
        message: String,
    },
}
