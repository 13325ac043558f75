//! The claude CLI, driven over its stdio control protocol.
//!
//! Nothing of the repository's or the person's own settings is loaded, so that
//! no file an agent can write switches the judging off. Nothing is allowed
//! beforehand, and every tool has to be asked for: without our answer, no call
//! is made. The prompt goes over
//! standard input and the system prompt in a file, never on the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;

use blueflame_core::money::Budget;
use serde_json::{Value, json};

use super::abilities::{Output, OwnTokens};
use super::stream::{Stream, Unjudged};
use super::{Abilities, Conversation, Executor, Ground, Launch, Order, Tested, Version};

#[derive(Clone, Copy, Debug)]
pub struct Claude;

/// How often it asks its model again by itself; after that the session decides
/// how to go on. Four are done within ten seconds; its own ten take three
/// minutes.
const RETRIES: &str = "4";

/// The tool that brings the text of a skill.
const SKILL: &str = "Skill";

impl Executor for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn program(&self) -> Option<&'static str> {
        Some("claude")
    }

    fn tested(&self) -> Option<Tested> {
        Some(Tested { from: Version(2, 1, 197), to: Version(2, 1, 197) })
    }

    fn remedy(&self) -> &'static str {
        "npm install --global @anthropic-ai/claude-code"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["@anthropic-ai/claude-code"]
    }

    fn takes_login(&self) -> bool {
        true
    }

    fn abilities(&self) -> Abilities {
        Abilities { tokens: OwnTokens::AtItsEnd, output: Output::Tool { tries: 5 }, asks: true }
    }

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch {
        let system = ground.files.join("system-prompt.md");
        let skills = ground.skill_set(order);
        let mut tools = order.tools.clone();
        if order.may_ask {
            tools.push("AskUserQuestion".to_owned());
        }
        if skills.is_some() {
            tools.push(SKILL.to_owned());
        }
        let mut arguments: Vec<OsString> = [
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-prompt-tool",
            "stdio",
            "--permission-mode",
            "default",
            "--setting-sources",
            "",
            "--strict-mcp-config",
            "--no-session-persistence",
        ]
        .map(OsString::from)
        .into();
        if skills.is_none() {
            // Skills are commands to it, and gone with them.
            arguments.push("--disable-slash-commands".into());
        }
        let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        option("--model", order.model.clone().into());
        option("--tools", tools.join(",").into());
        option("--settings", settings(order).to_string().into());
        option("--system-prompt-file", system.clone().into());
        if let Some(schema) = &order.output_schema {
            option("--json-schema", understood(schema).to_string().into());
        }
        if let Some(turns) = order.max_turns {
            option("--max-turns", turns.to_string().into());
        }
        if let Budget::Usd(budget) = order.budget
            && budget.micros() > 0
        {
            let micros = budget.micros();
            let dollars = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            option("--max-budget-usd", dollars.into());
        }
        if let Some(skills) = &skills {
            option("--plugin-dir", skills.into());
        }
        Launch {
            program: ground.program.to_owned(),
            arguments,
            environment: environment(ground),
            files: vec![(system, order.system.clone())],
            places: skills.into_iter().collect(),
        }
    }

    fn converse(&self, order: &Order) -> Box<dyn Conversation> {
        Box::new(Stream::new(order, Unjudged::Marked(&NOT_MADE)))
    }
}

/// How the result of a call begins that was not made at all (measured with
/// 2.1.197): the tool is unknown, or its input does not fit; nobody could be
/// asked; the run was interrupted before.
const NOT_MADE: [&str; 4] = [
    "<tool_use_error>",
    "Tool permission request failed",
    "[Request interrupted by user",
    "The user doesn't want to",
];

/// Each tool has to be asked for. Without this, reading in the workspace is
/// allowed by default, and when our answer does not arrive or is an error,
/// that default counts (measured with 2.1.197). With it, the question is put
/// once more, and no answer to that is a denial.
///
/// Skills are only texts: it would run commands that stand in them, and offer
/// some of its own.
fn settings(order: &Order) -> Value {
    if order.skills.is_empty() {
        return json!({"permissions": {"ask": order.tools}});
    }
    let skill = SKILL.to_owned();
    let ask: Vec<&String> = order.tools.iter().chain([&skill]).collect();
    json!({
        "permissions": {"ask": ask},
        "disableBundledSkills": true,
        "disableSkillShellExecution": true,
    })
}

/// A schema without what claude does not know. It checks with the draft of 2018
/// and its own formats: at the sight of another draft or format it drops the
/// whole schema without a word, and the model has nothing to return its answer
/// with (measured with 2.1.197).
fn understood(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let known = |(name, value): &(&String, &Value)| {
                !(value.is_string() && matches!(name.as_str(), "$schema" | "format"))
            };
            let members = members.iter().filter(known);
            Value::Object(members.map(|(name, it)| (name.clone(), understood(it))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(understood).collect()),
        other => other.clone(),
    }
}

fn environment(ground: &Ground<'_>) -> BTreeMap<String, OsString> {
    // With our token it asks no one for a login; with the person's own, that is
    // what it shows to the provider.
    let (variable, secret) = match ground.login {
        None => ("ANTHROPIC_AUTH_TOKEN", ground.token),
        Some(login) => ("CLAUDE_CODE_OAUTH_TOKEN", login),
    };
    let pairs: [(&str, OsString); 11] = [
        // It would rather use another shell, if there is one, and the policy
        // knows how bash reads a line.
        ("SHELL", "/bin/bash".into()),
        ("CLAUDE_CONFIG_DIR", ground.home.join(".claude").into()),
        ("CLAUDE_CODE_TMPDIR", ground.tmp.into()),
        ("ANTHROPIC_UNIX_SOCKET", ground.gateway.into()),
        // The socket speaks plain HTTP; the host is never looked up.
        ("ANTHROPIC_BASE_URL", "http://localhost".into()),
        (variable, secret.into()),
        ("CLAUDE_CODE_MAX_RETRIES", RETRIES.into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use blueflame_core::money::Usd;

    fn order() -> Order {
        Order {
            model: "sonnet".into(),
            system: "THE RULES".into(),
            prompt: "THE PROMPT".into(),
            tools: vec!["Read".into(), "Bash".into()],
            output_schema: Some(json!({"type": "object"})),
            max_turns: Some(7),
            budget: Budget::Usd(Usd::from_micros(1_250_000)),
            may_ask: true,
            skills: Vec::new(),
        }
    }

    fn ground(login: Option<&'static str>) -> Ground<'static> {
        Ground {
            program: Path::new("/bin/claude"),
            home: Path::new("/a/home"),
            tmp: Path::new("/a/tmp"),
            files: Path::new("/a"),
            workspace: Path::new("/w"),
            gateway: Path::new("/r/gateway"),
            port: None,
            hook: None,
            token: "TOKEN",
            login,
        }
    }

    #[test]
    fn the_command_line_holds_the_limits_but_neither_prompt_nor_token() {
        let launch = Claude.launch(&order(), &ground(None));
        let line: Vec<&str> =
            launch.arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
        let value = |name: &str| {
            let at = line.iter().position(|argument| *argument == name).unwrap();
            line[at + 1]
        };
        assert_eq!(value("--tools"), "Read,Bash,AskUserQuestion");
        assert_eq!(value("--settings"), r#"{"permissions":{"ask":["Read","Bash"]}}"#);
        assert_eq!(value("--max-turns"), "7");
        assert_eq!(value("--max-budget-usd"), "1.250000");
        assert_eq!(value("--setting-sources"), "");
        assert_eq!(value("--permission-mode"), "default");
        assert_eq!(value("--json-schema"), r#"{"type":"object"}"#);
        let all = line.join(" ");
        for hidden in ["THE RULES", "THE PROMPT", "TOKEN"] {
            assert!(!all.contains(hidden), "{hidden} is on the command line");
        }
        assert_eq!(launch.files, [("/a/system-prompt.md".into(), "THE RULES".to_owned())]);
    }

    #[test]
    fn a_schema_loses_only_what_claude_cannot_read() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "count": {"type": "integer", "format": "uint32", "minimum": 0},
                "format": {"type": "string"},
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 0},
                "format": {"type": "string"},
            },
        });
        assert_eq!(understood(&schema), expected);
    }

    #[test]
    fn a_login_is_passed_on_only_when_there_is_one() {
        let ours = Claude.launch(&order(), &ground(None)).environment;
        assert_eq!(ours["ANTHROPIC_AUTH_TOKEN"], "TOKEN");
        assert!(!ours.contains_key("CLAUDE_CODE_OAUTH_TOKEN"));
        let theirs = Claude.launch(&order(), &ground(Some("LOGIN"))).environment;
        assert_eq!(theirs["CLAUDE_CODE_OAUTH_TOKEN"], "LOGIN");
        assert!(!theirs.contains_key("ANTHROPIC_AUTH_TOKEN"));
    }
}
