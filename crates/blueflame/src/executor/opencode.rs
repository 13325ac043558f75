//! The opencode CLI, run once with its events as JSON and its tool calls judged
//! through a plugin.
//!
//! Everything that could act beside the plugin is off: sub-agents, the web, tools
//! of MCP servers, language servers, and formatters, which are programs of the
//! repository. Nothing of the repository's or the person's own settings is loaded,
//! and nothing is fetched. There is no switch for all of that, so opencode is not
//! started in the workspace: its plugin puts every call there. opencode cannot say
//! how to reach a Unix socket, so it gets a port.

pub(super) mod talk;
mod tools;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::abilities::{Output, OwnTokens};
use super::{
    Abilities, Conversation, Executor, Ground, HookAddress, Launch, Order, Tested, Version,
    last_message,
};
use crate::hook::wire::Dialect;
use talk::Talk;

#[derive(Clone, Copy, Debug)]
pub struct Opencode;

/// The variable that holds what the gateway wants to be shown.
const TOKEN: &str = "BLUEFLAME_TOKEN";

/// The name that our provider and our agent have in its settings.
const OURS: &str = "blueflame";

/// The name that the ordered model has there, whatever it is called.
const MODEL: &str = "ordered";

const TESTED: Version = Version(1, 18, 33);

const PLUGIN: &str = include_str!("opencode/plugin.js");

/// What it would do by itself, and must not: read what an agent can write, fetch,
/// or run what the repository brings along.
const SWITCHED_OFF: [&str; 10] = [
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_DISABLE_TERMINAL_TITLE",
    "OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER",
];

impl Executor for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn program(&self) -> Option<&'static str> {
        Some("opencode")
    }

    fn tested(&self) -> Option<Tested> {
        Some(Tested { from: TESTED, to: TESTED })
    }

    fn remedy(&self) -> &'static str {
        "npm install --global opencode-ai@1.18.33"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["opencode-"]
    }

    /// It would fetch this one.
    fn helpers(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[("rg", &["Glob", "Grep"])]
    }

    fn hook(&self) -> Option<Dialect> {
        Some(Dialect::Opencode)
    }

    fn speaks(&self) -> blueflame_gateway::dialect::Dialect {
        blueflame_gateway::dialect::Dialect::Chat
    }

    fn needs_port(&self) -> bool {
        true
    }

    fn abilities(&self) -> Abilities {
        Abilities { tokens: OwnTokens::EachAnswer, output: Output::LastMessage, asks: false }
    }

    fn launch(&self, order: &Order, ground: &Ground<'_>) -> Launch {
        let place = Place::below(ground.files);
        let mut files = vec![
            (place.system.clone(), instructions(order)),
            (place.settings.clone(), settings(order, ground, &place).to_string()),
        ];
        if let Some(hook) = &ground.hook {
            files.push((place.plugin.clone(), plugin(hook, ground.workspace)));
        }
        files.extend(place.installed());
        let mut arguments: Vec<OsString> =
            ["run", "--format", "json", "--title", OURS, "--agent", OURS].map(Into::into).into();
        arguments.extend(["--dir".into(), place.start().into()]);
        Launch {
            program: ground.program.to_owned(),
            arguments,
            environment: environment(ground, &place),
            files,
            places: [place.all].into_iter().chain(ground.skills(order)).collect(),
        }
    }

    fn converse(&self, order: &Order) -> Box<dyn Conversation> {
        Box::new(Talk::new(order))
    }
}

/// Where its files are; it can read them and not write them.
#[derive(Debug)]
struct Place {
    all: PathBuf,
    system: PathBuf,
    settings: PathBuf,
    plugin: PathBuf,
    /// Where it looks for settings of the person.
    config: PathBuf,
}

impl Place {
    fn below(files: &Path) -> Self {
        let all = files.join("opencode");
        Place {
            system: all.join("system-prompt.md"),
            settings: all.join("opencode.json"),
            plugin: all.join("blueflame-plugin.js"),
            config: all.join("config"),
            all,
        }
    }

    /// Where it is started. In the workspace, and in what is above it, it would run
    /// what is below `.opencode`; here it looks no further.
    fn start(&self) -> PathBuf {
        self.config.join("opencode")
    }

    /// What makes it believe that what it installs there for plugins is there. Ours
    /// needs none of it.
    fn installed(&self) -> [(PathBuf, String); 3] {
        let version = TESTED.to_string();
        let lock = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": version}}}});
        let at = self.start();
        [
            (at.join("package-lock.json"), lock.to_string()),
            (at.join("node_modules/.keep"), String::new()),
            (at.join(".gitignore"), String::new()),
        ]
    }
}

fn settings(order: &Order, ground: &Ground<'_>, place: &Place) -> Value {
    let port = ground.port.unwrap_or_default();
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": {
            "baseURL": format!("http://127.0.0.1:{port}/v1"),
            "apiKey": format!("{{env:{TOKEN}}}"),
        },
        "models": {MODEL: {
            "id": order.plain_model(),
            "limit": {"context": order.context_window(), "output": 32_000},
        }},
    });
    let model = format!("{OURS}/{MODEL}");
    // Not in here itself: what looks like a name in braces would be replaced.
    let prompt = format!("{{file:{}}}", place.system.display());
    json!({
        "enabled_providers": [OURS],
        "provider": {OURS: provider},
        "model": model,
        "small_model": model,
        "agent": {OURS: {"mode": "primary", "prompt": prompt}},
        "permission": tools::permissions(order),
        "skills": {"paths": Vec::from_iter(ground.skills(order))},
        "plugin": [file_url(&place.plugin)],
        "mcp": {},
        "instructions": [],
        "lsp": false,
        "formatter": false,
        "snapshot": false,
        "share": "disabled",
        "autoupdate": false,
        // What came of calls is not taken out again: the gateway looks at it.
        "compaction": {"auto": true, "prune": false},
    })
}

fn environment(ground: &Ground<'_>, place: &Place) -> BTreeMap<String, OsString> {
    let mut all: BTreeMap<String, OsString> = [
        (TOKEN, ground.token.into()),
        // The policy knows how bash reads a line.
        ("SHELL", "/bin/bash".into()),
        ("OPENCODE_CONFIG", place.settings.clone().into()),
        ("XDG_CONFIG_HOME", place.config.clone().into()),
        ("XDG_CACHE_HOME", ground.home.join(".cache").into()),
        ("XDG_DATA_HOME", ground.home.join(".local/share").into()),
        ("XDG_STATE_HOME", ground.home.join(".local/state").into()),
    ]
    .map(|(name, value): (&str, OsString)| (name.to_owned(), value))
    .into();
    all.extend(SWITCHED_OFF.map(|name| (name.to_owned(), "1".into())));
    all
}

/// The plugin, with the hook that it has to run.
fn plugin(hook: &HookAddress<'_>, workspace: &Path) -> String {
    let words = json!(hook.words(Dialect::Opencode));
    let (token, workspace) = (json!(TOKEN), json!(workspace.to_string_lossy()));
    format!(
        "const HOOK = {words};\nconst TOKEN = {token};\nconst WORKSPACE = {workspace};\n\n{PLUGIN}"
    )
}

/// The rules of the role, with what is different here.
fn instructions(order: &Order) -> String {
    let mut text = format!("{}\n\n{TOOLS}\n", order.system.trim_end());
    if let Some(schema) = &order.output_schema {
        let _ = writeln!(text, "\n{}", last_message::instructions(schema));
    }
    text
}

const TOOLS: &str = "\
The tools that messages call Bash, Read, Write, Edit, Glob and Grep are `bash`, `read`, \
`write`, `edit`, `glob` and `grep`. Every call is judged before it is made; one that is \
denied says what to do instead.";

/// The address of a file, in which everything has its sign that could mean
/// something else.
fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                url.push(char::from(*byte));
            }
            byte => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use blueflame_core::money::Budget;

    use super::*;

    #[test]
    fn the_settings_name_plugin_and_gateway_and_no_secret_is_in_sight() {
        let order = Order {
            model: "local/big[1m]".into(),
            system: "THE RULES {env:HOME}".into(),
            prompt: "THE PROMPT".into(),
            tools: vec!["Bash".into()],
            output_schema: Some(json!({"type": "object"})),
            max_turns: Some(7),
            budget: Budget::Unlimited,
            may_ask: false,
            skills: Vec::new(),
        };
        let ground = Ground {
            program: Path::new("/bin/opencode"),
            home: Path::new("/a/home"),
            tmp: Path::new("/a/tmp"),
            files: Path::new("/a b"),
            workspace: Path::new("/w"),
            gateway: Path::new("/r/gateway"),
            port: Some(1234),
            hook: Some(HookAddress {
                blueflame: Path::new("/bin/blue \"flame\""),
                socket: Path::new("/r/hook"),
                answerer: 0,
                proof: "PROOF",
            }),
            token: "SECRET",
            login: None,
        };
        let launch = Opencode.launch(&order, &ground);
        let files: BTreeMap<String, &str> = launch
            .files
            .iter()
            .map(|(path, text)| (path.display().to_string(), text.as_str()))
            .collect();
        let settings: Value = serde_json::from_str(files["/a b/opencode/opencode.json"]).unwrap();
        let provider = &settings["provider"]["blueflame"];
        assert_eq!(provider["options"]["baseURL"], "http://127.0.0.1:1234/v1");
        assert_eq!(provider["models"]["ordered"]["id"], "local/big");
        assert_eq!(provider["models"]["ordered"]["limit"]["context"], 1_000_000);
        assert_eq!(settings["plugin"], json!(["file:///a%20b/opencode/blueflame-plugin.js"]));
        assert_eq!(
            settings["agent"]["blueflame"]["prompt"],
            "{file:/a b/opencode/system-prompt.md}"
        );
        for off in ["lsp", "formatter", "snapshot", "autoupdate"] {
            assert_eq!(settings[off], false, "{off}");
        }
        let plugin = files["/a b/opencode/blueflame-plugin.js"];
        let hook =
            r#"const HOOK = ["/bin/blue \"flame\"","__hook","opencode","/r/hook","0","PROOF"];"#;
        assert!(plugin.starts_with(hook), "{plugin}");
        assert!(files["/a b/opencode/system-prompt.md"].contains("StructuredOutput"));
        assert!(plugin.contains("const WORKSPACE = \"/w\";"));
        // Everything it needs is in one place, which it can list.
        assert_eq!(launch.places, [Path::new("/a b/opencode")]);
        assert!(launch.files.iter().all(|(path, _)| path.starts_with("/a b/opencode")));
        assert_eq!(launch.arguments.last().unwrap(), "/a b/opencode/config/opencode");
        let line = format!("{:?}", launch.arguments);
        for hidden in ["THE RULES", "THE PROMPT", "SECRET"] {
            assert!(!line.contains(hidden), "{hidden} is on the command line");
        }
        assert!(!files["/a b/opencode/opencode.json"].contains("THE RULES"));
        assert!(files.values().all(|text| !text.contains("SECRET")));
        assert_eq!(launch.environment[TOKEN], "SECRET");
        assert_eq!(launch.environment["OPENCODE_DISABLE_PROJECT_CONFIG"], "1");
    }
}
