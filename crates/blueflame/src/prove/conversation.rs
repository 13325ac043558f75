//! The tool calls of a conversation and what the model was told of them, read from
//! the requests that were recorded: in whichever dialect, in the policy's words.

use std::collections::BTreeMap;

use serde_json::Value;

/// A tool call that the model made, and what it was told of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub tool: String,
    pub input: String,
    pub result: Option<String>,
}

/// What one entry of a request tells.
enum Told {
    Called { id: String, tool: String, input: String },
    CameBack { id: String, result: String },
}

/// All tool calls of a conversation, in order. Requests repeat what was said
/// before.
pub fn calls(exchanges: &[Value]) -> Vec<Call> {
    let mut order: Vec<String> = Vec::new();
    let mut made: BTreeMap<String, Call> = BTreeMap::new();
    for told in exchanges.iter().flat_map(|it| request(&it["request"])) {
        match told {
            Told::Called { id, tool, input } => {
                made.entry(id.clone()).or_insert_with(|| {
                    order.push(id);
                    Call { tool, input, result: None }
                });
            }
            Told::CameBack { id, result } => {
                if let Some(call) = made.get_mut(&id) {
                    call.result = Some(result);
                }
            }
        }
    }
    order.iter().filter_map(|id| made.remove(id)).collect()
}

fn request(request: &Value) -> Vec<Told> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut told: Vec<Told> = list(&request["input"]).iter().filter_map(of_responses).collect();
    for message in list(&request["messages"]) {
        told.extend(list(&message["content"]).iter().filter_map(of_messages));
        told.extend(list(&message["tool_calls"]).iter().map(called_in_chat));
        if message["role"] == "tool" {
            let id = text(&message, "tool_call_id");
            told.push(Told::CameBack { id, result: strings(&message["content"]) });
        }
    }
    told
}

fn of_messages(block: &Value) -> Option<Told> {
    match block["type"].as_str()? {
        "tool_use" => Some(Told::Called {
            id: text(block, "id"),
            tool: text(block, "name"),
            input: strings(&block["input"]),
        }),
        "tool_result" => Some(Told::CameBack {
            id: text(block, "tool_use_id"),
            result: strings(&block["content"]),
        }),
        _ => None,
    }
}

fn of_responses(item: &Value) -> Option<Told> {
    let id = text(item, "call_id");
    match item["type"].as_str()? {
        "function_call" => Some(Told::Called {
            id,
            tool: in_our_words(&text(item, "name")),
            input: arguments(&item["arguments"]),
        }),
        "custom_tool_call" => Some(Told::Called {
            id,
            tool: in_our_words(&text(item, "name")),
            input: strings(&item["input"]),
        }),
        "function_call_output" | "custom_tool_call_output" => {
            Some(Told::CameBack { id, result: strings(&item["output"]) })
        }
        _ => None,
    }
}

fn called_in_chat(call: &Value) -> Told {
    let function = &call["function"];
    Told::Called {
        id: text(call, "id"),
        tool: in_our_words(&text(function, "name")),
        input: arguments(&function["arguments"]),
    }
}

/// The name that the policy has for a tool of codex's or opencode's.
fn in_our_words(tool: &str) -> String {
    match tool {
        "exec_command" | "bash" => "Bash",
        "apply_patch" | "write" => "Write",
        "read" => "Read",
        other => other,
    }
    .to_owned()
}

/// Input that is JSON in a text.
fn arguments(written: &Value) -> String {
    let inner = written.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    inner.as_ref().map_or_else(|| strings(written), strings)
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// All texts in a value, a line each: as they are, and not as JSON writes them.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(values) => values.iter().map(strings).collect(),
        Value::Object(values) => values.values().map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_read_in_every_dialect() {
        let messages = json!({"messages": [
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "a \"b\""}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"text": "done"}]}]},
        ]});
        let responses = json!({"input": [
            {"type": "function_call", "call_id": "1", "name": "exec_command",
                "arguments": "{\"cmd\": \"a \\\"b\\\"\"}"},
            {"type": "function_call_output", "call_id": "1", "output": "done"},
        ]});
        let chat = json!({"messages": [
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function":
                {"name": "bash", "arguments": "{\"command\": \"a \\\"b\\\"\"}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "done"},
        ]});
        for request in [messages, responses, chat] {
            let call = Call {
                tool: "Bash".to_owned(),
                input: "a \"b\"\n".to_owned(),
                result: Some("done\n".to_owned()),
            };
            // What is said again is the same call.
            let exchange = json!({"request": request});
            assert_eq!(calls(&[exchange.clone(), exchange]), [call], "{request}");
        }
        let patch = json!({"request": {"input": [
            {"type": "custom_tool_call", "call_id": "2", "name": "apply_patch", "input": "p"}]}});
        let call = Call { tool: "Write".to_owned(), input: "p\n".to_owned(), result: None };
        assert_eq!(calls(&[patch]), [call]);
    }
}
