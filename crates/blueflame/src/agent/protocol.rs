//! What the attempt process says, one JSON object a line: parsed here and
//! nowhere else.
//!
//! The dialect is that of `claude -p --input-format stream-json
//! --permission-prompt-tool stdio`, so that one parser on the other side drives
//! both. Whatever is not an explicit permission reads as a refusal.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// One line from the attempt process.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// Who judges tool calls; asked for before the first prompt.
    Initialize { request: String, hooks: Vec<Hook> },
    /// Stop what is under way.
    Interrupt { request: String },
    /// A request that this agent does not know.
    Unknown { request: String, subtype: String },
    /// A prompt: text or content blocks.
    User { content: Value },
    /// The answer to a question of ours.
    Response { request: String, verdict: Verdict },
    /// Something that asks for nothing.
    Other,
    /// Not a message at all.
    Unreadable { why: String },
}

/// Whether a tool call may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Verdict {
    Allow,
    Deny { reason: String },
}

impl Verdict {
    pub(super) fn deny(reason: impl Into<String>) -> Self {
        Verdict::Deny { reason: reason.into() }
    }
}

/// Someone to be asked before tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hook {
    matcher: String,
    pub(super) callback: String,
    /// How long to wait for the answer; a person may be asked, so without one
    /// there is no end to it.
    pub(super) timeout: Option<Duration>,
}

impl Hook {
    /// Whether this hook judges calls of a tool: all of them, or those of the
    /// tools that it names.
    pub(super) fn judges(&self, tool: &str) -> bool {
        matches!(self.matcher.as_str(), "" | "*")
            || self.matcher.split('|').any(|name| name == tool)
    }
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    request: Value,
    #[serde(default)]
    response: Value,
    #[serde(default)]
    message: Value,
}

impl Incoming {
    pub(super) fn parse(line: &[u8]) -> Incoming {
        let mut line: Line = match serde_json::from_slice(line) {
            Ok(line) => line,
            Err(error) => return Incoming::Unreadable { why: error.to_string() },
        };
        match line.r#type.as_str() {
            "user" => {
                let content = line.message.get_mut("content").map(Value::take);
                Incoming::User { content: content.unwrap_or_default() }
            }
            "control_response" => response(&line.response),
            "control_request" => {
                let request = line.request_id;
                match line.request["subtype"].as_str() {
                    Some("initialize") => {
                        Incoming::Initialize { request, hooks: hooks(&line.request["hooks"]) }
                    }
                    Some("interrupt") => Incoming::Interrupt { request },
                    subtype => {
                        let subtype = subtype.unwrap_or_default().to_owned();
                        Incoming::Unknown { request, subtype }
                    }
                }
            }
            _ => Incoming::Other,
        }
    }
}

fn response(response: &Value) -> Incoming {
    let request = response["request_id"].as_str().unwrap_or_default().to_owned();
    Incoming::Response { request, verdict: verdict(response) }
}

/// Reads an answer. Only one shape permits anything.
fn verdict(response: &Value) -> Verdict {
    if response["subtype"] != "success" {
        let error = response["error"].as_str().unwrap_or("no reason given");
        return Verdict::deny(format!("the call could not be judged: {error}"));
    }
    let answer = &response["response"];
    let decision = &answer["hookSpecificOutput"];
    let reason = decision["permissionDecisionReason"].as_str().unwrap_or("no reason given");
    // A judge that wants the call changed, or the run ended, did not permit
    // this call.
    let conditional = !decision["updatedInput"].is_null()
        || !answer["decision"].is_null()
        || answer["continue"] == false;
    match decision["permissionDecision"].as_str() {
        Some("allow") if decision["hookEventName"] == "PreToolUse" && !conditional => {
            Verdict::Allow
        }
        Some("deny") => Verdict::deny(reason),
        _ => Verdict::deny("the call was not explicitly permitted"),
    }
}

/// The hooks of an `initialize` request that judge tool calls.
fn hooks(hooks: &Value) -> Vec<Hook> {
    let entries = hooks["PreToolUse"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    for entry in entries {
        let callbacks = entry["hookCallbackIds"].as_array().map(Vec::as_slice).unwrap_or_default();
        for callback in callbacks.iter().filter_map(Value::as_str) {
            let seconds = entry["timeout"].as_f64();
            found.push(Hook {
                matcher: entry["matcher"].as_str().unwrap_or_default().to_owned(),
                callback: callback.to_owned(),
                timeout: seconds.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::ZERO)),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(line: &Value) -> Incoming {
        Incoming::parse(line.to_string().as_bytes())
    }

    fn answer(response: &Value) -> Verdict {
        match parse(&json!({"type": "control_response", "response": response})) {
            Incoming::Response { verdict, .. } => verdict,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_an_explicit_permission_permits() {
        let success = |response: Value| json!({"subtype": "success", "request_id": "q", "response": response});
        let output = |output: Value| success(json!({"hookSpecificOutput": output}));
        let allow = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"});
        assert_eq!(answer(&output(allow.clone())), Verdict::Allow);

        let with = |key: &str, value: Value| {
            let mut changed = allow.clone();
            changed[key] = value;
            output(changed)
        };
        let beside = |key: &str, value: Value| {
            let mut changed = json!({"hookSpecificOutput": allow.clone()});
            changed[key] = value;
            success(changed)
        };
        for (name, response) in [
            ("nothing", json!(null)),
            ("an error", json!({"subtype": "error", "request_id": "q", "error": "gone"})),
            ("an error with a permission", {
                let mut response = output(allow.clone());
                response["subtype"] = json!("error");
                response
            }),
            ("an empty answer", success(json!({}))),
            ("a plain word", success(json!("allow"))),
            ("a list", success(json!([allow.clone()]))),
            ("ask", with("permissionDecision", json!("ask"))),
            ("another case", with("permissionDecision", json!("ALLOW"))),
            ("true", with("permissionDecision", json!(true))),
            ("another event", with("hookEventName", json!("PostToolUse"))),
            ("no event", with("hookEventName", json!(null))),
            ("other input", with("updatedInput", json!({}))),
            ("stop the run", beside("continue", json!(false))),
            ("the old block", beside("decision", json!("block"))),
            ("behavior of another question", success(json!({"behavior": "allow"}))),
        ] {
            assert!(matches!(answer(&response), Verdict::Deny { .. }), "{name}: {response}");
        }
        let denied = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": "not yours"});
        assert_eq!(answer(&output(denied)), Verdict::deny("not yours"));
    }

    #[test]
    fn lines_of_the_wrong_shape_are_no_reason_to_fall_over() {
        for value in ["null", "5", "\"x\"", "[]", "{}", "[[1]]"] {
            for kind in ["user", "control_request", "control_response"] {
                let line = format!(
                    r#"{{"type":"{kind}","message":{value},"request":{value},"response":{value}}}"#
                );
                match Incoming::parse(line.as_bytes()) {
                    Incoming::User { content } => assert_eq!(content, Value::Null),
                    Incoming::Response { verdict, .. } => assert_ne!(verdict, Verdict::Allow),
                    Incoming::Unknown { .. } => {}
                    other => panic!("{line}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn lines_are_told_apart() {
        let request = |subtype: &str| json!({"type": "control_request", "request_id": "r1", "request": {"subtype": subtype}});
        assert_eq!(parse(&request("interrupt")), Incoming::Interrupt { request: "r1".to_owned() });
        assert_eq!(
            parse(&request("get_usage")),
            Incoming::Unknown { request: "r1".to_owned(), subtype: "get_usage".to_owned() }
        );
        assert_eq!(
            parse(&request("initialize")),
            Incoming::Initialize { request: "r1".to_owned(), hooks: Vec::new() }
        );
        assert_eq!(
            parse(&json!({"type": "user", "message": {"role": "user", "content": "hi"}})),
            Incoming::User { content: json!("hi") }
        );
        assert_eq!(parse(&json!({"type": "user"})), Incoming::User { content: Value::Null });
        assert_eq!(parse(&json!({"type": "keep_alive"})), Incoming::Other);
        for line in ["", "{", "null", "[]", "\"user\"", "{\"type\":1}", "\u{0}"] {
            let parsed = Incoming::parse(line.as_bytes());
            assert!(matches!(parsed, Incoming::Unreadable { .. }), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn hooks_are_found_with_their_tools_and_time_limits() {
        let line = json!({"type": "control_request", "request_id": "r", "request": {
            "subtype": "initialize", "hooks": {
                "PreToolUse": [
                    {"matcher": "*", "hookCallbackIds": ["cb1"], "timeout": 5},
                    {"matcher": "Write|Edit", "hookCallbackIds": ["cb2", "cb3"]},
                    {"hookCallbackIds": ["cb4"], "timeout": -1},
                    {"matcher": "Bash"},
                ],
                "Stop": [{"hookCallbackIds": ["cb9"]}],
            },
        }});
        let Incoming::Initialize { hooks, .. } = parse(&line) else { panic!("not initialize") };
        let seen: Vec<_> = hooks
            .iter()
            .map(|hook| {
                (hook.callback.as_str(), hook.timeout.map(|t| t.as_secs()), hook.judges("Bash"))
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("cb1", Some(5), true),
                ("cb2", None, false),
                ("cb3", None, false),
                ("cb4", Some(0), true)
            ]
        );
        assert!(hooks[1].judges("Edit") && !hooks[1].judges("Edi"));
    }
}
