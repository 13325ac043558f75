//! Anthropic Messages, as the real service writes it.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Speech, Words, pieces};

/// The answer as a stream of events.
pub(super) fn stream(speech: &Speech<'_>) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut message = message(speech);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    // The real service begins with 1, too, and says the truth at the end.
    message["usage"]["output_tokens"] = json!(speech.usage.output.min(1));
    events.push(json!({"type": "message_start", "message": message}));
    events.push(json!({"type": "ping"}));
    for (index, words) in speech.words.iter().enumerate() {
        let (mut block, deltas) = (block(words), deltas(words));
        match words {
            Words::Text(_) => block["text"] = json!(""),
            Words::Call { .. } => block["input"] = json!({}),
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(speech), "stop_sequence": null},
        "usage": {"output_tokens": speech.usage.output},
    }));
    events.push(json!({"type": "message_stop"}));
    let framed = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
    };
    events.iter().map(framed).collect()
}

/// The answer in one piece.
pub(super) fn whole(speech: &Speech<'_>) -> Value {
    message(speech)
}

fn message(speech: &Speech<'_>) -> Value {
    let blocks: Vec<Value> = speech.words.iter().map(block).collect();
    json!({
        "id": format!("msg_{}", speech.name),
        "type": "message",
        "role": "assistant",
        "model": speech.model,
        "content": blocks,
        "stop_reason": stop_reason(speech),
        "stop_sequence": null,
        "usage": {
            "input_tokens": speech.usage.input,
            "cache_creation_input_tokens": speech.usage.cache_write,
            "cache_read_input_tokens": speech.usage.cache_read,
            "output_tokens": speech.usage.output,
        },
    })
}

fn stop_reason(speech: &Speech<'_>) -> &'static str {
    if speech.calls() { "tool_use" } else { "end_turn" }
}

fn block(words: &Words) -> Value {
    match words {
        Words::Text(text) => json!({"type": "text", "text": text}),
        Words::Call { id, tool, input } => {
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": tool, "input": input})
        }
    }
}

fn deltas(words: &Words) -> Vec<Value> {
    match words {
        Words::Text(text) => pieces(text)
            .into_iter()
            .map(|piece| json!({"type": "text_delta", "text": piece}))
            .collect(),
        Words::Call { input, .. } => pieces(&input.to_string())
            .into_iter()
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect(),
    }
}
