//! What claude does when nobody judges its calls: nothing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use blueflame::executor::{self, Ground};
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::Upstream;
use serde_json::{Value, json};

use crate::stage::{Agent, Stage};

/// All of these are allowed by default, inside the workspace.
const READS: &str = "
replies:
  - when: {turn: 0}
    call:
      - {tool: Read, input: {file_path: README.md}}
      - {tool: Glob, input: {pattern: '*.md'}}
      - {tool: Grep, input: {pattern: project, output_mode: content}}
      - {tool: Bash, input: {command: cat README.md}}
  - say: Done.
";

/// A gateway that serves a script at a socket.
fn serve(script: &'static str, socket: &Path) -> String {
    let socket = socket.to_owned();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (script, _) = Script::read(script.as_bytes()).unwrap();
            let token = Token::generate().unwrap();
            let text = token.reveal().to_owned();
            let (_gateway, mut facts) = Gateway::start(
                Listener::unix(&socket).unwrap(),
                token,
                Allowance::unlimited(),
                Settings::new(Upstream::Script(script.into())),
            );
            tell.send(text).unwrap();
            while facts.recv().await.is_some() {}
        });
    });
    told.recv().unwrap()
}

/// Runs claude as the executor has it, with `judge` in the place of the attempt
/// process; `None` closes its input. What its calls came to.
fn results(judge: fn(&Value) -> Option<Value>, at_once: bool) -> Option<Vec<(bool, String)>> {
    let stage = Stage::new(Agent::Claude)?;
    let sockets = tempfile::tempdir_in("/tmp").unwrap();
    let socket = sockets.path().join("gateway");
    let token = serve(READS, &socket);
    let [home, tmp, files] = ["claude-home", "claude-tmp", "claude-files"].map(|name| {
        let path = stage.env.path(name);
        fs::create_dir(&path).unwrap();
        path
    });
    let claude = executor::named("claude").unwrap();
    let launch = claude.launch(
        &stage.spec.order,
        &Ground {
            program: &stage.spec.program,
            home: &home,
            tmp: &tmp,
            files: &files,
            workspace: &stage.workspace,
            gateway: &socket,
            port: None,
            hook: None,
            token: &token,
            login: None,
        },
    );
    for (path, text) in &launch.files {
        fs::write(path, text).unwrap();
    }
    let mut child = Command::new(&launch.program)
        .args(&launch.arguments)
        .env_clear()
        .env("PATH", &stage.spec.path)
        .env("HOME", &home)
        .envs(&launch.environment)
        .current_dir(&stage.workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take();
    let say = |stdin: &mut Option<ChildStdin>, line: &Value| {
        if let Some(stdin) = stdin {
            writeln!(stdin, "{line}").unwrap();
        }
    };
    let hook = json!({"matcher": "*", "hookCallbackIds": ["judge"], "timeout": 60});
    let request = json!({"subtype": "initialize", "hooks": {"PreToolUse": [hook]}});
    let open = json!({"type": "control_request", "request_id": "open", "request": request});
    say(&mut stdin, &open);
    let process = blueflame::process_tree::identify(child.id()).unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(60));
        let _ = blueflame::process_tree::signal(&process, rustix::process::Signal::KILL);
    });
    let mut results = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(event) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        match event["type"].as_str() {
            Some("control_response") => {
                let message = json!({"role": "user", "content": "Read everything."});
                say(&mut stdin, &json!({"type": "user", "message": message}));
                if at_once {
                    stdin = None;
                }
            }
            Some("control_request") => match judge(&event) {
                Some(answer) => say(&mut stdin, &answer),
                None => stdin = None,
            },
            Some("user") => {
                for block in event["message"]["content"].as_array().into_iter().flatten() {
                    if block["type"] == "tool_result" {
                        let failed = block["is_error"] == true;
                        results.push((failed, block["content"].to_string()));
                    }
                }
            }
            Some("result") => stdin = None,
            _ => {}
        }
    }
    child.wait().unwrap();
    Some(results)
}

fn all_denied(results: &[(bool, String)]) {
    assert_eq!(results.len(), 4, "{results:?}");
    for (failed, content) in results {
        assert!(*failed && !content.contains("A project"), "{content}");
    }
}

#[test]
fn when_its_input_is_closed_it_may_not_even_read() {
    let Some(results) = results(|_| None, true) else { return };
    all_denied(&results);
}

#[test]
fn when_every_answer_is_an_error_it_may_not_even_read() {
    let broken = |event: &Value| {
        let id = &event["request_id"];
        let response = json!({"subtype": "error", "request_id": id, "error": "broken"});
        Some(json!({"type": "control_response", "response": response}))
    };
    let Some(results) = results(broken, false) else { return };
    all_denied(&results);
}
