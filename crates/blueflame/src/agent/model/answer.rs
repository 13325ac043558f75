//! The model's answer, put together from the events of its stream.
//!
//! An answer is whole when its last event has come, and not before: what broke
//! off in the middle is never taken for an answer.

use std::collections::BTreeMap;

use blueflame_core::money::Usage;
use serde_json::{Value, json};

use super::failure::{Failure, FailureKind, Reached};

/// A whole answer.
#[derive(Debug, PartialEq)]
pub(in crate::agent) struct Answer {
    pub(in crate::agent) id: String,
    pub(in crate::agent) model: String,
    pub(in crate::agent) blocks: Vec<Block>,
    pub(in crate::agent) stop_reason: Option<String>,
    pub(in crate::agent) usage: Usage,
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::agent) enum Block {
    Text(String),
    /// A tool call; its input is missing if it was no JSON.
    Call {
        id: String,
        tool: String,
        input: Option<Value>,
    },
    /// Thoughts and whatever else has to be shown to the model again.
    Other(Value),
}

impl Block {
    /// As the API writes it.
    pub(in crate::agent) fn to_value(&self) -> Value {
        match self {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Call { id, tool, input } => {
                let input = input.clone().unwrap_or_else(|| json!({}));
                json!({"type": "tool_use", "id": id, "name": tool, "input": input})
            }
            Block::Other(value) => value.clone(),
        }
    }
}

/// An answer that is still coming in.
#[derive(Debug, Default)]
pub(in crate::agent) struct Partial {
    id: String,
    model: String,
    open: BTreeMap<u64, Open>,
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    usage: Usage,
    done: bool,
}

/// A block that is still coming in.
#[derive(Debug)]
struct Open {
    block: Value,
    /// The input of a tool call comes as pieces of JSON text.
    json: String,
}

impl Partial {
    /// Takes in one event.
    pub(in crate::agent) fn feed(&mut self, event: &[u8]) -> Result<(), Failure> {
        if event == b"[DONE]" {
            return Ok(());
        }
        let mut event: Value = serde_json::from_slice(event).map_err(|error| {
            self.broken(format!("the model's stream holds an event that cannot be read: {error}"))
        })?;
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.start(&event["message"]),
            "content_block_start" => {
                let open = Open { block: event["content_block"].take(), json: String::new() };
                self.open.insert(index(&event), open);
            }
            "content_block_delta" => {
                let at = index(&event);
                let Some(open) = self.open.get_mut(&at) else {
                    let why =
                        format!("the model's stream goes on with block {at}, which it never began");
                    return Err(self.broken(why));
                };
                open.extend(&event["delta"]);
            }
            "content_block_stop" => {
                if let Some(open) = self.open.remove(&index(&event)) {
                    self.close(open);
                }
            }
            "message_delta" => {
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
                self.usage = self.usage.at_least(usage(&event["usage"]));
            }
            "message_stop" => {
                for (_, open) in std::mem::take(&mut self.open) {
                    self.close(open);
                }
                self.done = true;
            }
            "error" => {
                let reached = self.reached();
                return Err(Failure { reached, ..Failure::of_event(&event) });
            }
            // `ping`, and whatever the API learns to say.
            _ => {}
        }
        Ok(())
    }

    /// Takes a whole answer, from a server that does not stream.
    pub(in crate::agent) fn feed_whole(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut message: Value = serde_json::from_slice(body)
            .map_err(|error| self.broken(format!("the model's answer cannot be read: {error}")))?;
        let content = message.get_mut("content").and_then(Value::as_array_mut);
        let Some(blocks) = content.map(std::mem::take) else {
            return Err(self.broken("the model's answer has no content".to_owned()));
        };
        self.start(&message);
        for block in blocks {
            self.close(Open { block, json: String::new() });
        }
        self.stop_reason = message["stop_reason"].as_str().map(str::to_owned);
        self.done = true;
        Ok(())
    }

    pub(in crate::agent) fn is_done(&self) -> bool {
        self.done
    }

    /// What the provider has said so far about tokens.
    pub(in crate::agent) fn usage(&self) -> Usage {
        self.usage
    }

    /// The model that answers, by its own account.
    pub(in crate::agent) fn model(&self) -> &str {
        &self.model
    }

    /// The answer, if it is whole.
    pub(in crate::agent) fn finish(self) -> Result<Answer, Failure> {
        if !self.done {
            return Err(self.broken("the model's answer broke off".to_owned()));
        }
        let Partial { id, model, blocks, stop_reason, usage, .. } = self;
        Ok(Answer { id, model, blocks, stop_reason, usage })
    }

    /// A failure of the answer itself.
    pub(in crate::agent) fn broken(&self, why: String) -> Failure {
        Failure { reached: self.reached(), ..Failure::new(FailureKind::Server, why) }
    }

    fn reached(&self) -> Reached {
        if self.blocks.is_empty() { Reached::Nothing } else { Reached::Block }
    }

    fn start(&mut self, message: &Value) {
        message["id"].as_str().unwrap_or("msg_unnamed").clone_into(&mut self.id);
        message["model"].as_str().unwrap_or_default().clone_into(&mut self.model);
        self.usage = self.usage.at_least(usage(&message["usage"]));
    }

    fn close(&mut self, open: Open) {
        let Open { mut block, json } = open;
        let block = match block["type"].as_str() {
            // The API refuses to be shown empty texts.
            Some("text") => match block["text"].take() {
                Value::String(text) if !text.is_empty() => Block::Text(text),
                _ => return,
            },
            Some("tool_use") => {
                let id = block["id"].as_str().unwrap_or_default();
                let id = match id {
                    "" => format!("toolu_{}_{}", self.id, self.blocks.len()),
                    id => id.to_owned(),
                };
                let tool = block["name"].as_str().unwrap_or_default().to_owned();
                // Without pieces the input stands in the block itself.
                let input = match json.trim() {
                    "" => Some(block["input"].take()),
                    json => serde_json::from_str(json).ok(),
                };
                Block::Call { id, tool, input: input.filter(Value::is_object) }
            }
            _ => Block::Other(block),
        };
        self.blocks.push(block);
    }
}

impl Open {
    fn extend(&mut self, delta: &Value) {
        let (key, piece) = match delta["type"].as_str() {
            Some("input_json_delta") => {
                self.json.push_str(delta["partial_json"].as_str().unwrap_or_default());
                return;
            }
            Some("text_delta") => ("text", &delta["text"]),
            Some("thinking_delta") => ("thinking", &delta["thinking"]),
            Some("signature_delta") => ("signature", &delta["signature"]),
            _ => return,
        };
        let Some(piece) = piece.as_str() else { return };
        match self.block.get_mut(key) {
            Some(Value::String(text)) => text.push_str(piece),
            _ => {
                if let Some(block) = self.block.as_object_mut() {
                    block.insert(key.to_owned(), json!(piece));
                }
            }
        }
    }
}

fn index(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or(0)
}

fn usage(usage: &Value) -> Usage {
    let figure = |name: &str| usage[name].as_u64().unwrap_or(0);
    Usage {
        input: figure("input_tokens"),
        output: figure("output_tokens"),
        cache_read: figure("cache_read_input_tokens"),
        cache_write: figure("cache_creation_input_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fed(events: &[Value]) -> Result<Answer, Failure> {
        let mut partial = Partial::default();
        for event in events {
            partial.feed(event.to_string().as_bytes())?;
        }
        partial.finish()
    }

    fn started() -> Value {
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "m",
            "usage": {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 3}}})
    }

    fn begin(index: u64, block: &Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn more(index: u64, delta: &Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn end(index: u64) -> Value {
        json!({"type": "content_block_stop", "index": index})
    }

    fn stop(reason: &str) -> [Value; 2] {
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 20}});
        [delta, json!({"type": "message_stop"})]
    }

    #[test]
    fn blocks_are_put_together_from_their_pieces() {
        let mut events = vec![
            started(),
            json!({"type": "ping"}),
            begin(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
            more(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
            more(0, &json!({"type": "signature_delta", "signature": "sig"})),
            end(0),
            begin(1, &json!({"type": "text", "text": ""})),
            more(1, &json!({"type": "text_delta", "text": "Hello "})),
            more(1, &json!({"type": "text_delta", "text": "there"})),
            end(1),
            begin(2, &json!({"type": "text", "text": ""})),
            end(2),
            begin(3, &json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}})),
            more(3, &json!({"type": "input_json_delta", "partial_json": "{\"command\":"})),
            more(3, &json!({"type": "input_json_delta", "partial_json": "\"ls\"}"})),
            end(3),
        ];
        events.extend(stop("tool_use"));
        let answer = fed(&events).unwrap();
        assert_eq!(
            answer.blocks,
            [
                Block::Other(json!({"type": "thinking", "thinking": "hm", "signature": "sig"})),
                Block::Text("Hello there".to_owned()),
                Block::Call {
                    id: "t1".to_owned(),
                    tool: "Bash".to_owned(),
                    input: Some(json!({"command": "ls"})),
                },
            ]
        );
        assert_eq!(answer.stop_reason.as_deref(), Some("tool_use"));
        assert_eq!(answer.usage, Usage { input: 7, output: 20, cache_read: 3, cache_write: 0 });
    }

    #[test]
    fn inputs_of_calls_are_objects_or_missing() {
        for (pieces, expected) in [
            ("", Some(json!({}))),
            (" ", Some(json!({}))),
            (r#"{"a":1}"#, Some(json!({"a": 1}))),
            (r#"{"a":1"#, None),
            ("[1]", None),
            ("null", None),
        ] {
            let mut events = vec![
                started(),
                begin(0, &json!({"type": "tool_use", "id": "", "name": "X", "input": {}})),
                more(0, &json!({"type": "input_json_delta", "partial_json": pieces})),
            ];
            events.extend(stop("tool_use"));
            let [Block::Call { id, input, .. }] = &fed(&events).unwrap().blocks[..] else {
                panic!("no call")
            };
            assert_eq!((id.as_str(), input), ("toolu_msg_1_0", &expected), "{pieces}");
        }
    }

    #[test]
    fn an_answer_without_its_last_event_is_none() {
        let text = [
            started(),
            begin(0, &json!({"type": "text", "text": ""})),
            more(0, &json!({"type": "text_delta", "text": "x"})),
            end(0),
        ];
        let [delta, _] = stop("end_turn");
        let with_reason = [&text[..], &[delta]].concat();
        for (events, reached) in [
            (&text[..0], Reached::Nothing),
            (&text[..3], Reached::Nothing),
            (&text[..], Reached::Block),
            (&with_reason, Reached::Block),
        ] {
            let failure = fed(events).unwrap_err();
            assert_eq!((failure.kind, failure.reached), (FailureKind::Server, reached));
        }
    }

    #[test]
    fn what_makes_no_sense_is_an_error_and_no_panic() {
        let overloaded =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        let failure = fed(&[started(), overloaded]).unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Overloaded, "busy"));
        let mut partial = Partial::default();
        for event in [
            &b"{"[..],
            b"\xff",
            br#"{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}"#,
        ] {
            assert!(partial.feed(event).is_err());
        }
        for event in [
            &b"1"[..],
            b"[DONE]",
            br#"{"type":"content_block_stop","index":9}"#,
            br#"{"type":"content_block_start","index":0,"content_block":5}"#,
            br#"{"type":"content_block_stop","index":0}"#,
            br#"{"type":"message_delta"}"#,
            br#"{"type":"something_new"}"#,
        ] {
            assert!(partial.feed(event).is_ok(), "{}", String::from_utf8_lossy(event));
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            any::<u8>().prop_map(|n| json!(n)),
            Just(json!("text")),
            Just(json!("tool_use")),
            Just(json!("text_delta")),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let key = prop_oneof![Just("type"), Just("text"), Just("input"), Just("content")];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec((key, inner), 0..3).prop_map(|entries| {
                    Value::Object(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
                }),
            ]
        })
    }

    proptest! {
        /// Whatever a server sends, there is an answer or a failure.
        #[test]
        fn no_stream_makes_it_fall_over(
            events in proptest::collection::vec((0..7_usize, any_json(), 0..3_u64), 0..12),
            whole in any_json(),
        ) {
            let kinds = ["message_start", "content_block_start", "content_block_delta",
                "content_block_stop", "message_delta", "message_stop", "error"];
            let mut partial = Partial::default();
            for (kind, value, index) in events {
                let event = json!({"type": kinds[kind], "index": index, "message": value,
                    "content_block": value, "delta": value, "usage": value, "error": value});
                let _ = partial.feed(event.to_string().as_bytes());
                let _ = partial.feed(value.to_string().as_bytes());
            }
            let _ = partial.finish().map(|answer| answer.blocks.iter().map(Block::to_value).count());
            let _ = Partial::default().feed_whole(whole.to_string().as_bytes());
        }
    }

    #[test]
    fn a_server_that_does_not_stream_is_understood() {
        let mut partial = Partial::default();
        let body = json!({"id": "m1", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "X", "input": {"a": 1}}],
            "usage": {"input_tokens": 1, "output_tokens": 2}});
        partial.feed_whole(body.to_string().as_bytes()).unwrap();
        let answer = partial.finish().unwrap();
        assert_eq!(answer.blocks.len(), 2);
        assert_eq!(answer.usage.output, 2);
        assert!(Partial::default().feed_whole(b"{}").is_err());
    }
}
