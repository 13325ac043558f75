//! The embedded agent: a small agent loop over the Messages dialect.
//!
//! It speaks with the attempt process as `claude` does with `stream-json` on
//! both sides, and with the model through the gateway. It decides nothing about
//! permission: each tool call is put to the attempt process, and what is not
//! explicitly permitted is not done.

mod conversation;
mod events;
mod inbox;
mod judge;
mod model;
mod output;
mod protocol;
mod run;
mod schema;
mod tools;
mod turn;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use conversation::Conversation;
use judge::Judge;
use model::{Client, Endpoint, Patience, Token};
use output::Output;
use run::{Agent, Tally};
use schema::Schema;
use tools::Tool;

/// What the model is told when nobody else tells it anything.
const SYSTEM: &str = "You are a careful software engineer. Work on the task with the tools you have, in the current directory. Look before you change, check what you did, and end with a short account of it.";

/// Everything the agent is told when it starts.
#[derive(Debug)]
pub struct Settings {
    pub model: String,
    pub tools: Vec<String>,
    pub system: Option<String>,
    pub schema: Option<Vec<u8>>,
    pub max_turns: Option<u32>,
    pub max_output_tokens: u32,
    pub cwd: PathBuf,
    pub address: Address,
    pub token: Option<String>,
    pub retry_base: Option<Duration>,
    pub stall: Option<Duration>,
}

/// Where the model is.
#[derive(Debug)]
pub enum Address {
    Socket(PathBuf),
    Url(String),
}

/// Why an agent cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSettings(String);

/// Works on prompts until the input ends, and gives the exit code.
pub async fn work(settings: Settings) -> Result<ExitCode, BadSettings> {
    let bad = |error: &dyn std::fmt::Display| BadSettings(error.to_string());
    let unusable = |error: io::Error| BadSettings(format!("the agent cannot start: {error}"));
    let tools = tools(&settings.tools)?;
    let schema = settings.schema.as_deref().map(Schema::read).transpose();
    let schema = schema.map_err(|error| bad(&error))?;
    let endpoint = match settings.address {
        Address::Socket(path) => Endpoint::Unix(path),
        Address::Url(url) => Endpoint::at(&url).map_err(|error| bad(&error))?,
    };
    let token = match &settings.token {
        None => None,
        Some(text) => Some(Token::new(text).ok_or_else(|| bad(&"the token cannot be sent"))?),
    };
    let session = session_name().map_err(unusable)?;
    let mut signals = Signals::new().map_err(unusable)?;

    let mut offered: Vec<_> = tools.iter().map(|tool| tool.definition()).collect();
    offered.extend(schema.as_ref().map(Schema::definition));
    let system = settings.system.as_deref().unwrap_or(SYSTEM);
    let usual = Patience::default();
    let patience = Patience {
        retry_base: settings.retry_base.unwrap_or(usual.retry_base),
        stall: settings.stall.unwrap_or(usual.stall),
        ..usual
    };
    let (out, writer) = Output::start();
    let mut inbox = inbox::open(out.clone());
    let mut agent = Agent {
        judge: Judge::new(out.clone(), inbox.desk.clone(), &session, &settings.cwd),
        conversation: Conversation::new(
            &settings.model,
            settings.max_output_tokens,
            system,
            offered,
        ),
        client: Client::new(endpoint, token, patience),
        cwd: settings.cwd,
        model: settings.model,
        max_turns: settings.max_turns,
        totals: BTreeMap::new(),
        tally: Tally::default(),
        out: out.clone(),
        session,
        tools,
        schema,
    };
    let mut code = ExitCode::SUCCESS;
    loop {
        let prompt = tokio::select! {
            prompt = inbox.prompts.recv() => prompt,
            () = out.closed() => return Ok(ExitCode::FAILURE),
            code = signals.recv() => return Ok(code),
        };
        let Some(prompt) = prompt else { break };
        let ending = tokio::select! {
            biased;
            code = signals.recv() => return Ok(code),
            () = out.closed() => return Ok(ExitCode::FAILURE),
            // The end of the input is no interrupt.
            Ok(_) = inbox.interrupted.wait_for(|upto| *upto >= prompt.number) => None,
            ending = agent.run(prompt.content) => Some(ending),
        };
        let ending = match ending {
            Some(ending) => ending,
            None => agent.abandon("interrupted").await,
        };
        let is_error = agent.report(ending).await.is_error();
        code = if is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    // What was said has to arrive: the writer ends when nobody can add to it.
    drop((agent, out, inbox));
    let _ = tokio::task::spawn_blocking(move || writer.join()).await;
    Ok(code)
}

/// All tools as they are offered to a model.
pub fn tool_definitions() -> Vec<serde_json::Value> {
    Tool::ALL.into_iter().map(Tool::definition).collect()
}

fn tools(names: &[String]) -> Result<Vec<Tool>, BadSettings> {
    let mut tools = Vec::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        let tool = Tool::named(name).ok_or_else(|| {
            let known: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
            BadSettings(format!("there is no tool `{name}`; there are {}", known.join(", ")))
        })?;
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    Ok(tools)
}

/// A name that no other session has, in the form of a UUID.
fn session_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let mut number = u128::from_be_bytes(bytes);
    number = (number & !(0xf << 76)) | (4 << 76);
    number = (number & !(0b11 << 62)) | (0b10 << 62);
    let hex = format!("{number:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(parts.join("-"))
}

/// The signals that end the agent. It catches them so that a running command
/// ends with it.
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them, and gives the exit code that tells which.
    async fn recv(&mut self) -> ExitCode {
        tokio::select! {
            _ = self.terminate.recv() => ExitCode::from(143),
            _ = self.interrupt.recv() => ExitCode::from(130),
            _ = self.hangup.recv() => ExitCode::from(129),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_names_are_random_uuids() {
        let (one, two) = (session_name().unwrap(), session_name().unwrap());
        assert_ne!(one, two);
        let shape: String =
            one.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
        assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert_eq!(&one[14..15], "4");
    }

    #[test]
    fn tools_are_taken_by_name_and_unknown_ones_are_refused() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            tools(&names).map_err(|error| error.to_string())
        };
        assert_eq!(named(&["Bash", "Read", "Bash"]), Ok(vec![Tool::Bash, Tool::Read]));
        assert_eq!(named(&[""]), Ok(vec![]));
        assert_eq!(
            named(&["WebFetch"]).unwrap_err(),
            "there is no tool `WebFetch`; there are Read, Write, Edit, Glob, Grep, Bash"
        );
    }
}
