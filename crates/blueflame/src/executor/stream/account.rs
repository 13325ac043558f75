//! The `result` event: what the program itself says of its run.

use blueflame_core::money::Usage;
use serde_json::Value;

use super::{status, text};
use crate::executor::{Account, Told};

pub(super) fn read_result(event: &Value, interrupted: bool) -> Account {
    Account {
        end: told(event, interrupted),
        text: text(event, "/result").unwrap_or_default().to_owned(),
        output: event.get("structured_output").filter(|output| !output.is_null()).cloned(),
        usage: usage(event),
    }
}

fn told(event: &Value, interrupted: bool) -> Told {
    let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(true);
    let message = || {
        let errors = event.get("errors").and_then(Value::as_array);
        let errors: Vec<&str> = errors.into_iter().flatten().filter_map(Value::as_str).collect();
        match text(event, "/result") {
            Some(result) if errors.is_empty() => result.to_owned(),
            _ => errors.join("; "),
        }
    };
    match text(event, "/subtype").unwrap_or_default() {
        "success" if is_error && text(event, "/stop_reason") == Some("refusal") => {
            Told::Failed { message: format!("the model refused: {}", message()) }
        }
        "success" if is_error && text(event, "/terminal_reason") == Some("prompt_too_long") => {
            Told::Failed { message: "the prompt is too long for this model".to_owned() }
        }
        "success" if is_error => {
            Told::Api { status: status(event, "/api_error_status"), message: message() }
        }
        // An answer that broke off counts as a success there.
        "success" if event.get("stop_reason").is_none_or(Value::is_null) => {
            Told::Failed { message: format!("the model's answer broke off: {}", message()) }
        }
        "success" => Told::Finished,
        "error_max_turns" => Told::MaxTurns,
        "error_max_budget_usd" => Told::Budget,
        "error_max_structured_output_retries" => Told::BadOutput,
        "error_during_execution" if interrupted => Told::Interrupted,
        other => Told::Failed { message: format!("{other}: {}", message()) },
    }
}

/// All models together: sub-agents may have another one.
fn usage(event: &Value) -> Option<Usage> {
    let models = event.get("modelUsage")?.as_object()?;
    let figure = |model: &Value, name: &str| model.get(name).and_then(Value::as_u64).unwrap_or(0);
    let read = |model: &Value| Usage {
        input: figure(model, "inputTokens"),
        output: figure(model, "outputTokens"),
        cache_read: figure(model, "cacheReadInputTokens"),
        cache_write: figure(model, "cacheCreationInputTokens"),
    };
    Some(models.values().map(read).fold(Usage::default(), Usage::plus))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_result_is_told_apart() {
        let failed = |message: &str| Told::Failed { message: message.to_owned() };
        let api = |status, message: &str| Told::Api { status, message: message.to_owned() };
        for (event, expected) in [
            (
                json!({"subtype": "success", "is_error": false, "stop_reason": "end_turn"}),
                Told::Finished,
            ),
            (
                json!({"subtype": "success", "is_error": false, "stop_reason": null, "result": "x"}),
                failed("the model's answer broke off: x"),
            ),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": 529, "result": "full"}),
                api(Some(529), "full"),
            ),
            (
                json!({"subtype": "success", "is_error": true, "api_error_status": null, "result": "Unable to connect"}),
                api(None, "Unable to connect"),
            ),
            (
                json!({"subtype": "success", "is_error": true, "stop_reason": "refusal", "result": "no"}),
                failed("the model refused: no"),
            ),
            (
                json!({"subtype": "success", "is_error": true, "terminal_reason": "prompt_too_long"}),
                failed("the prompt is too long for this model"),
            ),
            (json!({"subtype": "error_max_turns", "is_error": true}), Told::MaxTurns),
            (json!({"subtype": "error_max_budget_usd", "is_error": true}), Told::Budget),
            (
                json!({"subtype": "error_max_structured_output_retries", "is_error": true}),
                Told::BadOutput,
            ),
            (
                json!({"subtype": "error_during_execution", "is_error": true, "errors": ["a", "b"]}),
                failed("error_during_execution: a; b"),
            ),
            (json!({"subtype": "error_of_tomorrow"}), failed("error_of_tomorrow: ")),
        ] {
            assert_eq!(told(&event, false), expected, "{event}");
        }
        let stopped = json!({"subtype": "error_during_execution", "is_error": true});
        assert_eq!(told(&stopped, true), Told::Interrupted);
    }

    #[test]
    fn tokens_of_all_models_are_added_up() {
        let event = json!({"subtype": "success", "modelUsage": {
            "a": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3},
            "b": {"inputTokens": 10, "outputTokens": 20, "cacheCreationInputTokens": 40},
        }});
        let sum = Usage { input: 11, output: 22, cache_read: 3, cache_write: 40 };
        assert_eq!(read_result(&event, false).usage, Some(sum));
        assert_eq!(read_result(&json!({}), false).usage, None);
    }
}
