//! What an answer of the model asks for next.

use serde_json::Value;

use super::model::{Answer, Block};

/// What follows from an answer.
#[derive(Debug, PartialEq)]
#[must_use]
pub(super) enum Turn {
    /// Tools are called.
    Calls(Vec<ToolCall>),
    /// The answer is not over: it reached its length limit, or wants to go on.
    Unfinished,
    /// The model has finished.
    Finished,
    /// The model, or whoever watches over it, will not answer.
    Refused,
    /// The conversation has become too long for the model.
    NoRoom,
}

/// A tool call, as far as the model got.
#[derive(Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: CallInput,
}

#[derive(Debug, PartialEq)]
pub(super) enum CallInput {
    Whole(Value),
    /// The length limit came first; what is there may not be what was meant.
    CutOff,
    /// The model wrote something else than an object.
    Malformed,
}

impl Turn {
    pub(super) fn after(answer: &Answer) -> Turn {
        let reason = answer.stop_reason.as_deref();
        if reason == Some("refusal") {
            return Turn::Refused;
        }
        let cut = reason == Some("max_tokens");
        let last = answer.blocks.len().saturating_sub(1);
        let calls: Vec<ToolCall> = answer
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(at, block)| match block {
                Block::Call { id, tool, input } => {
                    let input = match input {
                        _ if cut && at == last => CallInput::CutOff,
                        Some(input) => CallInput::Whole(input.clone()),
                        None => CallInput::Malformed,
                    };
                    Some(ToolCall { id: id.clone(), tool: tool.clone(), input })
                }
                Block::Text(_) | Block::Other(_) => None,
            })
            .collect();
        // Some servers give another reason although tools are called.
        match reason {
            _ if !calls.is_empty() => Turn::Calls(calls),
            Some("max_tokens" | "pause_turn") => Turn::Unfinished,
            Some("model_context_window_exceeded") => Turn::NoRoom,
            _ => Turn::Finished,
        }
    }
}

/// The words of an answer, without calls and thoughts.
pub(super) fn words(answer: &Answer) -> String {
    let texts = answer.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Call { .. } | Block::Other(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use blueflame_core::money::Usage;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_follows_depends_on_calls_and_the_reason_to_stop() {
        let text = || Block::Text("x".to_owned());
        let call =
            |input: Option<Value>| Block::Call { id: "c".to_owned(), tool: "T".to_owned(), input };
        let whole = || call(Some(json!({"a": 1})));
        let calls = |inputs: Vec<CallInput>| {
            let call = |input| ToolCall { id: "c".to_owned(), tool: "T".to_owned(), input };
            Turn::Calls(inputs.into_iter().map(call).collect())
        };
        let is_whole = || CallInput::Whole(json!({"a": 1}));
        for (reason, blocks, expected) in [
            (Some("end_turn"), vec![text()], Turn::Finished),
            (Some("end_turn"), vec![], Turn::Finished),
            (None, vec![text()], Turn::Finished),
            (Some("stop_sequence"), vec![text()], Turn::Finished),
            (Some("tool_use"), vec![text()], Turn::Finished),
            (Some("tool_use"), vec![text(), whole()], calls(vec![is_whole()])),
            (Some("end_turn"), vec![whole()], calls(vec![is_whole()])),
            (Some("tool_use"), vec![call(None)], calls(vec![CallInput::Malformed])),
            (Some("max_tokens"), vec![text()], Turn::Unfinished),
            (
                Some("max_tokens"),
                vec![whole(), call(None)],
                calls(vec![is_whole(), CallInput::CutOff]),
            ),
            (Some("max_tokens"), vec![whole()], calls(vec![CallInput::CutOff])),
            (Some("max_tokens"), vec![whole(), text()], calls(vec![is_whole()])),
            (Some("pause_turn"), vec![text()], Turn::Unfinished),
            (Some("refusal"), vec![whole()], Turn::Refused),
            (Some("model_context_window_exceeded"), vec![text()], Turn::NoRoom),
        ] {
            let answer = Answer {
                id: String::new(),
                model: String::new(),
                blocks,
                stop_reason: reason.map(str::to_owned),
                usage: Usage::default(),
            };
            assert_eq!(Turn::after(&answer), expected, "{answer:?}");
        }
    }
}
