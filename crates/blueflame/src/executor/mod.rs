//! What can run an agent.
//!
//! An [`Executor`] says how a program is started and gives a [`Conversation`]
//! that understands what the program says. Both are plain functions of what
//! they are given: they start nothing, read no clock and touch no file. The
//! attempt process does what they say.

pub mod abilities;
pub mod claude;
pub mod codex;
pub mod custom;
pub mod embedded;
pub mod find;
pub mod fitness;
mod hooked;
mod last_message;
pub mod opencode;
mod package;
mod patch;
mod skill_list;
pub mod stream;
pub mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blueflame_core::config::{CustomExecutor, Executors};
use blueflame_core::ids::ExecutorName;
use blueflame_core::money::{Budget, Usage};
use blueflame_core::skill::Handed;
use blueflame_gateway::calls::Calls;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hook::{self, wire::Dialect};
use crate::skills::{self, Offered};

pub use abilities::Abilities;
use custom::Custom;
pub use version::{Tested, Version};

/// A kind of agent program.
pub trait Executor: fmt::Debug + Sync {
    fn name(&self) -> &str;

    /// The program to look for when the configuration names none; `None` for
    /// what is part of Blue Flame.
    fn program(&self) -> Option<&str>;

    /// The versions that its tests have run against; `None` where a version
    /// means nothing.
    fn tested(&self) -> Option<Tested>;

    /// What to type when it is missing or broken.
    fn remedy(&self) -> &str;

    /// What the names of packages begin with that bring it.
    fn packages(&self) -> &[&str] {
        &[]
    }

    /// Where the program itself is, seen from the directory of the one that is in
    /// `PATH`, if that only starts it.
    fn behind(&self) -> &[&str] {
        &[]
    }

    /// Programs that it needs for some of its tools, with what the order calls
    /// those. Where such a program is missing, the tools are not offered.
    fn helpers(&self) -> &[(&str, &[&str])] {
        &[]
    }

    /// In whose words its hooks ask about tool calls, if it asks that way.
    fn hook(&self) -> Option<Dialect> {
        None
    }

    /// Whether it reaches a gateway only at a port.
    fn needs_port(&self) -> bool {
        false
    }

    /// In whose words it asks its model.
    fn speaks(&self) -> blueflame_gateway::dialect::Dialect {
        blueflame_gateway::dialect::Dialect::Messages
    }

    /// Whether it can use a login of the person ([`Ground::login`]).
    fn takes_login(&self) -> bool {
        false
    }

    /// What it can do beyond what the rest of this says.
    fn abilities(&self) -> Abilities;

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch;

    fn converse(&self, order: &Order) -> Box<dyn Conversation>;
}

/// The executors that come with Blue Flame.
pub const ALL: [&dyn Executor; 4] =
    [&claude::Claude, &codex::Codex, &opencode::Opencode, &embedded::Embedded];

/// The executor of this name, if there is one.
pub fn named(name: &str) -> Option<&'static dyn Executor> {
    ALL.into_iter().find(|executor| executor.name() == name)
}

/// An executor that agents can be run with.
#[derive(Clone, Debug)]
pub enum Chosen {
    Ours(&'static dyn Executor),
    Own(Custom),
}

impl Deref for Chosen {
    type Target = dyn Executor;

    fn deref(&self) -> &Self::Target {
        match self {
            Chosen::Ours(executor) => *executor,
            Chosen::Own(custom) => custom,
        }
    }
}

/// The executor of this name, by its description if it is one of the person's own.
pub fn choose(name: &str, described: Option<&CustomExecutor>) -> Option<Chosen> {
    match described {
        Some(described) => Some(Chosen::Own(Custom::new(name, described))),
        None => named(name).map(Chosen::Ours),
    }
}

/// The executor that the configuration has by this name.
pub fn configured(name: &ExecutorName, executors: &Executors) -> Option<Chosen> {
    choose(name.as_str(), executors.custom.get(name))
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
    /// What it may learn from; the copies are below `Ground::skills`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Offered>,
}

/// What asks for a model's long memory, at the end of its name.
const LONG: &str = "[1m]";

impl Order {
    /// The model's name without what asks for a long memory.
    fn plain_model(&self) -> &str {
        self.model.strip_suffix(LONG).unwrap_or(&self.model)
    }

    /// Tokens that a conversation may have, for programs that make it shorter
    /// themselves.
    fn context_window(&self) -> u64 {
        if self.model.ends_with(LONG) { 1_000_000 } else { 272_000 }
    }

    /// The skills that it is given, for the record.
    pub fn handed(&self) -> Vec<Handed> {
        self.skills.iter().map(Handed::from).collect()
    }
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
    pub workspace: &'a Path,
    pub gateway: &'a Path,
    /// The port of its gateway, if it needs one.
    pub port: Option<u16>,
    /// What its hooks have to run, if it asks through hooks.
    pub hook: Option<HookAddress<'a>>,
    /// What the gateway wants to be shown.
    pub token: &'a str,
    /// A login of the person that is passed on; only if that was asked for.
    pub login: Option<&'a str>,
}

impl Ground<'_> {
    /// The copy of its skills, if it was given some.
    fn skill_set(&self, order: &Order) -> Option<PathBuf> {
        (!order.skills.is_empty()).then(|| self.files.join(skills::SET))
    }

    /// The directory with one folder for each of them.
    fn skills(&self, order: &Order) -> Option<PathBuf> {
        Some(self.skill_set(order)?.join(skills::FOLDER))
    }
}

/// Where a hook asks, and what it shows there.
#[derive(Clone, Copy, Debug)]
pub struct HookAddress<'a> {
    pub blueflame: &'a Path,
    pub socket: &'a Path,
    /// The process that has to answer, by the number that it has for the hook: 0
    /// if the hook is in a sandbox that hides it.
    pub answerer: u32,
    pub proof: &'a str,
}

impl HookAddress<'_> {
    /// The words of a hook's command.
    pub fn words(&self, dialect: Dialect) -> [String; 6] {
        [
            self.blueflame.to_string_lossy().into_owned(),
            hook::COMMAND.to_owned(),
            dialect.name().to_owned(),
            self.socket.to_string_lossy().into_owned(),
            self.answerer.to_string(),
            self.proof.to_owned(),
        ]
    }

    /// The command of a hook, for programs that hand it to a shell.
    pub fn command(&self, dialect: Dialect) -> String {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let [program, command, dialect, socket, answerer, proof] = self.words(dialect);
        let (program, socket) = (quoted(&program), quoted(&socket));
        format!("{program} {command} {dialect} {socket} {answerer} {proof}")
    }
}

/// How to start a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// What it needs beyond what every agent has.
    pub environment: BTreeMap<String, OsString>,
    /// Files to write before; it can read them.
    pub files: Vec<(PathBuf, String)>,
    /// Directories of such files that it can list, too.
    pub places: Vec<PathBuf>,
}

impl Launch {
    /// What the program has to find where it is.
    pub fn seen(&self) -> impl Iterator<Item = &Path> {
        let listed = |path: &Path| self.places.iter().any(|place| path.starts_with(place));
        let files = self.files.iter().map(|(path, _)| path.as_path());
        files.filter(move |path| !listed(path)).chain(self.places.iter().map(PathBuf::as_path))
    }
}

/// What the attempt process does for a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write this line to the program.
    Send(String),
    /// Say whether the call may be made, to [`Conversation::judged`].
    Judge { ticket: String, call: Call },
    /// The call cannot even be judged, for this reason: deny it, and write that
    /// down.
    Object { ticket: String, call: Call, why: String },
    /// Answer the hook that asked.
    Rule { ticket: String, ruling: Ruling },
    /// Put the questions to the person; the answers go to
    /// [`Conversation::answered`].
    Ask { ticket: String, questions: Vec<Question> },
    /// The questions of this ticket need no answer any more.
    Withdraw { ticket: String },
    /// Something worth showing.
    Show(Sight),
    /// Nothing more is written to the program.
    CloseInput,
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

    /// A line that was too long to be kept. A call in there gets no answer, and is
    /// denied by the program; a result in there is missing in the end.
    fn missed(&mut self, bytes: u64) -> Vec<Step> {
        let text = format!("a line of {bytes} bytes was too much to be read");
        vec![Step::Show(Sight::Said { text })]
    }

    fn judged(&mut self, ticket: &str, ruling: &Ruling) -> Vec<Step>;

    /// A hook asks; it waits for a [`Step::Rule`] with the same ticket.
    fn hooked(&mut self, ticket: &str, _event: &Value) -> Vec<Step> {
        let reason = "this program has no hooks".to_owned();
        vec![Step::Rule { ticket: ticket.to_owned(), ruling: Ruling::Deny { reason } }]
    }

    /// What the gateway has to keep account of, for programs that ask through
    /// hooks.
    fn calls(&self) -> Option<Arc<Calls>> {
        None
    }

    /// The answers, by question; most programs cannot ask.
    fn answered(&mut self, _ticket: &str, _answers: &BTreeMap<String, String>) -> Vec<Step> {
        Vec::new()
    }

    /// What makes it stop by itself, if anything does.
    fn interrupt(&mut self) -> Vec<Step> {
        Vec::new()
    }

    /// Whether a call that was allowed is being made: such a program may be
    /// silent and is at work.
    fn is_at_work(&self) -> bool {
        false
    }

    /// It is gone, with this exit code; `None` if a signal ended it.
    fn left(&mut self, _code: Option<i32>) {}

    /// What the program itself made of the run, once it is gone.
    fn account(&self) -> Account;

    /// The beginning of the last thing it said that made no sense.
    fn unread(&self) -> Option<&str> {
        None
    }
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

/// What is shown of anything that an agent says, in bytes.
const MOST_SHOWN: usize = 2 << 10;

/// The beginning of a text, for showing it.
fn beginning(text: &str) -> String {
    if text.len() <= MOST_SHOWN {
        return text.to_owned();
    }
    let whole = (0..=MOST_SHOWN).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", &text[..whole.unwrap_or(0)])
}
