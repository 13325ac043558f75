//! What opencode says on its output and through its plugin, and what follows.
//!
//! It tells of a call when that is over, of each answer of the model with its
//! tokens, and of errors; that a run is over it says by leaving.

use std::collections::BTreeSet;
use std::sync::Arc;

use blueflame_core::money::Usage;
use blueflame_gateway::calls::{Calls, Customs, Made};
use serde_json::Value;

use super::super::hooked::{Hooked, Manner, text};
use super::super::last_message::take_output;
use super::super::{Account, Conversation, Order, Ruling, Sight, Step, Told, beginning};
use super::tools;

/// What the plugin begins with when it lets a call not be made.
const CUSTOMS: Customs =
    Customs { not_made, denied: "Blue Flame denied this call: ", needs_no_verdict: |_| false };

const MANNER: Manner = Manner { customs: CUSTOMS, wanted: tools::wanted };

/// How opencode 1.18.33 tells of a call that it could not even make out
/// (measured). A command may print the same words, so they count only for a call
/// that nothing could be made of.
fn not_made(made: Option<&Made>, said: &str) -> bool {
    let senseless = made.is_some_and(|it| !tools::is_known(&it.tool) || !it.input.is_object());
    senseless && said.starts_with("Model tried to call unavailable tool ")
}

#[derive(Debug)]
pub struct Talk {
    prompt: String,
    schema: Option<Value>,
    hooked: Hooked,
    /// The calls that were allowed, and of those the ones that are not over.
    allowed: BTreeSet<String>,
    at_work: BTreeSet<String>,
    /// Why the model stopped, if it did.
    reason: String,
    account: Account,
}

impl Talk {
    pub fn new(order: &Order) -> Self {
        Talk::of(order, MANNER)
    }

    /// The same with another program, which says it in opencode's words.
    pub fn of(order: &Order, manner: Manner) -> Self {
        Talk {
            prompt: order.prompt.clone(),
            schema: order.output_schema.clone(),
            hooked: Hooked::new(manner, order),
            allowed: BTreeSet::new(),
            at_work: BTreeSet::new(),
            reason: String::new(),
            account: Account::default(),
        }
    }

    fn used(&mut self, part: &Value) -> Vec<Step> {
        let id = text(part, "/callID").unwrap_or_default();
        let tool = text(part, "/tool").unwrap_or_default();
        self.at_work.remove(id);
        let made = text(part, "/state/status") == Some("completed");
        if made && !self.allowed.contains(id) {
            let why = format!("it made a call that was not allowed, of the tool `{tool}`");
            return vec![Step::Breach { why }];
        }
        vec![Step::Show(Sight::Used { tool: tool.to_owned() })]
    }

    fn finished(&mut self, part: &Value) {
        text(part, "/reason").unwrap_or_default().clone_into(&mut self.reason);
        let number = |place: &str| {
            let found = part.pointer(&format!("/tokens/{place}")).and_then(Value::as_u64);
            found.unwrap_or_default()
        };
        let total = self.account.usage.get_or_insert_default();
        *total = total.plus(Usage {
            input: number("input"),
            output: number("output").saturating_add(number("reasoning")),
            cache_read: number("cache/read"),
            cache_write: number("cache/write"),
        });
    }

    fn failed(&mut self, error: &Value) {
        let message = text(error, "/data/message").or_else(|| text(error, "/name"));
        let message = message.unwrap_or_default().to_owned();
        let status = error.pointer("/data/statusCode").and_then(Value::as_u64);
        self.account.end = match text(error, "/name") {
            Some("APIError") => {
                Told::Api { status: status.and_then(|it| u16::try_from(it).ok()), message }
            }
            _ => Told::Failed { message },
        };
    }
}

impl Conversation for Talk {
    fn open(&mut self) -> Vec<Step> {
        vec![Step::Send(std::mem::take(&mut self.prompt)), Step::CloseInput]
    }

    fn heard(&mut self, line: &[u8]) -> Vec<Step> {
        let Ok(event) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
        let part = &event["part"];
        match text(&event, "/type") {
            Some("text") => {
                text(part, "/text").unwrap_or_default().clone_into(&mut self.account.text);
                vec![Step::Show(Sight::Said { text: beginning(&self.account.text) })]
            }
            Some("tool_use") => self.used(part),
            Some("step_start") => {
                // It goes on after all.
                self.account.end = Told::Nothing;
                self.reason.clear();
                Vec::new()
            }
            Some("step_finish") => {
                self.finished(part);
                Vec::new()
            }
            Some("error") => {
                self.failed(&event["error"]);
                Vec::new()
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
        if let Some(id) = allowed {
            self.at_work.insert(id.clone());
            self.allowed.insert(id);
        }
        steps
    }

    fn is_at_work(&self) -> bool {
        !self.at_work.is_empty()
    }

    fn left(&mut self, code: Option<i32>) {
        if self.account.end != Told::Nothing || code != Some(0) {
            return;
        }
        match self.reason.as_str() {
            "stop" => {
                self.account.end = Told::Finished;
                if let Some(schema) = &self.schema {
                    take_output(&mut self.account, schema);
                }
            }
            // It never got as far as an answer.
            "" => {}
            reason => {
                let message = format!("the model's last answer broke off: {reason}");
                self.account.end = Told::Failed { message };
            }
        }
    }

    fn account(&self) -> Account {
        self.account.clone()
    }
}

#[cfg(test)]
mod tests;
