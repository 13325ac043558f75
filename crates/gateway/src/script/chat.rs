//! OpenAI chat completions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Speech, Words, pieces};

/// A fixed time: the same request has the same answer.
const CREATED: u64 = 1_767_225_600;

/// The answer as a stream of chunks. Figures come only if they were asked for,
/// as with the real service.
pub(super) fn stream(speech: &Speech<'_>) -> Vec<Bytes> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let mut calls = 0;
    for words in &speech.words {
        match words {
            Words::Text(text) => {
                deltas.extend(pieces(text).into_iter().map(|piece| json!({"content": piece})));
            }
            Words::Call { id, tool, input } => {
                deltas.push(json!({"tool_calls": [{
                    "index": calls, "id": format!("call_{id}"), "type": "function",
                    "function": {"name": tool, "arguments": ""},
                }]}));
                deltas.extend(pieces(&arguments(input)).into_iter().map(|piece| {
                    json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
                }));
                calls += 1;
            }
        }
    }
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{}", speech.name),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": speech.model,
            "choices": choices,
        })
    };
    let mut chunks: Vec<Value> = deltas
        .into_iter()
        .map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])))
        .collect();
    let finish = finish_reason(speech);
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}])));
    if speech.wants_usage {
        let mut last = chunk(json!([]));
        last["usage"] = usage(speech);
        chunks.push(last);
    }
    let framed = chunks.iter().map(|chunk| Bytes::from(format!("data: {chunk}\n\n")));
    framed.chain([Bytes::from_static(b"data: [DONE]\n\n")]).collect()
}

/// The answer in one piece.
pub(super) fn whole(speech: &Speech<'_>) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for words in &speech.words {
        match words {
            Words::Text(said) => text.push_str(said),
            Words::Call { id, tool, input } => calls.push(json!({
                "id": format!("call_{id}"), "type": "function",
                "function": {"name": tool, "arguments": arguments(input)},
            })),
        }
    }
    let content = if text.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({
        "id": format!("chatcmpl-{}", speech.name),
        "object": "chat.completion",
        "created": CREATED,
        "model": speech.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(speech)}],
        "usage": usage(speech),
    })
}

/// Cached input is part of the input here.
fn usage(speech: &Speech<'_>) -> Value {
    let usage = &speech.usage;
    let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt.saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

fn finish_reason(speech: &Speech<'_>) -> &'static str {
    if speech.calls() { "tool_calls" } else { "stop" }
}

pub(super) fn arguments(input: &Value) -> String {
    match input {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
