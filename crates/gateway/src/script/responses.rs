//! OpenAI Responses, as codex needs it: every item is added, filled and done,
//! and the whole response comes again at the end.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Speech, Words, pieces};
use super::chat::arguments;

/// A fixed time: the same request has the same answer.
const CREATED: u64 = 1_767_225_600;

/// The answer as a stream of events.
pub(super) fn stream(speech: &Speech<'_>) -> Vec<Bytes> {
    let mut events = Vec::new();
    let started = response(speech, "in_progress", &[]);
    events.push(json!({"type": "response.created", "response": started}));
    events.push(json!({"type": "response.in_progress", "response": started}));
    let mut items = Vec::new();
    for (index, words) in speech.words.iter().enumerate() {
        let done = item(speech, index, words);
        fill(&mut events, index, &done, words);
        items.push(done);
    }
    let completed = response(speech, "completed", &items);
    events.push(json!({"type": "response.completed", "response": completed}));
    events
        .into_iter()
        .enumerate()
        .map(|(number, mut event)| {
            event["sequence_number"] = json!(number);
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
        })
        .collect()
}

/// The answer in one piece.
pub(super) fn whole(speech: &Speech<'_>) -> Value {
    let items: Vec<Value> =
        speech.words.iter().enumerate().map(|(at, words)| item(speech, at, words)).collect();
    response(speech, "completed", &items)
}

/// The events by which one item comes into being.
fn fill(events: &mut Vec<Value>, index: usize, done: &Value, words: &Words) {
    let mut empty = done.clone();
    empty["status"] = json!("in_progress");
    let id = &done["id"];
    let at = |kind: &str| json!({"type": kind, "item_id": id, "output_index": index});
    match words {
        Words::Text(text) => {
            empty["content"] = json!([]);
            events.push(
                json!({"type": "response.output_item.added", "output_index": index, "item": empty}),
            );
            let mut part = at("response.content_part.added");
            part["content_index"] = json!(0);
            part["part"] = json!({"type": "output_text", "text": "", "annotations": []});
            events.push(part);
            for piece in pieces(text) {
                let mut delta = at("response.output_text.delta");
                delta["content_index"] = json!(0);
                delta["delta"] = json!(piece);
                events.push(delta);
            }
            let mut end = at("response.output_text.done");
            end["content_index"] = json!(0);
            end["text"] = json!(text);
            events.push(end);
            let mut part = at("response.content_part.done");
            part["content_index"] = json!(0);
            part["part"] = done["content"][0].clone();
            events.push(part);
        }
        Words::Call { input, .. } => {
            let custom = done["type"] == "custom_tool_call";
            let (field, stem) = if custom {
                ("input", "response.custom_tool_call_input")
            } else {
                ("arguments", "response.function_call_arguments")
            };
            empty[field] = json!("");
            events.push(
                json!({"type": "response.output_item.added", "output_index": index, "item": empty}),
            );
            let text = arguments(input);
            for piece in pieces(&text) {
                let mut delta = at(&format!("{stem}.delta"));
                delta["delta"] = json!(piece);
                events.push(delta);
            }
            let mut end = at(&format!("{stem}.done"));
            end[field] = json!(text);
            events.push(end);
        }
    }
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": done}));
}

fn item(speech: &Speech<'_>, index: usize, words: &Words) -> Value {
    match words {
        Words::Text(text) => json!({
            "type": "message",
            "id": format!("msg_{}{index}", speech.name),
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        // Tools that take plain text are another kind of call.
        Words::Call { id, tool, input: Value::String(text) } => json!({
            "type": "custom_tool_call",
            "id": format!("ctc_{id}"),
            "status": "completed",
            "call_id": format!("call_{id}"),
            "name": tool,
            "input": text,
        }),
        Words::Call { id, tool, input } => json!({
            "type": "function_call",
            "id": format!("fc_{id}"),
            "status": "completed",
            "call_id": format!("call_{id}"),
            "name": tool,
            "arguments": arguments(input),
        }),
    }
}

fn response(speech: &Speech<'_>, status: &str, items: &[Value]) -> Value {
    let usage = &speech.usage;
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    let figures = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input.saturating_add(usage.output),
    });
    json!({
        "id": format!("resp_{}", speech.name),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": speech.model,
        "output": items,
        "parallel_tool_calls": true,
        "usage": if status == "completed" { figures } else { Value::Null },
    })
}
