//! A reply put into the dialect of the request, as bytes and waits.

use std::time::Duration;

use blueflame_core::money::Usage;
use bytes::Bytes;
use serde_json::Value;

use super::{Block, Reply, Rule, Script, Sight, chat, messages, responses, translate};
use crate::dialect::Dialect;
use crate::refusal;

/// What is sent for one request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub streamed: bool,
    pub retry_after: Option<Duration>,
    /// The body, in the pieces in which it is sent.
    pub pieces: Vec<Bytes>,
    /// Wait before the first byte.
    pub delay: Duration,
    /// Wait before each further piece.
    pub pause: Duration,
    pub ending: Ending,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Complete,
    /// The connection breaks after this many events.
    CutAfter(u32),
    /// Nothing more comes after this many events; after 0, not even a status.
    HangAfter(u32),
}

/// What the model says, ready to be written in any dialect.
pub(super) struct Speech<'s> {
    /// Where names of messages and calls start.
    pub(super) name: String,
    pub(super) model: &'s str,
    pub(super) words: Vec<Words>,
    pub(super) usage: Usage,
    pub(super) wants_usage: bool,
}

pub(super) enum Words {
    Text(String),
    Call { id: String, tool: String, input: Value },
}

impl Speech<'_> {
    pub(super) fn calls(&self) -> bool {
        self.words.iter().any(|words| matches!(words, Words::Call { .. }))
    }
}

/// The tool by which structured output comes in the Messages dialect.
const STRUCTURED_OUTPUT: &str = "StructuredOutput";

impl Script {
    /// The answer to a request. That nothing fits is an answer too: a status
    /// that no agent tries again, and the reason.
    pub fn answer(&self, sight: &Sight) -> Answer {
        let (number, rule) = match self.choose(sight) {
            Ok(found) => found,
            Err(message) => {
                return Answer::error(refusal::body(sight.dialect, 400, None, &message), 400);
            }
        };
        let (delay, pause, ending) = (rule.delay, rule.pause, rule.ending);
        match &rule.reply {
            Reply::Fail { status, retry_after, kind, message } => {
                let body = refusal::body(sight.dialect, *status, kind.as_deref(), message);
                let retry_after = *retry_after;
                Answer { retry_after, delay, pause, ending, ..Answer::error(body, *status) }
            }
            Reply::Speak { blocks, usage } => {
                let speech = speech(sight, number, blocks, *usage);
                Answer {
                    status: 200,
                    streamed: sight.streamed,
                    retry_after: None,
                    pieces: speech.pieces(sight, rule),
                    delay,
                    pause,
                    ending,
                }
            }
        }
    }
}

impl Answer {
    fn error(body: Bytes, status: u16) -> Answer {
        Answer {
            status,
            streamed: false,
            retry_after: None,
            pieces: vec![body],
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            ending: Ending::Complete,
        }
    }
}

impl Speech<'_> {
    fn pieces(&self, sight: &Sight, rule: &Rule) -> Vec<Bytes> {
        if sight.streamed {
            return match sight.dialect {
                Dialect::Messages => messages::stream(self),
                Dialect::Responses => responses::stream(self),
                Dialect::Chat => chat::stream(self),
            };
        }
        let whole = match sight.dialect {
            Dialect::Messages => messages::whole(self),
            Dialect::Responses => responses::whole(self),
            Dialect::Chat => chat::whole(self),
        };
        let whole = Bytes::from(whole.to_string());
        if rule.ending == Ending::Complete {
            vec![whole]
        } else {
            // In two halves, so that there is a middle to break off in.
            let middle = whole.len() / 2;
            vec![whole.slice(..middle), whole.slice(middle..)]
        }
    }
}

fn speech<'s>(
    sight: &'s Sight,
    number: usize,
    blocks: &[Block],
    usage: Option<Usage>,
) -> Speech<'s> {
    let name = sight.name(number);
    let by_call = sight.dialect == Dialect::Messages
        || sight.tools.iter().any(|tool| tool == STRUCTURED_OUTPUT);
    let words: Vec<Words> = blocks
        .iter()
        .enumerate()
        .map(|(at, block)| {
            let call = |tool: &str, input: &Value| {
                let (tool, input) = translate::call(&sight.tools, tool, input);
                Words::Call { id: format!("{name}{at}"), tool, input }
            };
            match block {
                Block::Text(text) => Words::Text(text.clone()),
                Block::Call { tool, input } => call(tool, input),
                Block::Output(output) if by_call => call(STRUCTURED_OUTPUT, output),
                Block::Output(output) => Words::Text(output.to_string()),
            }
        })
        .collect();
    let said: usize = words
        .iter()
        .map(|words| match words {
            Words::Text(text) => text.len(),
            Words::Call { input, .. } => input.to_string().len(),
        })
        .sum();
    // About as many as a model would claim.
    let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
    let usage = usage.unwrap_or_else(|| Usage {
        input: tokens(sight.bytes),
        output: tokens(said),
        ..Usage::default()
    });
    let wants_usage = sight.wants_usage;
    Speech { name, model: &sight.model, words, usage, wants_usage }
}

/// A text in the pieces in which a model would stream it, but never very many.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let size = (text.len() / 64).max(24);
    let mut rest = text;
    let mut pieces = Vec::new();
    while rest.len() > size {
        let mut end = size;
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}
