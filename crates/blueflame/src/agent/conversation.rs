//! The conversation with the model, and the requests made from it.
//!
//! It is kept in a state in which it can be sent: every tool call has its
//! result, and nobody speaks twice in a row.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::model::Block;

#[derive(Debug)]
pub(super) struct Conversation {
    model: String,
    max_tokens: u32,
    system: Vec<Value>,
    tools: Vec<Value>,
    messages: Vec<Value>,
}

#[derive(Serialize)]
struct Request<'c> {
    model: &'c str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    system: &'c [Value],
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    tools: &'c [Value],
    messages: &'c [Value],
}

impl Conversation {
    pub(super) fn new(model: &str, max_tokens: u32, system: &str, tools: Vec<Value>) -> Self {
        let mut conversation = Conversation {
            model: model.to_owned(),
            max_tokens,
            system: Vec::new(),
            tools,
            messages: Vec::new(),
        };
        if !system.trim().is_empty() {
            conversation.system.push(json!({"type": "text", "text": system}));
        }
        // Tools and system prompt never change: the provider reads them once.
        let fixed = conversation.system.last_mut().or(conversation.tools.last_mut());
        if let Some(last) = fixed {
            mark(last);
        }
        conversation
    }

    /// Adds to what is said to the model.
    pub(super) fn say(&mut self, blocks: impl IntoIterator<Item = Value>) {
        match self.messages.last_mut() {
            Some(last) if last["role"] == "user" => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(blocks);
                }
            }
            _ => {
                let blocks: Vec<Value> = blocks.into_iter().collect();
                self.messages.push(json!({"role": "user", "content": blocks}));
            }
        }
    }

    /// Takes down what the model said.
    pub(super) fn heard(&mut self, blocks: &[Block]) {
        let content: Vec<Value> = blocks.iter().map(Block::to_value).collect();
        if !content.is_empty() {
            self.messages.push(json!({"role": "assistant", "content": content}));
        }
    }

    /// The tool calls that have no result yet.
    pub(super) fn open_calls(&self) -> Vec<String> {
        let is_answer = |message: &Value| message["role"] == "assistant";
        let Some(at) = self.messages.iter().rposition(is_answer) else { return Vec::new() };
        let ids = |message: &Value, key: &str| -> Vec<String> {
            let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            blocks.iter().filter_map(|block| block[key].as_str()).map(str::to_owned).collect()
        };
        let done: Vec<String> = self.messages[at + 1..]
            .iter()
            .flat_map(|message| ids(message, "tool_use_id"))
            .collect();
        let blocks = self.messages[at]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        let calls = calls.filter_map(|block| block["id"].as_str()).map(str::to_owned);
        calls.filter(|id| !done.contains(id)).collect()
    }

    /// The next request. The ends of the last two things said are marked, so
    /// that the provider reads only what is new since the last request.
    pub(super) fn request(&mut self) -> Result<Bytes, serde_json::Error> {
        self.mark_ends(mark);
        let body = serde_json::to_vec(&Request {
            model: &self.model,
            max_tokens: self.max_tokens,
            stream: true,
            system: &self.system,
            tools: &self.tools,
            messages: &self.messages,
        });
        self.mark_ends(unmark);
        body.map(Bytes::from)
    }

    fn mark_ends(&mut self, change: fn(&mut Value)) {
        let said = self.messages.iter_mut().filter(|message| message["role"] == "user");
        for message in said.rev().take(2) {
            if let Some(last) =
                message["content"].as_array_mut().and_then(|blocks| blocks.last_mut())
            {
                change(last);
            }
        }
    }
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

fn unmark(block: &mut Value) {
    if let Some(block) = block.as_object_mut() {
        block.shift_remove("cache_control");
    }
}

/// The content blocks of a prompt, or why it is none.
pub(super) fn prompt(content: Value) -> Result<Vec<Value>, String> {
    match content {
        Value::String(text) if !text.trim().is_empty() => {
            Ok(vec![json!({"type": "text", "text": text})])
        }
        Value::Array(blocks) if !blocks.is_empty() && blocks.iter().all(Value::is_object) => {
            Ok(blocks)
        }
        _ => Err("the prompt is neither text nor a list of content blocks".to_owned()),
    }
}

/// A text said to the model.
pub(super) fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

/// The result of a tool call.
pub(super) fn tool_result(id: &str, told: &Result<String, String>) -> Value {
    let (content, is_error) = match told {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Block {
        Block::Call { id: id.to_owned(), tool: "Bash".to_owned(), input: Some(json!({})) }
    }

    fn body(conversation: &mut Conversation) -> Value {
        serde_json::from_slice(&conversation.request().unwrap()).unwrap()
    }

    #[test]
    fn calls_are_open_until_they_have_a_result() {
        let mut conversation = Conversation::new("m", 10, "", vec![]);
        assert!(conversation.open_calls().is_empty());
        conversation.say([text("go")]);
        conversation.heard(&[Block::Text("x".to_owned()), call("a"), call("b")]);
        assert_eq!(conversation.open_calls(), ["a", "b"]);
        conversation.say([tool_result("a", &Ok("fine".to_owned()))]);
        assert_eq!(conversation.open_calls(), ["b"]);
        conversation.say([tool_result("b", &Err("bad".to_owned()))]);
        assert!(conversation.open_calls().is_empty());
        let body = body(&mut conversation);
        let roles: Vec<&str> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(body["messages"][2]["content"][1]["is_error"], true);
    }

    #[test]
    fn marks_stand_at_fixed_parts_and_at_the_last_two_ends_only() {
        let tool = json!({"name": "T"});
        let mut conversation = Conversation::new("m", 10, "be good", vec![tool.clone()]);
        for turn in 0..3 {
            conversation.say([text(format!("prompt {turn}"))]);
            let body = body(&mut conversation);
            let marks = body.to_string().matches("cache_control").count();
            assert_eq!(marks, 1 + (turn + 1).min(2), "{body}");
            conversation.heard(&[Block::Text("ok".to_owned())]);
        }
        let bare = body(&mut Conversation::new("m", 10, " ", vec![]));
        assert!(bare.get("system").is_none() && bare.get("tools").is_none(), "{bare}");
        let mut without = Conversation::new("m", 10, "", vec![tool]);
        assert!(body(&mut without)["tools"][0]["cache_control"].is_object());
    }

    #[test]
    fn an_answer_without_words_leaves_no_trace() {
        let mut conversation = Conversation::new("m", 10, "", vec![]);
        conversation.say([text("one")]);
        conversation.heard(&[]);
        conversation.say([text("two")]);
        assert_eq!(body(&mut conversation)["messages"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn prompts_are_texts_or_blocks() {
        assert_eq!(prompt(json!("hi")).unwrap(), [text("hi")]);
        assert_eq!(prompt(json!([{"type": "text", "text": "x"}])).unwrap().len(), 1);
        for bad in
            [json!(null), json!(""), json!(" \n"), json!([]), json!(["x"]), json!({}), json!(1)]
        {
            assert!(prompt(bad.clone()).is_err(), "{bad}");
        }
    }
}
