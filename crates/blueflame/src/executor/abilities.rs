//! What each executor can do, as its own code says: for `blueflame doctor`, for the
//! table in docs/executors.md, and for whoever has to know it before a start.

use std::fmt;

use blueflame_gateway::dialect::Dialect as Api;

use super::Executor;
use crate::hook::wire::Dialect;

/// What cannot be read from the rest of an [`Executor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    pub tokens: OwnTokens,
    pub output: Output,
    /// Whether it can put questions to the person.
    pub asks: bool,
}

/// When a program says what it has used. The gateway counts while it runs in any
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTokens {
    /// After each answer of its model.
    EachAnswer,
    /// At its end, however that comes.
    AtItsEnd,
    /// Only of a run that ended well.
    WhenDone,
    Never,
}

/// How structured output is had from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Its model hands it in with a tool, and may try this often.
    Tool { tries: u32 },
    /// It is the last message, and checked by us.
    LastMessage,
}

impl Output {
    /// How often the model may try to hand in what fits.
    pub fn tries(self) -> u32 {
        match self {
            Output::Tool { tries } => tries,
            Output::LastMessage => 1,
        }
    }
}

impl fmt::Display for OwnTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OwnTokens::EachAnswer => "after each answer",
            OwnTokens::AtItsEnd => "at its end",
            OwnTokens::WhenDone => "if it ends well",
            OwnTokens::Never => "never",
        })
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Tool { tries } => write!(f, "a tool, {tries} tries"),
            Output::LastMessage => f.write_str("its last message, 1 try"),
        }
    }
}

/// One thing to know of every executor.
#[derive(Clone, Copy, Debug)]
pub struct Facet {
    pub what: &'static str,
    pub of: fn(&dyn Executor) -> String,
}

pub const FACETS: [Facet; 10] = [
    Facet { what: "tested version", of: tested },
    Facet { what: "asks its model at", of: |it| it.speaks().path().to_owned() },
    Facet { what: "gateway.upstream", of: upstream },
    Facet { what: "reaches the gateway by", of: way },
    Facet { what: "live usage", of: |_| "counted by the gateway".to_owned() },
    Facet { what: "says its own tokens", of: |it| it.abilities().tokens.to_string() },
    Facet { what: "structured output", of: |it| it.abilities().output.to_string() },
    Facet { what: "veto before tool calls", of: veto },
    Facet { what: "asks the person", of: |it| asks(it).to_owned() },
    // None is started with a conversation that it kept: what an attempt leaves are
    // its files, and another executor can go on from them just as well.
    Facet { what: "resumes", of: |_| "from its files".to_owned() },
];

/// Whether the person's own login can be handed to it, which is not a matter of
/// what the program can do alone.
pub const LOGIN: Facet = Facet {
    what: "takes the person's login",
    of: |it| if it.takes_login() { "passthrough_auth" } else { "no" }.to_owned(),
};

fn tested(executor: &dyn Executor) -> String {
    match (executor.tested(), executor.program()) {
        (Some(tested), _) => tested.to_string(),
        (None, None) => "its own".to_owned(),
        (None, Some(_)) => "none".to_owned(),
    }
}

fn upstream(executor: &dyn Executor) -> String {
    match executor.speaks() {
        Api::Messages => "anthropic, an address",
        Api::Responses | Api::Chat => "openai, an address",
    }
    .to_owned()
}

fn way(executor: &dyn Executor) -> String {
    if executor.needs_port() { "a port of its own" } else { "a Unix socket" }.to_owned()
}

fn veto(executor: &dyn Executor) -> String {
    match executor.hook() {
        None => "standard input and output",
        Some(Dialect::Codex) => "a hook, and the gateway",
        Some(Dialect::Opencode) => "a plugin, and the gateway",
        Some(Dialect::Custom) => "a command, and the gateway",
    }
    .to_owned()
}

fn asks(executor: &dyn Executor) -> &'static str {
    if executor.abilities().asks { "planners" } else { "no" }
}

/// Everything about some executors as a table in Markdown.
pub fn markdown(executors: &[&dyn Executor]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = executors.iter().map(|it| it.name().to_owned());
    let mut table = line(std::iter::once(String::new()).chain(names).collect());
    table.extend(["|", &"---|".repeat(executors.len() + 1), "\n"]);
    for facet in FACETS.iter().chain([&LOGIN]) {
        let cells = executors.iter().map(|it| (facet.of)(*it));
        table.push_str(&line(std::iter::once(facet.what.to_owned()).chain(cells).collect()));
    }
    table
}
