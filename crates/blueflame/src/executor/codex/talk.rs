//! What codex says on its output and through its hook, and what follows.
//!
//! A call is judged by what the model asked for, as the gateway saw it: the hook
//! leaves out in which directory and by which shell a command is to be run. A
//! hook that asks about a call that no model asked for is denied.

use std::path::Path;
use std::sync::Arc;

use blueflame_core::money::Usage;
use blueflame_gateway::calls::{Calls, Customs, Made};
use serde_json::{Value, json};

use super::super::hooked::{self, Hooked, Manner, text};
use super::super::last_message::take_output;
use super::super::{
    Account, Call, Conversation, Order, Ruling, Sight, Step, Told, beginning, patch,
};
use super::catalogue;

/// How codex 0.166.0 tells of calls that it did not make (measured). What a
/// command prints always has other words before it.
const NOT_MADE: [&str; 9] = [
    "unsupported call: ",
    "unsupported custom tool call: ",
    "failed to parse function arguments: ",
    "apply_patch verification failed: ",
    "login shell is disabled by config",
    "TTY execution is disabled by config",
    "write_stdin failed: ",
    "request_user_input is unavailable",
    "aborted",
];

const MANNER: Manner = Manner {
    customs: Customs {
        not_made: |_, said| NOT_MADE.iter().any(|start| said.starts_with(start)),
        denied: "Command blocked by PreToolUse hook: ",
        needs_no_verdict: only_looks,
    },
    wanted,
};

/// It asks nobody before it looks what a command that runs on has printed.
fn only_looks(made: &Made) -> bool {
    let typed = made.input.get("chars").and_then(Value::as_str).unwrap_or_default();
    made.tool == "write_stdin" && typed.is_empty()
}

#[derive(Debug)]
pub struct Talk {
    prompt: String,
    schema: Option<Value>,
    hooked: Hooked,
    /// Calls that were allowed, and those that it began to make.
    allowed: u64,
    begun: u64,
    /// Those that are not over.
    at_work: u64,
    text: String,
    account: Account,
}

impl Talk {
    pub fn new(order: &Order) -> Self {
        Talk::of(order, catalogue::prompt(order), MANNER)
    }

    /// The same with another program, which says it in codex's words.
    pub fn of(order: &Order, prompt: &str, manner: Manner) -> Self {
        Talk {
            prompt: prompt.to_owned(),
            schema: order.output_schema.clone(),
            hooked: Hooked::new(manner, order),
            allowed: 0,
            begun: 0,
            at_work: 0,
            text: String::new(),
            account: Account::default(),
        }
    }

    fn began(&mut self, item: &Value) -> Vec<Step> {
        let tool = match text(item, "/type") {
            Some("command_execution") => "Bash",
            Some("file_change") => "apply_patch",
            Some(other @ ("mcp_tool_call" | "web_search" | "collab_tool_call")) => other,
            _ => return Vec::new(),
        };
        self.begun += 1;
        self.at_work += 1;
        if self.begun > self.allowed {
            let why = format!("it made more calls than were allowed; the last was one of {tool}");
            return vec![Step::Breach { why }];
        }
        vec![Step::Show(Sight::Used { tool: tool.to_owned() })]
    }

    fn ended(&mut self, item: &Value) -> Vec<Step> {
        match text(item, "/type") {
            Some("agent_message") => {
                text(item, "/text").unwrap_or_default().clone_into(&mut self.text);
                vec![Step::Show(Sight::Said { text: beginning(&self.text) })]
            }
            Some("command_execution" | "file_change" | "mcp_tool_call") => {
                self.at_work = self.at_work.saturating_sub(1);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn completed(&mut self, event: &Value) {
        let number = |name: &str| event.pointer(&format!("/usage/{name}")).and_then(Value::as_u64);
        let (input, cached) = (number("input_tokens"), number("cached_input_tokens"));
        let cached = cached.unwrap_or_default();
        let written = number("cache_write_input_tokens").unwrap_or_default();
        self.account.usage = input.map(|input| Usage {
            input: input.saturating_sub(cached).saturating_sub(written),
            output: number("output_tokens").unwrap_or_default(),
            cache_read: cached,
            cache_write: written,
        });
        self.account.text = std::mem::take(&mut self.text);
        self.account.end = Told::Finished;
        if let Some(schema) = &self.schema {
            take_output(&mut self.account, schema);
        }
    }
}

/// The calls that the policy is asked about.
fn wanted(made: &Made, hook: hooked::Told<'_>) -> Result<Vec<Call>, String> {
    let hooked::Told { tool: hooked, cwd, .. } = hook;
    let told = text(hook.input, "/command").unwrap_or_default();
    match made.tool.as_str() {
        "exec_command" if hooked == "Bash" => {
            let asked = text(&made.input, "/cmd").unwrap_or_default();
            if asked != told {
                return Err("the hook and the model do not name the same command".to_owned());
            }
            let shell = text(&made.input, "/shell").unwrap_or("bash");
            if !["bash", "/bin/bash", "/usr/bin/bash"].contains(&shell) {
                return Err(format!("`{shell}` is no shell to use. Leave out `shell`."));
            }
            for off in ["tty", "login"] {
                if made.input.get(off).and_then(Value::as_bool) == Some(true) {
                    return Err(format!("`{off}` cannot be had. Leave it out."));
                }
            }
            let place = match text(&made.input, "/workdir").filter(|place| !place.is_empty()) {
                Some(place) => Path::new(cwd).join(place).to_string_lossy().into_owned(),
                None => cwd.to_owned(),
            };
            let input = json!({"command": asked});
            Ok(vec![Call { tool: "Bash".to_owned(), input, cwd: place }])
        }
        "apply_patch" if hooked == "apply_patch" => {
            let asked = made.input.as_str().or_else(|| text(&made.input, "/input"));
            if asked != Some(told) {
                return Err("the hook and the model do not name the same patch".to_owned());
            }
            patch::calls(told, cwd)
        }
        // The policy says what it thinks of other tools.
        tool => {
            let (tool, input) = (tool.to_owned(), made.input.clone());
            Ok(vec![Call { tool, input, cwd: cwd.to_owned() }])
        }
    }
}

impl Conversation for Talk {
    fn open(&mut self) -> Vec<Step> {
        vec![Step::Send(std::mem::take(&mut self.prompt)), Step::CloseInput]
    }

    fn heard(&mut self, line: &[u8]) -> Vec<Step> {
        // To a value first: some events have a name twice.
        let Ok(event) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
        match text(&event, "/type") {
            Some("item.started") => self.began(&event["item"]),
            Some("item.completed") => self.ended(&event["item"]),
            // Other errors are followed by the end of the turn.
            Some("error") => match text(&event, "/message") {
                Some(message) if message.starts_with("Reconnecting") => {
                    vec![Step::Show(Sight::Retries { status: status(message) })]
                }
                _ => Vec::new(),
            },
            Some("turn.completed") => {
                self.completed(&event);
                vec![Step::Over]
            }
            Some("turn.failed") => {
                let message = text(&event, "/error/message").unwrap_or_default().to_owned();
                self.account.end = match status(&message) {
                    None if !message.contains("stream disconnected") => Told::Failed { message },
                    status => Told::Api { status, message },
                };
                vec![Step::Over]
            }
            _ => Vec::new(),
        }
    }

    fn hooked(&mut self, ticket: &str, event: &Value) -> Vec<Step> {
        self.hooked.ask(ticket, event)
    }

    fn calls(&self) -> Option<Arc<Calls>> {
        Some(Arc::clone(&self.hooked.calls))
    }

    fn judged(&mut self, ticket: &str, ruling: &Ruling) -> Vec<Step> {
        let (steps, allowed) = self.hooked.judged(ticket, ruling);
        self.allowed += u64::from(allowed.is_some());
        steps
    }

    fn is_at_work(&self) -> bool {
        self.at_work > 0
    }

    fn account(&self) -> Account {
        self.account.clone()
    }
}

/// The status of an HTTP answer that a message speaks of.
fn status(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("status")?;
    let digits = rest.trim_start_matches([':', ' ']);
    digits.get(..3)?.parse().ok().filter(|status| (100..600).contains(status))
}

#[cfg(test)]
mod tests;
