//! The codex CLI, run once with its events as JSON and its tool calls judged
//! through a hook.
//!
//! Everything that could act beside the hook is off: other tools, sub-agents,
//! plugins, terminals that a later call types into, and scripts in which calls
//! have no names that the gateway could follow. The model is described by a
//! catalogue of ours, so that this holds for every model. Nothing of the
//! repository's or the person's own settings is loaded. codex cannot say how to
//! reach a Unix socket, so it gets a port.

mod catalogue;
pub(super) mod talk;
mod trust;

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::{Value, json};

use super::abilities::{Output, OwnTokens};
use super::{
    Abilities, Conversation, Executor, Ground, HookAddress, Launch, Order, Tested, Version,
};
use crate::hook::wire::Dialect;
use talk::Talk;

#[derive(Clone, Copy, Debug)]
pub struct Codex;

/// The variable that holds what the gateway wants to be shown.
const TOKEN: &str = "BLUEFLAME_TOKEN";

/// How often it asks its model again by itself, for a request that failed and for
/// an answer that broke off. An error of the provider counts as both, so there are
/// nine requests at most.
const RETRIES: u32 = 2;

/// What it can do besides, and must not: each of these would act without a
/// verdict, reach out, or read what an agent can write.
const SWITCHED_OFF: [&str; 19] = [
    "apps",
    "browser_use",
    "computer_use",
    // The gateway does not read compressed requests.
    "enable_request_compression",
    "goals",
    "image_generation",
    "memories",
    "multi_agent",
    "plugins",
    "remote_plugin",
    "shell_snapshot",
    "skill_mcp_dependency_install",
    "skill_search",
    "sleep_tool",
    "tool_suggest",
    // It would wait for a network that never comes.
    "unbounded_connection_retries",
    // What is typed into a terminal is never judged.
    "unified_exec_tty",
    "view_image",
    "workspace_dependencies",
];

impl Executor for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn program(&self) -> Option<&'static str> {
        Some("codex")
    }

    fn packages(&self) -> &'static [&'static str] {
        &["@openai/codex"]
    }

    /// What npm puts into `PATH` is a script, and killing that would leave the
    /// program alive.
    fn behind(&self) -> &'static [&'static str] {
        &[
            "../../codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "../../codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
            "../node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "../node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        ]
    }

    fn tested(&self) -> Option<Tested> {
        Some(Tested { from: Version(0, 166, 0), to: Version(0, 166, 0) })
    }

    fn remedy(&self) -> &'static str {
        "npm install --global @openai/codex@0.166.0"
    }

    fn hook(&self) -> Option<Dialect> {
        Some(Dialect::Codex)
    }

    fn speaks(&self) -> blueflame_gateway::dialect::Dialect {
        blueflame_gateway::dialect::Dialect::Responses
    }

    fn needs_port(&self) -> bool {
        true
    }

    fn abilities(&self) -> Abilities {
        Abilities { tokens: OwnTokens::WhenDone, output: Output::LastMessage, asks: false }
    }

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch {
        let catalogue = ground.files.join("model-catalogue.json");
        let mut arguments: Vec<OsString> = [
            "exec",
            "--json",
            "--ephemeral",
            "--ignore-rules",
            "--skip-git-repo-check",
            // The sandbox is ours; its own does not work inside of it.
            "--sandbox",
            "danger-full-access",
        ]
        .map(OsString::from)
        .into();
        arguments.extend(["--model".into(), order.model.clone().into()]);
        for feature in SWITCHED_OFF {
            arguments.extend(["--disable".into(), feature.into()]);
        }
        let mut set = settings(order, ground);
        set.insert("model_catalog_json", toml(&json!(catalogue)));
        if let Some(hook) = &ground.hook {
            set.extend(hooks(hook));
        }
        for (name, value) in set {
            arguments.extend(["--config".into(), format!("{name}={value}").into()]);
        }
        // The prompt comes over standard input.
        arguments.push("-".into());
        let environment = [
            ("CODEX_HOME".to_owned(), ground.home.into()),
            (TOKEN.to_owned(), ground.token.into()),
        ]
        .into();
        Launch {
            program: ground.program.to_owned(),
            arguments,
            environment,
            files: vec![(catalogue, catalogue::of(order, ground).to_string())],
            places: ground.skills(order).into_iter().collect(),
        }
    }

    fn converse(&self, order: &Order) -> Box<dyn Conversation> {
        Box::new(Talk::new(order))
    }
}

fn settings(order: &Order, ground: &Ground<'_>) -> BTreeMap<&'static str, String> {
    let port = ground.port.unwrap_or_default();
    let mut projects = serde_json::Map::new();
    let root = ground.workspace.to_string_lossy().into_owned();
    // Without this it trusts the repository, and starts what that says.
    projects.insert(root, json!({"trust_level": "untrusted"}));
    let provider = json!({
        "name": "Blue Flame",
        "base_url": format!("http://127.0.0.1:{port}/v1"),
        "env_key": TOKEN,
        "wire_api": "responses",
        "request_max_retries": RETRIES,
        "stream_max_retries": RETRIES,
        "stream_idle_timeout_ms": 600_000,
    });
    let environment =
        json!({"inherit": "all", "ignore_default_excludes": true, "exclude": [TOKEN]});
    [
        ("model_provider", json!("blueflame")),
        ("model_providers.blueflame", provider),
        ("projects", Value::Object(projects)),
        ("shell_environment_policy", environment),
        ("project_doc_max_bytes", json!(0)),
        // A login shell would read files that an agent can write.
        ("allow_login_shell", json!(false)),
        ("include_permissions_instructions", json!(false)),
        ("web_search", json!("disabled")),
        ("skills.bundled.enabled", json!(false)),
        // It would list those of the repository, whether it trusts that or not.
        ("skills.include_instructions", json!(false)),
        ("analytics.enabled", json!(false)),
        ("check_for_update_on_startup", json!(false)),
        ("model_context_window", json!(order.context_window())),
    ]
    .map(|(name, value)| (name, toml(&value)))
    .into()
}

fn hooks(address: &HookAddress<'_>) -> BTreeMap<&'static str, String> {
    let command = address.command(Dialect::Codex);
    let mut state = serde_json::Map::new();
    let mut set = BTreeMap::new();
    for (setting, event) in
        [("hooks.SessionStart", "session_start"), ("hooks.PreToolUse", "pre_tool_use")]
    {
        set.insert(setting, toml(&json!([{"hooks": [trust::handler(&command)]}])));
        let hash = trust::hash(event, &command);
        let key = format!("/<session-flags>/config.toml:{event}:0:0");
        state.insert(key, json!({"trusted_hash": hash}));
    }
    set.insert("hooks.state", toml(&Value::Object(state)));
    set
}

/// A value as TOML on one line. Texts are written alike in both.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}={}", json!(name), toml(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use blueflame_core::money::Budget;

    use super::*;

    #[test]
    fn the_command_line_names_hooks_and_gateway_but_neither_prompt_nor_token() {
        let order = Order {
            model: "gpt-x".into(),
            system: "THE RULES".into(),
            prompt: "THE PROMPT".into(),
            tools: vec!["Bash".into()],
            output_schema: Some(json!({"type": "object"})),
            max_turns: Some(7),
            budget: Budget::Unlimited,
            may_ask: false,
            skills: Vec::new(),
        };
        let ground = Ground {
            program: Path::new("/bin/codex"),
            home: Path::new("/a/home"),
            tmp: Path::new("/a/tmp"),
            files: Path::new("/a"),
            workspace: Path::new("/w \"q\""),
            gateway: Path::new("/r/gateway"),
            port: Some(1234),
            hook: Some(HookAddress {
                blueflame: Path::new("/bin/blue flame"),
                socket: Path::new("/r/hook"),
                answerer: 0,
                proof: "PROOF",
            }),
            token: "SECRET",
            login: None,
        };
        let launch = Codex.launch(&order, &ground);
        let line: Vec<&str> = launch.arguments.iter().map(|it| it.to_str().unwrap()).collect();
        let all = line.join("\n");
        for shown in [
            r#"hooks.PreToolUse=[{"hooks"=[{"command"="'/bin/blue flame' __hook codex '/r/hook' 0 PROOF","timeout"=60,"type"="command"}]}]"#,
            r#"projects={"/w \"q\""={"trust_level"="untrusted"}}"#,
            r#""base_url"="http://127.0.0.1:1234/v1""#,
            r#""exclude"=["BLUEFLAME_TOKEN"]"#,
            r#"model_catalog_json="/a/model-catalogue.json""#,
            "--disable\nunified_exec_tty",
        ] {
            assert!(all.contains(shown), "{shown} is not in\n{all}");
        }
        for hidden in ["THE RULES", "THE PROMPT", "SECRET"] {
            assert!(!all.contains(hidden), "{hidden} is on the command line");
        }
        assert_eq!(line.last(), Some(&"-"));
        assert_eq!(launch.environment[TOKEN], "SECRET");
        assert!(launch.files[0].1.contains("THE RULES"));
    }
}
