//! The key of the provider is nowhere that an agent could find it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use blueflame::attempt::messages::Report;
use blueflame::attempt::spec::Secrets;
use blueflame_core::config;
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::Upstream;

use crate::stage::{Agent, Stage};

/// A provider on loopback that accepts one key; its address and that key.
fn provider(script: &str) -> (String, String) {
    let (script, _) = Script::read(script.as_bytes()).unwrap();
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
                Settings::new(Upstream::Script(script.into())),
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
            let bytes = fs::read(entry.path().join(part)).unwrap_or_default();
            if holds(&bytes, key) {
                found.push(format!("{part} of {name}"));
            }
        }
    }
    found
}

fn the_key_is_in_no_environment_file_prompt_or_log(agent: Agent) {
    let Some(mut stage) = Stage::new(agent) else { return };
    let (address, key) = provider(
        "
replies:
  - when: {role: worker, turn: 0}
    call: [{tool: Write, input: {file_path: hello.txt, content: hello}}]
  - say: Done.
",
    );
    stage.secrets = Secrets { credential: Some(key.clone()) };
    stage.spec.model.gateway.upstream = config::Upstream::Url(address);
    let mut looked = 0;
    let run = stage.run_with(|report| {
        if matches!(report, Report::Judged { .. }) {
            looked += 1;
            assert_eq!(seen_of_processes(&key), Vec::<String>::new());
        }
        None
    });
    // The provider accepted the key, so it was there to be found.
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert!(looked > 0 && run.sealed.spend.usage.total() > 0);
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
fn the_key_is_nowhere_with_the_embedded_agent() {
    the_key_is_in_no_environment_file_prompt_or_log(Agent::Embedded);
}

#[test]
fn the_search_finds_what_is_there() {
    let stage = Stage::with_program("embedded", Path::new("/bin/true"));
    fs::write(stage.env.path("note"), "my key is MARKER-1234").unwrap();
    let found = files(stage.env.root());
    assert!(found.iter().any(|file| holds(&fs::read(file).unwrap(), "MARKER-1234")));
    let mut child =
        stage.env.command("sleep").arg("60").env("SECRET", "MARKER-5678").spawn().unwrap();
    assert_eq!(seen_of_processes("MARKER-5678"), [format!("environ of {}", child.id())]);
    child.kill().unwrap();
    child.wait().unwrap();
}
