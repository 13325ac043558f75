//! The dialect of `claude -p` with streams of JSON on both sides, which the
//! embedded agent speaks too.
//!
//! Every tool call is announced by a `hook_callback` and waits for its answer.
//! The prompt is sent only after the program confirmed that it will do so, and
//! a result for a call that nobody was asked about ends the run.
//!
//! What is held is bounded, whatever the program says: lines with very many
//! values, calls without results and questions without answers have limits.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::last_message::take_output;
use super::{Account, Call, Conversation, Order, Question, Ruling, Sight, Step, beginning};
use account::read_result;

mod account;

/// How long the program waits for a verdict before it denies the call itself.
const VERDICT_SECONDS: u32 = 60;

const ASK: &str = "AskUserQuestion";

/// Questions that may be open, and calls that may have no result yet.
const MOST_WAITING: usize = 64;
const MOST_CALLS: usize = 4_096;

/// Values in one line. A value takes many times the memory of its text.
const MOST_VALUES: usize = 500_000;

/// What is kept of a line that makes no sense, in bytes.
const MOST_UNREAD: usize = 120;

/// Which results of calls that were never judged show that these calls were not
/// made.
#[derive(Clone, Copy, Debug)]
pub enum Unjudged {
    /// Errors that begin in one of these ways.
    Marked(&'static [&'static str]),
    AnyError,
}

#[derive(Debug)]
pub struct Stream {
    prompt: String,
    may_ask: bool,
    open: bool,
    /// Requests of the program that wait for an answer.
    waiting: BTreeMap<String, Waiting>,
    unjudged: Unjudged,
    /// Calls that were allowed and have no result yet: what was allowed.
    allowed: BTreeMap<String, blake3::Hash>,
    /// Calls that were not allowed and have no result yet.
    denied: BTreeSet<String>,
    interrupted: bool,
    account: Account,
    /// What the last message has to fit, for programs whose output that is.
    schema: Option<Value>,
    /// The beginning of the last line that is no part of the dialect.
    unread: Option<String>,
}

/// What an answer has to look like.
#[derive(Debug)]
enum Waiting {
    Hook { call: String, what: blake3::Hash },
    Permission { call: String, what: blake3::Hash, input: Value },
    Questions { call: String, input: Value },
}

/// A call by all that is judged about it.
fn fingerprint(tool: &str, input: &Value) -> blake3::Hash {
    blake3::hash(json!([tool, input]).to_string().as_bytes())
}

impl Stream {
    pub fn new(order: &Order, unjudged: Unjudged) -> Self {
        Stream {
            prompt: unlike_a_command(&order.prompt),
            may_ask: order.may_ask,
            open: false,
            waiting: BTreeMap::new(),
            unjudged,
            allowed: BTreeMap::new(),
            denied: BTreeSet::new(),
            interrupted: false,
            account: Account::default(),
            schema: None,
            unread: None,
        }
    }

    /// The same, with the last message as the structured output.
    pub fn with_output_in_words(order: &Order, unjudged: Unjudged) -> Self {
        Stream { schema: order.output_schema.clone(), ..Stream::new(order, unjudged) }
    }

    fn control_request(&mut self, event: &Value) -> Vec<Step> {
        let Some(ticket) = text(event, "/request_id").map(str::to_owned) else {
            return Vec::new();
        };
        if self.waiting.len() >= MOST_WAITING
            || self.allowed.len() + self.denied.len() >= MOST_CALLS
        {
            return vec![refusal(&ticket, "too many calls and questions are open")];
        }
        let call_id = || text(event, "/request/tool_use_id").unwrap_or_default().to_owned();
        let what = |tool: Option<&str>, input: Option<&Value>| {
            fingerprint(tool.unwrap_or_default(), input.unwrap_or(&Value::Null))
        };
        let (waiting, tool, input, cwd) = match text(event, "/request/subtype") {
            Some("hook_callback") => {
                let tool = text(event, "/request/input/tool_name");
                let input = event.pointer("/request/input/tool_input");
                let waiting = Waiting::Hook { call: call_id(), what: what(tool, input) };
                (waiting, tool, input, text(event, "/request/input/cwd"))
            }
            Some("can_use_tool") => {
                let tool = text(event, "/request/tool_name");
                let input = event.pointer("/request/input");
                let kept = input.cloned().unwrap_or_default();
                if tool == Some(ASK) && self.may_ask {
                    return self.questions(ticket, call_id(), kept);
                }
                let what = what(tool, input);
                if self.allowed.get(&call_id()) == Some(&what) {
                    // The very call that was judged a moment ago.
                    return vec![permission(&ticket, &allow(&kept))];
                }
                let waiting = Waiting::Permission { call: call_id(), what, input: kept };
                (waiting, tool, input, None)
            }
            other => {
                let why = format!("`{}` is not served here", other.unwrap_or_default());
                return vec![refusal(&ticket, &why)];
            }
        };
        let call = Call {
            tool: tool.unwrap_or_default().to_owned(),
            input: input.cloned().unwrap_or_default(),
            cwd: cwd.unwrap_or_default().to_owned(),
        };
        self.waiting.insert(ticket.clone(), waiting);
        vec![Step::Judge { ticket, call }]
    }

    fn questions(&mut self, ticket: String, call: String, input: Value) -> Vec<Step> {
        let questions = input.get("questions").cloned().unwrap_or_default();
        match serde_json::from_value::<Vec<Question>>(questions) {
            Ok(questions) => {
                self.waiting.insert(ticket.clone(), Waiting::Questions { call, input });
                vec![Step::Ask { ticket, questions }]
            }
            Err(error) => vec![permission(&ticket, &deny(&format!("unreadable: {error}")))],
        }
    }

    /// Results of calls: each must belong to a call that was allowed.
    fn results(&mut self, event: &Value) -> Vec<Step> {
        let mut steps = Vec::new();
        for block in blocks(event) {
            if text(block, "/type") != Some("tool_result") {
                continue;
            }
            let failed = block.get("is_error").and_then(Value::as_bool) == Some(true);
            let id = text(block, "/tool_use_id").unwrap_or_default();
            let allowed = self.allowed.remove(id).is_some();
            let denied = self.denied.remove(id);
            if !allowed && !(failed && (denied || self.was_not_made(block))) {
                let why = format!("the result of a call came that was never judged: `{id}`");
                steps.push(Step::Breach { why });
            }
        }
        steps
    }

    /// Whether an error says that the call was never made.
    fn was_not_made(&self, block: &Value) -> bool {
        match self.unjudged {
            Unjudged::AnyError => true,
            Unjudged::Marked(marks) => {
                let said = text(block, "/content").or_else(|| text(block, "/content/0/text"));
                marks.iter().any(|mark| said.is_some_and(|said| said.starts_with(mark)))
            }
        }
    }

    /// The program does not wait for this answer any more.
    fn cancelled(&mut self, ticket: &str) -> Vec<Step> {
        match self.waiting.remove(ticket) {
            None => Vec::new(),
            // It denies by itself what nobody answers.
            Some(Waiting::Hook { call, .. } | Waiting::Permission { call, .. }) => {
                self.denied.insert(call);
                Vec::new()
            }
            Some(Waiting::Questions { call, .. }) => {
                self.denied.insert(call);
                vec![Step::Withdraw { ticket: ticket.to_owned() }]
            }
        }
    }

    fn system(event: &Value) -> Vec<Step> {
        let sight = match text(event, "/subtype") {
            Some("init") => Sight::Ready {
                version: text(event, "/claude_code_version")
                    .or_else(|| text(event, "/version"))
                    .unwrap_or_default()
                    .to_owned(),
            },
            Some("api_retry") => Sight::Retries { status: status(event, "/error_status") },
            _ => return Vec::new(),
        };
        vec![Step::Show(sight)]
    }
}

impl Conversation for Stream {
    fn open(&mut self) -> Vec<Step> {
        let hook = json!({
            "matcher": "*", "hookCallbackIds": ["judge"], "timeout": VERDICT_SECONDS,
        });
        vec![control("open", &json!({"subtype": "initialize", "hooks": {"PreToolUse": [hook]}}))]
    }

    fn heard(&mut self, line: &[u8]) -> Vec<Step> {
        if values(line) > MOST_VALUES {
            return self.missed(line.len() as u64);
        }
        // What is no JSON is no part of the dialect: it is in the log.
        let Ok(event) = serde_json::from_slice::<Value>(line) else {
            let start = &line[..line.len().min(MOST_UNREAD)];
            self.unread = Some(String::from_utf8_lossy(start).into_owned());
            return Vec::new();
        };
        match text(&event, "/type") {
            Some("control_request") => self.control_request(&event),
            Some("control_cancel_request") => {
                self.cancelled(text(&event, "/request_id").unwrap_or_default())
            }
            Some("control_response") if text(&event, "/response/request_id") == Some("open") => {
                if text(&event, "/response/subtype") != Some("success") {
                    let why = text(&event, "/response/error").unwrap_or("no reason given");
                    let message = format!("it does not let its calls be judged: {why}");
                    self.account.end = super::Told::Failed { message };
                    return vec![Step::Over];
                }
                if std::mem::replace(&mut self.open, true) {
                    return Vec::new();
                }
                let message = json!({"role": "user", "content": self.prompt});
                vec![Step::Send(json!({"type": "user", "message": message}).to_string())]
            }
            Some("system") => Self::system(&event),
            Some("assistant") => seen(&event),
            Some("user") => self.results(&event),
            // The first is its last word: there is only one.
            Some("result") if self.account.end != super::Told::Nothing => {
                vec![Step::Breach { why: "a second result came after the first".to_owned() }]
            }
            Some("result") => {
                self.account = read_result(&event, self.interrupted);
                if let Some(schema) = &self.schema
                    && self.account.end == super::Told::Finished
                {
                    take_output(&mut self.account, schema);
                }
                vec![Step::Over]
            }
            _ => Vec::new(),
        }
    }

    fn judged(&mut self, ticket: &str, ruling: &Ruling) -> Vec<Step> {
        let step = match (self.waiting.remove(ticket), ruling) {
            (None, _) => return Vec::new(),
            (Some(Waiting::Hook { call, what }), ruling) => {
                let (decision, reason) = match ruling {
                    Ruling::Allow => {
                        self.allowed.insert(call, what);
                        ("allow", "within the rules")
                    }
                    Ruling::Deny { reason } => {
                        self.deny(call);
                        ("deny", reason.as_str())
                    }
                };
                let output = json!({
                    "hookEventName": "PreToolUse",
                    "permissionDecision": decision,
                    "permissionDecisionReason": reason,
                });
                success(ticket, &json!({"hookSpecificOutput": output}))
            }
            (Some(Waiting::Permission { call, what, input }), Ruling::Allow) => {
                self.allowed.insert(call, what);
                permission(ticket, &allow(&input))
            }
            (
                Some(Waiting::Permission { call, .. } | Waiting::Questions { call, .. }),
                Ruling::Deny { reason },
            ) => {
                self.deny(call);
                permission(ticket, &deny(reason))
            }
            (Some(waiting @ Waiting::Questions { .. }), Ruling::Allow) => {
                // Only answers let these through.
                self.waiting.insert(ticket.to_owned(), waiting);
                return Vec::new();
            }
        };
        vec![step]
    }

    fn answered(&mut self, ticket: &str, answers: &BTreeMap<String, String>) -> Vec<Step> {
        match self.waiting.remove(ticket) {
            Some(Waiting::Questions { call, mut input }) => {
                let answers: Map<String, Value> =
                    answers.iter().map(|(q, a)| (q.clone(), Value::from(a.as_str()))).collect();
                if let Some(input) = input.as_object_mut() {
                    input.insert("answers".to_owned(), Value::Object(answers));
                }
                self.allowed.insert(call, fingerprint(ASK, &input));
                vec![permission(ticket, &allow(&input))]
            }
            Some(other) => {
                self.waiting.insert(ticket.to_owned(), other);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn interrupt(&mut self) -> Vec<Step> {
        if std::mem::replace(&mut self.interrupted, true) {
            return Vec::new();
        }
        vec![control("interrupt", &json!({"subtype": "interrupt"}))]
    }

    fn is_at_work(&self) -> bool {
        !self.allowed.is_empty()
    }

    fn account(&self) -> Account {
        self.account.clone()
    }

    fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }
}

impl Stream {
    /// The last word about a call counts.
    fn deny(&mut self, call: String) {
        self.allowed.remove(&call);
        self.denied.insert(call);
    }
}

/// How many values a line of JSON has at most: strings are one each, however
/// long they are.
fn values(line: &[u8]) -> usize {
    let (mut values, mut inside, mut escaped) = (1, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' if !inside => values += 1,
            _ => {}
        }
    }
    values
}

/// A prompt that starts with `/` would be taken for a command of the program
/// and never reach the model.
fn unlike_a_command(prompt: &str) -> String {
    if prompt.trim_start().starts_with('/') { format!("\n{prompt}") } else { prompt.to_owned() }
}

fn seen(event: &Value) -> Vec<Step> {
    let sight = |block: &Value| match text(block, "/type")? {
        "text" => Some(Sight::Said { text: beginning(text(block, "/text")?) }),
        "tool_use" => Some(Sight::Used { tool: beginning(text(block, "/name")?) }),
        _ => None,
    };
    blocks(event).iter().filter_map(sight).map(Step::Show).collect()
}

fn blocks(event: &Value) -> &[Value] {
    event.pointer("/message/content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn status(value: &Value, pointer: &str) -> Option<u16> {
    value.pointer(pointer)?.as_u64()?.try_into().ok()
}

fn control(id: &str, request: &Value) -> Step {
    Step::Send(json!({"type": "control_request", "request_id": id, "request": request}).to_string())
}

fn success(ticket: &str, response: &Value) -> Step {
    let response = json!({"subtype": "success", "request_id": ticket, "response": response});
    Step::Send(json!({"type": "control_response", "response": response}).to_string())
}

fn refusal(ticket: &str, why: &str) -> Step {
    let response = json!({"subtype": "error", "request_id": ticket, "error": why});
    Step::Send(json!({"type": "control_response", "response": response}).to_string())
}

fn permission(ticket: &str, behavior: &Value) -> Step {
    success(ticket, behavior)
}

fn allow(input: &Value) -> Value {
    json!({"behavior": "allow", "updatedInput": input})
}

fn deny(reason: &str) -> Value {
    json!({"behavior": "deny", "message": reason})
}

#[cfg(test)]
mod tests;
