//! The key of the provider is nowhere that an agent could find it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use blueflame::attempt::messages::Report;
use blueflame::attempt::spec::Secrets;
use blueflame::process_tree;
use blueflame_core::config;
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::recording::Recording;
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::Upstream;

use serde_json::Value;

use crate::stage::{Agent, Stage};

/// A provider on loopback that accepts one key; its address and that key. The
/// requests that came with the key are recorded.
fn provider(script: &str, recording: &Path) -> (String, String) {
    let (script, _) = Script::read(script.as_bytes()).unwrap();
    let recording = Recording::open(recording).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let token = Token::generate().unwrap();
            let key = token.reveal().to_owned();
            let (_gateway, mut facts) = Gateway::start(
                Listener::Tcp(listener),
                token,
                Allowance::unlimited(),
                Settings {
                    recording: Some(recording),
                    ..Settings::new(Upstream::Script(script.into()))
                },
            );
            tell.send((address, key)).unwrap();
            while facts.recv().await.is_some() {}
        });
    });
    told.recv().unwrap()
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

fn holds(bytes: &[u8], key: &str) -> bool {
    bytes.windows(key.len()).any(|window| window == key.as_bytes())
}

const ESRCH: i32 = 3;

/// How many processes of an agent can be looked into, by its home.
fn readable_processes(home: &Path) -> usize {
    let home = format!("HOME={}", home.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let environments = entries.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.filter(|it| it.split(|byte| *byte == 0).any(|it| it == home.as_bytes())).count()
}

/// What can be seen from outside of every process: environment and command line.
fn seen_of_processes(key: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.parse::<u32>().is_err() || name == own {
            continue;
        }
        for part in ["environ", "cmdline"] {
            let bytes = match fs::read(entry.path().join(part)) {
                Ok(bytes) => bytes,
                // It is gone.
                Err(error) if error.raw_os_error() == Some(ESRCH) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    // What we started has to be looked at; the rest of the
                    // machine, where that is allowed.
                    let root = rustix::process::geteuid().is_root();
                    let ours = name.parse().is_ok_and(|pid| !process_tree::is_outside(pid));
                    assert!(!(root && ours), "{part} of {name} cannot be read: {error}");
                    continue;
                }
            };
            if holds(&bytes, key) {
                found.push(format!("{part} of {name}"));
            }
        }
    }
    found
}

const WRITES: &str = "
replies:
  - when: {role: worker, turn: 0}
    call: [{tool: Write, input: {file_path: hello.txt, content: hello}}]
  # The agent is still there while its processes are looked at.
  - say: Done.
    delay: 5s
";

/// The prompts that a provider got to see.
fn received(recording: &Path) -> Vec<String> {
    let text = fs::read_to_string(recording).unwrap();
    let exchanges = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = |exchange: Value| {
        ["messages", "input"].map(|part| exchange["request"][part].to_string()).concat()
    };
    exchanges.map(said).collect()
}

fn the_key_is_in_no_environment_file_prompt_or_log(agent: Agent) {
    let Some(mut stage) = Stage::new(agent) else { return };
    let recording = tempfile::NamedTempFile::new().unwrap();
    let (address, key) = provider(WRITES, recording.path());
    stage.secrets = Secrets { credential: Some(key.clone()) };
    stage.spec.model.gateway.upstream = config::Upstream::Url(address);
    let home = stage.directory().home();
    let mut looked = 0;
    let run = stage.run_with(|report| {
        if matches!(report, Report::Judged { .. }) {
            looked += 1;
            assert_eq!(seen_of_processes(&key), Vec::<String>::new());
            let agents = readable_processes(&home);
            assert!(agents > 0, "no process of the agent was looked at");
        }
        None
    });
    // The provider accepted the key, so it was there to be found.
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert!(looked > 0 && run.sealed.spend.usage.total() > 0);
    let prompts = received(recording.path());
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    assert!(prompts.iter().all(|prompt| prompt.contains("Do the task.") && !prompt.contains(&key)));
    let files = files(run.stage.env.root());
    for name in ["traffic.jsonl", "output.jsonl", "audit.jsonl", "result.json", "spec.json"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name} was not searched");
    }
    for file in files {
        assert!(!holds(&fs::read(&file).unwrap(), &key), "the key is in {}", file.display());
    }
    for report in &run.reports {
        assert!(!format!("{report:?}").contains(&key));
    }
}

#[test]
fn the_key_is_nowhere_with_claude() {
    the_key_is_in_no_environment_file_prompt_or_log(Agent::Claude);
}

#[test]
fn the_key_is_nowhere_with_codex() {
    the_key_is_in_no_environment_file_prompt_or_log(Agent::Codex);
}

#[test]
fn the_key_is_nowhere_with_opencode() {
    the_key_is_in_no_environment_file_prompt_or_log(Agent::Opencode);
}

#[test]
fn the_key_is_nowhere_with_the_embedded_agent() {
    the_key_is_in_no_environment_file_prompt_or_log(Agent::Embedded);
}

#[test]
fn with_passthrough_claude_shows_the_persons_own_login() {
    let Some(mut stage) = Stage::new(Agent::Claude) else { return };
    let recording = tempfile::NamedTempFile::new().unwrap();
    // This provider takes nothing else: a request with our token would fail.
    let (address, login) = provider(WRITES, recording.path());
    stage.secrets = Secrets { credential: Some(login.clone()) };
    stage.spec.model.gateway.upstream = config::Upstream::Url(address);
    stage.spec.model.gateway.passthrough_auth = true;
    let run = stage.run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!(run.file("hello.txt").as_deref(), Some("hello"));
    assert_eq!(received(recording.path()).len(), 2);
    assert!(run.sealed.spend.usage.total() > 0, "what it used was not counted");
    // Even so, it is in nothing that is kept.
    for name in ["spec.json", "result.json", "traffic.jsonl", "audit.jsonl", "reports.jsonl"] {
        let file = run.stage.directory().root().join(name);
        assert!(!holds(&fs::read(&file).unwrap(), &login), "the login is in {name}");
    }
}

#[test]
fn the_search_finds_what_is_there() {
    let stage = Stage::with_program("embedded", Path::new("/bin/true"));
    fs::write(stage.env.path("note"), "my key is MARKER-1234").unwrap();
    let found = files(stage.env.root());
    assert!(found.iter().any(|file| holds(&fs::read(file).unwrap(), "MARKER-1234")));
    let marker = format!("MARKER-{}-5678", std::process::id());
    let mut child = stage.env.command("sleep").arg("60").env("SECRET", &marker).spawn().unwrap();
    assert_eq!(seen_of_processes(&marker), [format!("environ of {}", child.id())]);
    child.kill().unwrap();
    child.wait().unwrap();
}
