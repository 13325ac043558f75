//! The calls in an answer, heard as it passes.
//!
//! A program may ask about a call as soon as it has read enough of it, so what is
//! heard is on the books before it is passed on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{Calls, Heard, Kind};
use crate::dialect::Dialect;
use crate::sse::Events;

/// Hears the calls in one answer.
#[derive(Debug)]
pub(crate) struct Hearing {
    events: Events,
    answer: Answer,
}

#[derive(Debug)]
struct Answer {
    calls: Arc<Calls>,
    dialect: Dialect,
    heard_calls: bool,
    /// The names of calls that come in pieces, by the places that the pieces
    /// name; none for a call that is not kept account of.
    growing: BTreeMap<(u64, u64), Option<String>>,
}

impl Hearing {
    pub(crate) fn new(calls: Arc<Calls>, dialect: Dialect) -> Self {
        let answer = Answer { calls, dialect, heard_calls: false, growing: BTreeMap::new() };
        Hearing { events: Events::default(), answer }
    }

    pub(crate) fn take(&mut self, chunk: &[u8]) {
        let Hearing { events, answer } = self;
        events.feed(chunk, |data| match answer.dialect {
            // Other events are of no interest, whatever they look like.
            Dialect::Responses => {
                if let Ok(event) = serde_json::from_slice(data) {
                    answer.item(event);
                }
            }
            Dialect::Chat => {
                if let Ok(chunk) = serde_json::from_slice(data) {
                    answer.chunk(chunk);
                }
            }
            Dialect::Messages => {}
        });
    }
}

impl Answer {
    fn item(&mut self, event: Event) {
        match (event.kind.as_deref(), event.item.and_then(Item::call)) {
            (Some("response.output_item.done"), Some((id, heard))) => {
                self.calls.ask(&id, heard);
                self.heard_calls = true;
            }
            (Some("response.completed"), _) => self.end_turn(),
            _ => {}
        }
    }

    fn chunk(&mut self, chunk: Chunk) {
        for choice in chunk.choices {
            for piece in choice.delta.and_then(|delta| delta.tool_calls).unwrap_or_default() {
                self.piece(choice.index, piece);
            }
            if choice.finish_reason.is_some() {
                self.end_turn();
            }
        }
    }

    fn piece(&mut self, choice: u64, piece: Piece) {
        // Without a place it is the next call.
        let next = self.growing.len() as u64;
        let place = (choice, piece.index.unwrap_or(next));
        let function = piece.function.unwrap_or_default();
        let text = function.arguments.unwrap_or_default();
        if let Some(known) = self.growing.get(&place) {
            if let Some(id) = known {
                self.calls.go_on(id, &text);
            }
            return;
        }
        let (Some(id), Some(tool)) = (piece.id, function.name) else { return };
        self.heard_calls = true;
        let kept = self.calls.ask(&id, Heard { tool, text, kind: Kind::Arguments });
        self.growing.insert(place, kept.then_some(id));
    }

    fn end_turn(&mut self) {
        if std::mem::take(&mut self.heard_calls) {
            self.calls.turn();
        }
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    item: Option<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
}

impl Item {
    fn call(self) -> Option<(String, Heard)> {
        let (text, kind) = match self.kind.as_deref()? {
            "function_call" => (self.arguments, Kind::Arguments),
            "custom_tool_call" => (self.input, Kind::Plain),
            _ => return None,
        };
        Some((self.call_id?, Heard { tool: self.name?, text: text.unwrap_or_default(), kind }))
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    tool_calls: Option<Vec<Piece>>,
}

#[derive(Deserialize)]
struct Piece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Default, Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}
