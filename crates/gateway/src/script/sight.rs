//! What a request shows: who asks, about which task, for which turn.
//!
//! Role, task and attempt are told by a line in the prompt that starts with
//! [`MARKER`]. The turn is counted from the conversation: how many times the
//! model has answered in it. Tool results are never searched for the line, so
//! what an agent reads cannot pass for what it was told.

use std::fmt;

use serde_json::Value;

use crate::dialect::Dialect;

/// How the line starts: `blueflame: role=worker task=task-001 attempt=2`.
pub const MARKER: &str = "blueflame: ";

/// What is seen in one request.
#[derive(Clone, Debug)]
pub struct Sight {
    pub dialect: Dialect,
    pub model: String,
    pub role: Option<String>,
    pub task: Option<String>,
    pub attempt: Option<u32>,
    pub turn: u32,
    /// The text of the last user message, or of the last tool results.
    pub last: String,
    pub streamed: bool,
    /// The chat dialect sends figures only when asked to.
    pub wants_usage: bool,
    pub tools: Vec<String>,
    pub bytes: usize,
    /// The conversation, without what differs from run to run.
    pub conversation: blake3::Hash,
}

/// Someone's part of the conversation.
enum Part<'v> {
    Prompt(&'v Value),
    Results(&'v Value),
    Answer,
}

impl Sight {
    pub fn of(dialect: Dialect, body: &[u8]) -> Result<Sight, serde_json::Error> {
        let request: Value = serde_json::from_slice(body)?;
        let parts = parts(dialect, &request);
        let mut sight = Sight {
            dialect,
            model: request["model"].as_str().unwrap_or_default().to_owned(),
            role: None,
            task: None,
            attempt: None,
            turn: turns(&parts),
            last: String::new(),
            streamed: request["stream"].as_bool().unwrap_or(false),
            wants_usage: request["stream_options"]["include_usage"].as_bool().unwrap_or(false),
            tools: tools(&request),
            bytes: body.len(),
            conversation: conversation(dialect, &request),
        };
        let preamble = match dialect {
            Dialect::Messages => &request["system"],
            Dialect::Responses => &request["instructions"],
            Dialect::Chat => &Value::Null,
        };
        let prompts = parts.iter().filter_map(|part| match part {
            Part::Prompt(value) => Some(prompt_text(value)),
            Part::Results(_) | Part::Answer => None,
        });
        if let Some(marker) =
            std::iter::once(prompt_text(preamble)).chain(prompts).find_map(|text| {
                text.lines().find_map(|line| line.trim().strip_prefix(MARKER).map(str::to_owned))
            })
        {
            sight.take_marker(&marker);
        }
        let mut tail: Vec<String> = parts
            .iter()
            .rev()
            .map_while(|part| match part {
                Part::Prompt(value) | Part::Results(value) => Some(all_text(value)),
                Part::Answer => None,
            })
            .collect();
        tail.reverse();
        sight.last = tail.join("\n");
        Ok(sight)
    }

    fn take_marker(&mut self, marker: &str) {
        for (key, value) in marker.split_whitespace().filter_map(|word| word.split_once('=')) {
            match key {
                "role" => self.role = Some(value.to_owned()),
                "task" => self.task = Some(value.to_owned()),
                "attempt" => self.attempt = value.parse().ok(),
                _ => {}
            }
        }
    }

    /// The start of the names in the answer: the same request, and it alone,
    /// has the same.
    pub(super) fn name(&self, reply: usize) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.conversation.as_bytes());
        for part in [&self.role, &self.task] {
            hasher.update(part.as_deref().unwrap_or_default().as_bytes()).update(&[0]);
        }
        hasher.update(&self.attempt.unwrap_or(0).to_le_bytes()).update(&reply.to_le_bytes());
        hasher.finalize().to_hex()[..20].to_owned()
    }
}

impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or("none".to_owned());
        let attempt = self.attempt.map(|attempt| attempt.to_string());
        write!(
            f,
            "role={} task={} attempt={} turn={} model={} dialect={} tools=[{}], and last: {:?}",
            shown(&self.role),
            shown(&self.task),
            shown(&attempt),
            self.turn,
            self.model,
            self.dialect,
            shortened(&self.tools.join(" "), 300),
            end_of(&self.last, 300),
        )
    }
}

/// The start of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of a text. Some agents put remarks of their own before the prompt.
fn end_of(text: &str, most: usize) -> String {
    match text.char_indices().rev().nth(most) {
        Some((start, first)) => format!("…{}", &text[start + first.len_utf8()..]),
        None => text.to_owned(),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn parts(dialect: Dialect, request: &Value) -> Vec<Part<'_>> {
    match dialect {
        Dialect::Messages => items(&request["messages"])
            .iter()
            .map(|message| match message["role"].as_str() {
                Some("assistant") => Part::Answer,
                _ => Part::Prompt(&message["content"]),
            })
            .collect(),
        Dialect::Chat => items(&request["messages"])
            .iter()
            .map(|message| match message["role"].as_str() {
                Some("assistant") => Part::Answer,
                Some("tool" | "function") => Part::Results(&message["content"]),
                _ => Part::Prompt(&message["content"]),
            })
            .collect(),
        Dialect::Responses => match &request["input"] {
            text @ Value::String(_) => vec![Part::Prompt(text)],
            input => items(input)
                .iter()
                .map(|item| match item["type"].as_str() {
                    None | Some("message") => match item["role"].as_str() {
                        Some("assistant") => Part::Answer,
                        _ => Part::Prompt(&item["content"]),
                    },
                    Some(kind) if kind.ends_with("_output") => Part::Results(&item["output"]),
                    // Calls, reasoning, searches: all of them the model's.
                    Some(_) => Part::Answer,
                })
                .collect(),
        },
    }
}

/// Answers that follow each other without anyone between are one turn: the
/// Responses dialect has an item for each part of an answer.
fn turns(parts: &[Part<'_>]) -> u32 {
    let mut turns = 0;
    let mut answering = false;
    for part in parts {
        let answer = matches!(part, Part::Answer);
        turns += u32::from(answer && !answering);
        answering = answer;
    }
    turns
}

/// Names of the tools that the request offers.
fn tools(request: &Value) -> Vec<String> {
    let name = |tool: &Value| {
        let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
        name.map(str::to_owned)
    };
    items(&request["tools"]).iter().filter_map(name).collect()
}

/// The text of a prompt, without the tool results that a user message of the
/// Messages dialect can hold.
fn prompt_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The text of a prompt or of tool results.
fn all_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks
                .iter()
                .map(|block| match block["text"].as_str() {
                    Some(text) => text.to_owned(),
                    None => all_text(&block["content"]),
                })
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// A fingerprint of the conversation. Cache marks and whatever stands beside
/// the conversation (user ids, tool lists, system prompts with today's date)
/// are left out, because they differ between runs that say the same.
pub(crate) fn conversation(dialect: Dialect, request: &Value) -> blake3::Hash {
    let said = match dialect {
        Dialect::Messages | Dialect::Chat => &request["messages"],
        Dialect::Responses => &request["input"],
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(dialect.path().as_bytes());
    digest(said, &mut hasher);
    hasher.finalize()
}

fn digest(value: &Value, hasher: &mut blake3::Hasher) {
    match value {
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                digest(item, hasher);
            }
            hasher.update(b"]");
        }
        Value::Object(entries) => {
            hasher.update(b"{");
            let mut entries: Vec<_> =
                entries.iter().filter(|(key, _)| *key != "cache_control").collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                hasher.update(&key.len().to_le_bytes()).update(key.as_bytes());
                digest(value, hasher);
            }
            hasher.update(b"}");
        }
        scalar => {
            let text = scalar.to_string();
            hasher.update(&text.len().to_le_bytes()).update(text.as_bytes());
        }
    }
}
