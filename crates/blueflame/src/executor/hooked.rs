//! The calls of a program that asks about them through a hook, from the question
//! to the verdict.
//!
//! Both sides of the gateway are held together: a hook that asks about a call that
//! no model asked for, or asks twice, is denied.

use std::collections::BTreeMap;
use std::sync::Arc;

use blueflame_gateway::calls::{Calls, Customs, Made};
use serde_json::Value;

use super::{Call, Order, Ruling, Step};

/// A call that is being judged.
#[derive(Debug)]
struct Pending {
    id: String,
    /// What the model calls one call may be several, and all have to be allowed.
    left: usize,
}

/// How a program tells of its calls, to its hook and to its model.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub customs: Customs,
    pub wanted: Wanted,
}

/// The calls of one run.
#[derive(Debug)]
pub struct Hooked {
    pub calls: Arc<Calls>,
    wanted: Wanted,
    pending: BTreeMap<String, Pending>,
}

/// What a hook tells of a call.
#[derive(Clone, Copy, Debug)]
pub struct Told<'e> {
    pub tool: &'e str,
    pub input: &'e Value,
    pub cwd: &'e str,
}

/// What the policy has to be asked about, for a call that the model asked for; or
/// why it cannot be asked.
pub type Wanted = fn(&Made, Told<'_>) -> Result<Vec<Call>, String>;

impl Hooked {
    pub fn new(manner: Manner, order: &Order) -> Self {
        let calls = Calls::new(manner.customs, order.max_turns);
        Hooked { calls, wanted: manner.wanted, pending: BTreeMap::new() }
    }

    /// A hook asks.
    pub fn ask(&mut self, ticket: &str, event: &Value) -> Vec<Step> {
        match text(event, "/hook_event_name") {
            Some("SessionStart") => {
                self.calls.arm();
                vec![rule(ticket, Ruling::Allow)]
            }
            Some("PreToolUse") => self.before_call(ticket, event),
            other => {
                let reason = format!("`{}` is not served here", other.unwrap_or_default());
                vec![rule(ticket, Ruling::Deny { reason })]
            }
        }
    }

    fn before_call(&mut self, ticket: &str, event: &Value) -> Vec<Step> {
        let id = text(event, "/tool_use_id").unwrap_or_default();
        let Some(made) = self.calls.asked(id) else {
            let reason = "the model did not ask for this call, or it was judged before";
            return vec![rule(ticket, Ruling::Deny { reason: reason.to_owned() })];
        };
        let cwd = text(event, "/cwd").unwrap_or_default();
        let tool = text(event, "/tool_name").unwrap_or_default();
        let input = event.get("tool_input").unwrap_or(&Value::Null);
        let wanted = (self.wanted)(&made, Told { tool, input, cwd });
        let left = wanted.as_ref().map_or(1, Vec::len);
        self.pending.insert(ticket.to_owned(), Pending { id: id.to_owned(), left });
        let ticket = ticket.to_owned();
        match wanted {
            Ok(calls) => {
                let judge = |call| Step::Judge { ticket: ticket.clone(), call };
                calls.into_iter().map(judge).collect()
            }
            Err(why) => {
                let call = Call { tool: made.tool, input: made.input, cwd: cwd.to_owned() };
                vec![Step::Object { ticket, call, why }]
            }
        }
    }

    /// The policy has spoken: what to do, and the name of the call if it may be
    /// made now.
    pub fn judged(&mut self, ticket: &str, ruling: &Ruling) -> (Vec<Step>, Option<String>) {
        let Some(mut pending) = self.pending.remove(ticket) else { return (Vec::new(), None) };
        let allowed = match ruling {
            Ruling::Deny { .. } => {
                self.calls.deny(&pending.id);
                None
            }
            Ruling::Allow if pending.left > 1 => {
                pending.left -= 1;
                self.pending.insert(ticket.to_owned(), pending);
                return (Vec::new(), None);
            }
            Ruling::Allow => {
                self.calls.allow(&pending.id);
                Some(pending.id)
            }
        };
        (vec![rule(ticket, ruling.clone())], allowed)
    }
}

fn rule(ticket: &str, ruling: Ruling) -> Step {
    Step::Rule { ticket: ticket.to_owned(), ruling }
}

/// The text at a place in a value.
pub fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}
