//! What becomes of the tool calls that a model asks for.
//!
//! Some agent programs ask about a call through a hook, and make the call all
//! the same when that hook is missing, killed or not trusted. The gateway sees
//! both ends of every call: the model asks for it in an answer, and what came
//! of it is in the next request. So it can tell when a call was made that nobody
//! judged, and no request is answered before the hook has shown that it is
//! alive. What a call is about is taken from the answer, too: a hook does not
//! tell all of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::refusal::Refusal;
use crate::sse::Events;

/// Calls that are kept account of in one run.
const MOST_CALLS: usize = 20_000;

/// How a program deals with calls, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Customs {
    /// How the result of a call begins that was never made: the tool is unknown,
    /// or its input does not fit.
    pub not_made: &'static [&'static str],
    /// How the result of a call begins that its hook denied.
    pub denied: &'static str,
    /// Whether the program makes this call without asking, and may.
    pub needs_no_verdict: fn(&Made) -> bool,
}

/// A call that the model asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub tool: String,
    /// Its arguments, or the plain text that some tools take.
    pub input: Value,
}

#[derive(Debug)]
enum Standing {
    Asked(Made),
    Allowed,
    Denied,
}

/// The calls of one agent run.
#[derive(Debug)]
pub struct Calls {
    customs: Customs,
    /// Answers with calls that there may be; for programs that do not count
    /// themselves.
    most_turns: Option<u32>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    armed: bool,
    turns: u32,
    calls: BTreeMap<String, Standing>,
}

impl Calls {
    pub fn new(customs: Customs, most_turns: Option<u32>) -> Arc<Calls> {
        Arc::new(Calls { customs, most_turns, state: Mutex::default() })
    }

    /// The hook has shown that it is alive.
    pub fn arm(&self) {
        self.state().armed = true;
    }

    /// What the model asked for under this name, if it did and nothing was said
    /// about it yet.
    pub fn asked(&self, id: &str) -> Option<Made> {
        match self.state().calls.get(id) {
            Some(Standing::Asked(made)) => Some(made.clone()),
            Some(Standing::Allowed | Standing::Denied) | None => None,
        }
    }

    pub fn allow(&self, id: &str) {
        self.state().calls.insert(id.to_owned(), Standing::Allowed);
    }

    pub fn deny(&self, id: &str) {
        self.state().calls.insert(id.to_owned(), Standing::Denied);
    }

    /// Whether a request may be answered: the hook is alive, and every result in
    /// it belongs to a call that was judged.
    pub(crate) fn check(&self, dialect: Dialect, body: &[u8]) -> Result<(), Refusal> {
        let malformed = |why: String| Refusal::Malformed { why };
        if dialect != Dialect::Responses {
            return Err(malformed("the calls in this dialect are not seen".to_owned()));
        }
        let unreadable = |error| malformed(format!("the body cannot be read: {error}"));
        let request: Request<'_> = serde_json::from_slice(body).map_err(unreadable)?;
        if request.stream != Some(true) {
            return Err(malformed("answers have to be streamed here".to_owned()));
        }
        let state = self.state();
        if !state.armed {
            return Err(Refusal::Unarmed);
        }
        for item in request.items().map_err(unreadable)? {
            if item.kind.as_deref().is_some_and(|kind| kind.ends_with("_output")) {
                self.came_back(&state, &item)?;
            }
        }
        match self.most_turns {
            Some(most) if state.turns >= most => Err(Refusal::Turns { most }),
            _ => Ok(()),
        }
    }

    fn came_back(&self, state: &State, item: &Item<'_>) -> Result<(), Refusal> {
        let said = item.output.as_ref().map(text).unwrap_or_default();
        let not_made = self.customs.not_made.iter().any(|start| said.starts_with(start));
        let id = item.call_id.as_deref().unwrap_or_default();
        let (tool, why) = match state.calls.get(id) {
            Some(Standing::Allowed) => return Ok(()),
            Some(Standing::Denied) if said.starts_with(self.customs.denied) => return Ok(()),
            Some(_) | None if not_made => return Ok(()),
            Some(Standing::Asked(made)) if (self.customs.needs_no_verdict)(made) => return Ok(()),
            Some(Standing::Denied) => ("", "was made although it was denied"),
            Some(Standing::Asked(made)) => (made.tool.as_str(), "was made without a verdict"),
            None => ("", "was made that the model never asked for"),
        };
        let named: String = id.chars().take(100).collect();
        let tool = if tool.is_empty() { String::new() } else { format!(" of the tool `{tool}`") };
        Err(Refusal::Unjudged { why: format!("the call `{named}`{tool} {why}") })
    }

    fn ask(&self, id: String, made: Made) {
        let mut state = self.state();
        // What was said about a call stays; and one that is not kept account of
        // is denied when its hook asks.
        if state.calls.len() < MOST_CALLS {
            state.calls.entry(id).or_insert(Standing::Asked(made));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears the calls in one answer as it passes.
#[derive(Debug)]
pub(crate) struct Hearing {
    calls: Arc<Calls>,
    events: Events,
    heard_calls: bool,
}

impl Hearing {
    pub(crate) fn new(calls: Arc<Calls>) -> Self {
        Hearing { calls, events: Events::default(), heard_calls: false }
    }

    pub(crate) fn take(&mut self, chunk: &[u8]) {
        let Hearing { calls, events, heard_calls } = self;
        events.feed(chunk, |data| {
            // Other events are of no interest, whatever they look like.
            let Ok(Event { kind, item }) = serde_json::from_slice(data) else { return };
            match (kind.as_deref(), item) {
                (Some("response.output_item.done"), Some(item)) => {
                    if let Some((id, made)) = item.call() {
                        calls.ask(id, made);
                        *heard_calls = true;
                    }
                }
                (Some("response.completed"), _) if std::mem::take(heard_calls) => {
                    calls.state().turns += 1;
                }
                _ => {}
            }
        });
    }
}

#[derive(Deserialize)]
struct Request<'b> {
    stream: Option<bool>,
    #[serde(borrow)]
    input: Option<&'b RawValue>,
}

impl<'b> Request<'b> {
    fn items(&self) -> Result<Vec<Item<'b>>, serde_json::Error> {
        match self.input {
            // A prompt and nothing else may be plain text.
            Some(input) if !input.get().starts_with('"') => serde_json::from_str(input.get()),
            Some(_) | None => Ok(Vec::new()),
        }
    }
}

#[derive(Deserialize)]
struct Item<'b> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'b, str>>,
    #[serde(borrow)]
    call_id: Option<Cow<'b, str>>,
    output: Option<Value>,
}

/// What a result says: its text, or the first of its parts.
fn text(output: &Value) -> &str {
    output.as_str().or_else(|| output.pointer("/0/text")?.as_str()).unwrap_or_default()
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    item: Option<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "type")]
    kind: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
}

impl Asked {
    fn call(self) -> Option<(String, Made)> {
        let input = match self.kind.as_deref()? {
            "function_call" => {
                let arguments = self.arguments.unwrap_or_default();
                serde_json::from_str(&arguments).unwrap_or(Value::String(arguments))
            }
            "custom_tool_call" => Value::String(self.input.unwrap_or_default()),
            _ => return None,
        };
        Some((self.call_id?, Made { tool: self.name?, input }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CUSTOMS: Customs = Customs {
        not_made: &["unsupported call"],
        denied: "blocked: ",
        needs_no_verdict: |made| made.tool == "look",
    };

    fn armed(most_turns: Option<u32>) -> Arc<Calls> {
        let calls = Calls::new(CUSTOMS, most_turns);
        calls.arm();
        calls
    }

    fn hear(calls: &Arc<Calls>, items: &[Value]) {
        let mut hearing = Hearing::new(Arc::clone(calls));
        let done = |item: &Value| json!({"type": "response.output_item.done", "item": item});
        let end = json!({"type": "response.completed", "response": {"output": items}});
        for event in items.iter().map(done).chain([end]) {
            for byte in format!("data: {event}\n\n").as_bytes() {
                hearing.take(&[*byte]);
            }
        }
    }

    fn call(id: &str, tool: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": tool, "arguments": "{\"a\":1}"})
    }

    fn back(calls: &Calls, id: &str, output: &Value) -> Result<(), Refusal> {
        let item = json!({"type": "function_call_output", "call_id": id, "output": output});
        let body = json!({"stream": true, "input": [{"role": "user"}, item]});
        calls.check(Dialect::Responses, body.to_string().as_bytes())
    }

    #[test]
    fn nothing_is_answered_before_the_hook_is_alive() {
        let calls = Calls::new(CUSTOMS, None);
        let body = br#"{"stream":true,"input":"hello"}"#;
        assert_eq!(calls.check(Dialect::Responses, body), Err(Refusal::Unarmed));
        calls.arm();
        assert_eq!(calls.check(Dialect::Responses, body), Ok(()));
    }

    #[test]
    fn every_result_needs_a_verdict_that_it_agrees_with() {
        let calls = armed(None);
        let text = json!("anything at all");
        let list: Vec<Value> =
            ["allowed", "denied", "kept", "silent"].map(|id| call(id, "run")).into();
        hear(&calls, &list);
        hear(&calls, &[call("looked", "look")]);
        let asked = calls.asked("allowed").unwrap();
        assert_eq!(asked, Made { tool: "run".into(), input: json!({"a": 1}) });
        calls.allow("allowed");
        calls.deny("denied");
        calls.deny("kept");
        assert_eq!(calls.asked("allowed"), None, "one verdict is enough");
        assert_eq!(back(&calls, "allowed", &text), Ok(()));
        assert_eq!(back(&calls, "looked", &text), Ok(()));
        assert_eq!(back(&calls, "kept", &json!("blocked: by the rules")), Ok(()));
        assert_eq!(back(&calls, "kept", &json!([{"text": "blocked: by the rules"}])), Ok(()));
        assert_eq!(back(&calls, "unheard", &json!("unsupported call: x")), Ok(()));
        for (id, why) in [
            ("denied", "although it was denied"),
            ("silent", "of the tool `run` was made without a verdict"),
            ("forged", "never asked for"),
        ] {
            let Err(Refusal::Unjudged { why: said }) = back(&calls, id, &text) else {
                panic!("{id}")
            };
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_verdict_that_came_early_is_not_forgotten() {
        let calls = armed(None);
        calls.deny("early");
        hear(&calls, &[call("early", "run")]);
        assert_eq!(calls.asked("early"), None);
        assert!(back(&calls, "early", &json!("ran")).is_err());
    }

    #[test]
    fn answers_with_calls_are_counted() {
        let calls = armed(Some(2));
        let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "x"});
        hear(&calls, &[call("a", "look"), call("b", "look")]);
        hear(&calls, &[json!({"type": "message"})]);
        assert_eq!(back(&calls, "a", &json!("")), Ok(()));
        hear(&calls, &[custom]);
        assert_eq!(calls.asked("c").unwrap().input, json!("x"));
        assert_eq!(back(&calls, "a", &json!("")), Err(Refusal::Turns { most: 2 }));
    }

    #[test]
    fn what_cannot_be_seen_is_not_answered() {
        let calls = armed(None);
        for (dialect, body) in [
            (Dialect::Chat, r#"{"stream":true,"messages":[]}"#),
            (Dialect::Responses, r#"{"input":[]}"#),
            (Dialect::Responses, r#"{"stream":false,"input":[]}"#),
            (Dialect::Responses, r#"{"stream":true,"input":{}}"#),
            (
                Dialect::Responses,
                r#"{"stream":true,"input":[{"type":"message","type":"function_call_output"}]}"#,
            ),
        ] {
            let refused = calls.check(dialect, body.as_bytes()).unwrap_err();
            assert_eq!(refused.kind(), "malformed", "{body}");
        }
    }
}
