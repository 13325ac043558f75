//! What becomes of the tool calls that a model asks for.
//!
//! Some agent programs ask about a call through a hook, and make the call all
//! the same when that hook is missing, killed or not trusted. The gateway sees
//! both ends of every call: the model asks for it in an answer, and what came
//! of it is in the next request. So it can tell when a call was made that nobody
//! judged, and no request is answered before the hook has shown that it is
//! alive. What a call is about is taken from the answer, too: a hook does not
//! tell all of it.

mod hearing;
mod results;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::refusal::Refusal;
pub(crate) use hearing::Hearing;
use results::{CameBack, Request};

/// Calls that are kept account of in one run.
const MOST_CALLS: usize = 20_000;

/// How much of one call is kept, in bytes; one that is longer cannot be read, so
/// its hook gets no verdict but a denial.
const LONGEST_CALL: usize = 16 << 20;

/// How a program deals with calls, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Customs {
    /// Whether this is how the result of a call begins that was never made: the
    /// tool is unknown, or its input does not fit. The call is what the model
    /// asked for, if it did.
    pub not_made: fn(Option<&Made>, &str) -> bool,
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
    Asked(Heard),
    Allowed,
    Denied,
}

/// A call as it stands in an answer, as far as that has come.
#[derive(Debug)]
struct Heard {
    tool: String,
    text: String,
    kind: Kind,
}

/// What the text of a call is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Arguments,
    Plain,
}

impl Heard {
    fn made(&self) -> Made {
        let input = match self.kind {
            Kind::Plain => Value::String(self.text.clone()),
            // A tool that needs none may be called without arguments.
            Kind::Arguments if self.text.trim().is_empty() => Value::Object(Map::default()),
            Kind::Arguments => serde_json::from_str(&self.text)
                .unwrap_or_else(|_| Value::String(self.text.clone())),
        };
        Made { tool: self.tool.clone(), input }
    }
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
            Some(Standing::Asked(heard)) => Some(heard.made()),
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
        if dialect == Dialect::Messages {
            return Err(malformed("the calls in this dialect are not seen".to_owned()));
        }
        let request = Request::read(dialect, body)
            .map_err(|error| malformed(format!("the body cannot be read: {error}")))?;
        if !request.streamed {
            return Err(malformed("answers have to be streamed here".to_owned()));
        }
        let state = self.state();
        if !state.armed {
            return Err(Refusal::Unarmed);
        }
        for result in &request.results {
            self.came_back(&state, result)?;
        }
        match self.most_turns {
            Some(most) if state.turns >= most => Err(Refusal::Turns { most }),
            _ => Ok(()),
        }
    }

    fn came_back(&self, state: &State, result: &CameBack) -> Result<(), Refusal> {
        let CameBack { id, said } = result;
        let not_made = |made: Option<&Made>| (self.customs.not_made)(made, said);
        let (tool, why) = match state.calls.get(id) {
            Some(Standing::Allowed) => return Ok(()),
            Some(Standing::Denied) if said.starts_with(self.customs.denied) => return Ok(()),
            Some(Standing::Denied) | None if not_made(None) => return Ok(()),
            Some(Standing::Denied) => (String::new(), "was made although it was denied"),
            Some(Standing::Asked(heard)) => {
                let made = heard.made();
                if not_made(Some(&made)) || (self.customs.needs_no_verdict)(&made) {
                    return Ok(());
                }
                (format!(" of the tool `{}`", made.tool), "was made without a verdict")
            }
            None => (String::new(), "was made that the model never asked for"),
        };
        let named: String = id.chars().take(100).collect();
        Err(Refusal::Unjudged { why: format!("the call `{named}`{tool} {why}") })
    }

    /// The model asks for a call; whether it is kept account of. What was said
    /// about a call stays, and one that is not kept account of is denied when its
    /// hook asks.
    fn ask(&self, id: &str, heard: Heard) -> bool {
        let mut state = self.state();
        let full = state.calls.len() >= MOST_CALLS;
        match state.calls.entry(id.to_owned()) {
            Entry::Vacant(place) if !full => {
                place.insert(Standing::Asked(heard));
                true
            }
            Entry::Vacant(_) | Entry::Occupied(_) => false,
        }
    }

    /// More of a call that the model asks for.
    fn go_on(&self, id: &str, more: &str) {
        if let Some(Standing::Asked(heard)) = self.state().calls.get_mut(id)
            && heard.text.len() < LONGEST_CALL
        {
            heard.text.push_str(more);
        }
    }

    fn turn(&self) {
        self.state().turns += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CUSTOMS: Customs = Customs {
        not_made: |_, said| said.starts_with("unsupported call"),
        denied: "blocked: ",
        needs_no_verdict: |made| made.tool == "look",
    };

    fn armed(most_turns: Option<u32>) -> Arc<Calls> {
        let calls = Calls::new(CUSTOMS, most_turns);
        calls.arm();
        calls
    }

    fn hear(calls: &Arc<Calls>, items: &[Value]) {
        let mut hearing = Hearing::new(Arc::clone(calls), Dialect::Responses);
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
            (Dialect::Messages, r#"{"stream":true,"messages":[]}"#),
            (Dialect::Chat, r#"{"messages":[]}"#),
            (Dialect::Chat, r#"{"stream":true,"messages":{}}"#),
            (
                Dialect::Chat,
                r#"{"stream":true,"messages":[{"role":"user","role":"tool","content":"x"}]}"#,
            ),
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

    /// Hears chunks of the chat dialect, as they come.
    fn hear_chat(calls: &Arc<Calls>, deltas: &[Value], finish: &str) {
        let mut hearing = Hearing::new(Arc::clone(calls), Dialect::Chat);
        let chunk = |delta: &Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        for delta in deltas {
            hearing.take(format!("data: {}\n\n", chunk(delta, Value::Null)).as_bytes());
        }
        hearing.take(format!("data: {}\n\n", chunk(&json!({}), json!(finish))).as_bytes());
        hearing.take(b"data: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]\n\n");
    }

    fn piece(index: u64, id: Option<&str>, name: Option<&str>, text: &str) -> Value {
        json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": text}}]})
    }

    fn chat_back(calls: &Calls, id: &str, output: &Value) -> Result<(), Refusal> {
        let result = json!({"role": "tool", "tool_call_id": id, "content": output});
        let body = json!({"stream": true, "messages": [{"role": "user", "content": "x"}, result]});
        calls.check(Dialect::Chat, body.to_string().as_bytes())
    }

    #[test]
    fn calls_that_come_in_pieces_are_put_together_and_held_against_what_comes_back() {
        let calls = armed(Some(2));
        let pieces = [
            json!({"role": "assistant", "content": ""}),
            piece(0, Some("one"), Some("run"), "{\"a\""),
            piece(1, Some("two"), Some("run"), ""),
            piece(0, None, None, ":1}"),
            piece(2, Some("three"), Some("run"), "{broken"),
        ];
        hear_chat(&calls, &pieces, "tool_calls");
        assert_eq!(calls.asked("one").unwrap().input, json!({"a": 1}));
        assert_eq!(calls.asked("two").unwrap().input, json!({}));
        assert_eq!(calls.asked("three").unwrap().input, json!("{broken"));
        let text = json!("anything");
        calls.allow("one");
        calls.deny("two");
        assert_eq!(chat_back(&calls, "one", &text), Ok(()));
        assert_eq!(chat_back(&calls, "two", &json!("blocked: no")), Ok(()));
        for id in ["two", "three", "forged", ""] {
            let refused = chat_back(&calls, id, &text).unwrap_err();
            assert_eq!(refused.kind(), "unjudged", "{id}");
        }
        let old = json!({"stream": true, "messages": [{"role": "function", "content": "x"}]});
        let refused = calls.check(Dialect::Chat, old.to_string().as_bytes()).unwrap_err();
        assert_eq!(refused.kind(), "unjudged");
        // A name that was used before stands for what was said about it.
        hear_chat(&calls, &[piece(0, Some("one"), Some("run"), "{}")], "tool_calls");
        assert_eq!(calls.asked("one"), None);
        assert_eq!(chat_back(&calls, "one", &text), Err(Refusal::Turns { most: 2 }));
    }

    #[test]
    fn a_call_can_be_asked_about_before_the_answer_is_over() {
        let calls = armed(None);
        let mut hearing = Hearing::new(Arc::clone(&calls), Dialect::Chat);
        let delta = piece(0, Some("early"), Some("run"), "{}");
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        hearing.take(format!("data: {chunk}\n\n").as_bytes());
        assert!(calls.asked("early").is_some());
    }
}
