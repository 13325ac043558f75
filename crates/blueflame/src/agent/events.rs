//! The events that the agent writes, in the words of claude's `stream-json`.
//!
//! `docs/embedded-agent.md` lists them for people.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use blueflame_core::money::Usage;
use serde_json::{Map, Value, json};

use super::judge::Call;
use super::model::Failure;

/// How a run ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) ending: Ending,
    pub(super) stop_reason: Option<String>,
    /// Answers of the model in this run.
    pub(super) turns: u32,
    pub(super) usage: Usage,
    pub(super) denials: Vec<Value>,
}

/// The ways in which a run ends.
#[derive(Debug)]
pub(super) enum Ending {
    /// The model had its last word.
    Said {
        text: String,
        structured: Option<Value>,
    },
    /// The model could not be asked, or its answer could not be used.
    ModelFailed(Failure),
    MaxTurns {
        most: u32,
    },
    MaxStructuredOutputRetries {
        tries: u32,
    },
    /// It was stopped, or could not be started.
    Broken {
        why: String,
    },
}

impl Ending {
    pub(super) fn is_error(&self) -> bool {
        match self {
            Ending::Said { .. } => false,
            Ending::ModelFailed(_)
            | Ending::MaxTurns { .. }
            | Ending::MaxStructuredOutputRetries { .. }
            | Ending::Broken { .. } => true,
        }
    }
}

pub(super) fn init(session: &str, cwd: &Path, tools: &[&str], model: &str) -> Value {
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": cwd.to_string_lossy(),
        "session_id": session,
        "tools": tools,
        "model": model,
        "agent": "blueflame",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// One block of an answer.
pub(super) fn assistant(
    session: &str,
    id: &str,
    model: &str,
    block: &Value,
    usage: Usage,
) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": null,
            "usage": figures(usage),
        },
        "parent_tool_use_id": null,
        "session_id": session,
    })
}

/// A failed request, in the place where the answer would stand.
pub(super) fn assistant_error(session: &str, failure: &Failure) -> Value {
    let block = json!({"type": "text", "text": failure.message});
    let mut event = assistant(session, "msg_none", "<synthetic>", &block, Usage::default());
    event["error"] = json!(failure.kind.word());
    event
}

/// The results of tool calls.
pub(super) fn user(session: &str, results: &[Value]) -> Value {
    json!({
        "type": "user",
        "message": {"role": "user", "content": results},
        "parent_tool_use_id": null,
        "session_id": session,
    })
}

/// A request that will be made again.
pub(super) fn api_retry(
    session: &str,
    failure: &Failure,
    attempt: u32,
    most: u32,
    after: Duration,
) -> Value {
    json!({
        "type": "system",
        "subtype": "api_retry",
        "attempt": attempt,
        "max_retries": most,
        "retry_delay_ms": u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        "error_status": failure.status,
        "error": failure.kind.word(),
        "session_id": session,
    })
}

/// The last word about a run. `totals` is what the whole process has used, by
/// model.
pub(super) fn result(session: &str, outcome: &Outcome, totals: &BTreeMap<String, Usage>) -> Value {
    let mut event = json!({
        "type": "result",
        "subtype": subtype(&outcome.ending),
        "is_error": outcome.ending.is_error(),
        "api_error_status": null,
        "num_turns": outcome.turns,
        "stop_reason": outcome.stop_reason,
        "session_id": session,
        "usage": figures(outcome.usage),
        "modelUsage": totals.iter().map(model_figures).collect::<Map<_, _>>(),
        "permission_denials": outcome.denials,
    });
    match &outcome.ending {
        Ending::Said { text, structured } => {
            event["result"] = json!(text);
            if let Some(structured) = structured {
                event["structured_output"] = structured.clone();
            }
        }
        Ending::ModelFailed(failure) => {
            event["result"] = json!(failure.message);
            event["api_error_status"] = json!(failure.status);
        }
        Ending::MaxTurns { most } => {
            event["errors"] = json!([format!("Reached maximum number of turns ({most})")]);
        }
        Ending::MaxStructuredOutputRetries { tries } => {
            event["errors"] =
                json!([format!("no structured output that fits its schema in {tries} tries")]);
        }
        Ending::Broken { why } => event["errors"] = json!([why]),
    }
    event
}

fn subtype(ending: &Ending) -> &'static str {
    match ending {
        // As claude has it: a failed request is no failed execution.
        Ending::Said { .. } | Ending::ModelFailed(_) => "success",
        Ending::MaxTurns { .. } => "error_max_turns",
        Ending::MaxStructuredOutputRetries { .. } => "error_max_structured_output_retries",
        Ending::Broken { .. } => "error_during_execution",
    }
}

fn figures(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

fn model_figures((model, usage): (&String, &Usage)) -> (String, Value) {
    let figures = json!({
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheReadInputTokens": usage.cache_read,
        "cacheCreationInputTokens": usage.cache_write,
    });
    (model.clone(), figures)
}

/// A tool call put to whoever judges it.
pub(super) fn hook_callback(
    request: &str,
    callback: &str,
    session: &str,
    cwd: &Path,
    call: Call<'_>,
) -> Value {
    json!({
        "type": "control_request",
        "request_id": request,
        "request": {
            "subtype": "hook_callback",
            "callback_id": callback,
            "input": {
                "session_id": session,
                "cwd": cwd.to_string_lossy(),
                "hook_event_name": "PreToolUse",
                "tool_name": call.tool,
                "tool_input": call.input,
                "tool_use_id": call.id,
            },
            "tool_use_id": call.id,
        },
    })
}

/// The answer is no longer waited for.
pub(super) fn control_cancel(request: &str) -> Value {
    json!({"type": "control_cancel_request", "request_id": request})
}

pub(super) fn control_success(request: &str) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request, "response": {}},
    })
}

pub(super) fn control_unknown(request: &str, subtype: &str) -> Value {
    let error = format!("this agent does not know the request `{subtype}`");
    json!({
        "type": "control_response",
        "response": {"subtype": "error", "request_id": request, "error": error},
    })
}
