//! The fields that a request may have, for each dialect.
//!
//! A list of what is let pass, not of what is held back: providers keep adding
//! fields, and some of them search, fetch, keep things or cost more. On the list
//! is what the known agents send and what says how an answer is to be written.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;

/// A body's fields, each there once: of two with the same name, the provider
/// might believe the other one.
pub(crate) struct Fields<'b>(Vec<(String, &'b RawValue)>);

impl<'b> Fields<'b> {
    pub(crate) fn get(&self, name: &str) -> Option<&'b RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The first field that is not let pass. One without content is as good as
    /// none.
    pub(crate) fn forbidden(&self, dialect: Dialect) -> Option<&str> {
        let empty = |value: &RawValue| matches!(value.get(), "null" | "[]");
        let bad = |(name, value): &&(String, &RawValue)| {
            !empty(value) && !is_fine(dialect, name, value.get())
        };
        self.0.iter().find(bad).map(|(name, _)| name.as_str())
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(String, &RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, _>()? {
                    if fields.len() == MOST {
                        return Err(A::Error::custom("more fields than any request has"));
                    }
                    if fields.iter().any(|(known, _)| *known == name) {
                        let name: String = name.chars().take(100).collect();
                        return Err(A::Error::custom(format!("duplicate field `{name}`")));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// More fields than all lists together.
const MOST: usize = 200;

/// What all dialects call the same.
const COMMON: [&str; 11] = [
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "stream",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// claude asks with `diagnostics` why its last prompt was not in the cache.
const MESSAGES: [&str; 7] = [
    "cache_control",
    "context_management",
    "diagnostics",
    "output_config",
    "output_format",
    "stop_sequences",
    "system",
];

/// What both OpenAI dialects have.
const OPENAI: [&str; 8] = [
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "stream_options",
    "top_logprobs",
    "user",
];

const RESPONSES: [&str; 8] = [
    "client_metadata",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "text",
    "truncation",
];

/// The last few are asked of local servers.
const CHAT: [&str; 20] = [
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "n",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "verbosity",
    "chat_template_kwargs",
    "enable_thinking",
    "min_p",
    "repetition_penalty",
    "thinking_budget",
    "usage",
];

fn is_fine(dialect: Dialect, name: &str, value: &str) -> bool {
    match name {
        // Kept at the provider, or answered when nobody counts.
        "store" | "background" => return value == "false",
        // The others are dearer than the price list says.
        "service_tier" => {
            let usual = ["\"auto\"", "\"default\"", "\"standard_only\"", "\"flex\""];
            return usual.contains(&value);
        }
        _ => {}
    }
    let own: [&[&str]; 2] = match dialect {
        Dialect::Messages => [&MESSAGES, &[]],
        Dialect::Responses => [&OPENAI, &RESPONSES],
        Dialect::Chat => [&OPENAI, &CHAT],
    };
    COMMON.contains(&name) || own.iter().any(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dialect::{Chat, Messages, Responses};

    /// As recorded of claude 2.1.197, codex 0.166.0 and opencode 1.18.33; the last
    /// is what local servers are asked besides.
    #[test]
    fn what_the_known_agents_send_is_let_pass() {
        for (dialect, body) in [
            (
                Messages,
                r#"{"model":"m","messages":[],"system":[],"tools":[],"metadata":{"user_id":"u"},
                    "max_tokens":64000,"thinking":{"type":"adaptive"},
                    "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
                    "output_config":{"effort":"high"},"stream":true,
                    "diagnostics":{"previous_message_id":null}}"#,
            ),
            (
                Responses,
                r#"{"model":"m","stream":true,"input":[],"tools":[],"tool_choice":"auto",
                    "parallel_tool_calls":true,"reasoning":{"summary":"auto"},"store":false,
                    "include":["reasoning.encrypted_content"],"prompt_cache_key":"k",
                    "client_metadata":{"a":"b"},"instructions":"i","text":{"verbosity":"low"}}"#,
            ),
            (
                Chat,
                r#"{"model":"gpt-5.2","reasoning_effort":"medium","messages":[],"tools":[],
                    "tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                Chat,
                r#"{"model":"m","max_tokens":32000,"messages":[],"tools":[],"tool_choice":"auto",
                    "stream":true,"stream_options":{"include_usage":true},"temperature":0.5,
                    "top_p":1,"reasoning_effort":"low","n":1,"background":false}"#,
            ),
        ] {
            let fields: Fields<'_> = serde_json::from_str(body).unwrap();
            assert_eq!(fields.forbidden(dialect), None, "{body}");
        }
    }
}
