//! A gateway with a scripted model, a workspace, and agents that are driven
//! line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use blueflame_core::money::{Budget, Spend};
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::recording::Recording;
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::Upstream;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A test that waits this long waits for something that will not happen.
const HOPELESS: Duration = Duration::from_secs(60);

pub struct Stage {
    dir: TempDir,
    token: String,
    // Closed before the runtime goes.
    _gateway: Gateway,
    _runtime: Runtime,
}

impl Stage {
    pub fn new(script: &str) -> Stage {
        Stage::with_budget(script, Budget::Unlimited)
    }

    pub fn with_budget(script: &str, cap: Budget) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let (script, warnings) = Script::read(script.as_bytes()).unwrap();
        assert_eq!(warnings, []);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let token = Token::generate().unwrap();
        let text = token.reveal().to_owned();
        let mut settings = Settings::new(Upstream::Script(Arc::new(script)));
        settings.recording = Some(Recording::open(&dir.path().join("traffic")).unwrap());
        let allowance = Allowance::new(cap, Budget::Unlimited, Spend::default());
        let guard = runtime.enter();
        let listener = Listener::unix(&dir.path().join("socket")).unwrap();
        let (gateway, _) = Gateway::start(listener, token, allowance, settings);
        drop(guard);
        Stage { dir, token: text, _gateway: gateway, _runtime: runtime }
    }

    /// Where the agent works.
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The requests that reached the model and were answered to their end.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("traffic")).unwrap();
        let exchange = |line: &str| serde_json::from_str::<Value>(line).unwrap()["request"].take();
        text.lines().map(exchange).collect()
    }

    /// Starts an agent that is told who judges, and given this much time to
    /// judge, in seconds.
    pub fn agent(&self, arguments: &[&str]) -> Agent {
        let mut agent = self.unjudged(arguments);
        agent.initialize(60.0);
        agent
    }

    /// Starts an agent that is not told who judges.
    pub fn unjudged(&self, arguments: &[&str]) -> Agent {
        let socket = self.dir.path().join("socket");
        let environment = [
            ("ANTHROPIC_UNIX_SOCKET", socket.to_str().unwrap()),
            ("ANTHROPIC_AUTH_TOKEN", self.token.as_str()),
        ];
        Agent::start(&self.workspace(), &self.dir.path().join("home"), &environment, arguments)
    }
}

/// An agent process, seen from the attempt process.
pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    deaf: Arc<AtomicBool>,
    /// Everything it has said.
    pub events: Vec<Value>,
}

impl Agent {
    pub fn start(
        workspace: &Path,
        home: &Path,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Agent {
        let mut child = Command::new(env!("CARGO_BIN_EXE_blueflame"))
            .args(["__agent", "--model", "m1", "--retry-base-ms", "1"])
            .args(arguments)
            .current_dir(workspace)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let deaf = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&deaf);
        std::thread::spawn(move || read_lines(stdout, &sender, &stop));
        let stdin = child.stdin.take();
        Agent { child, stdin, lines, deaf, events: Vec::new() }
    }

    pub fn initialize(&mut self, timeout: f64) {
        self.send(&json!({"type": "control_request", "request_id": "r1", "request": {
            "subtype": "initialize",
            "hooks": {"PreToolUse": [{"matcher": "*", "hookCallbackIds": ["cb1"], "timeout": timeout}]},
        }}));
        let answer = self.next();
        let expected = json!({"type": "control_response",
            "response": {"subtype": "success", "request_id": "r1", "response": {}}});
        assert_eq!(answer, expected);
    }

    pub fn prompt(&mut self, text: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    pub fn interrupt(&mut self) {
        self.send(&json!({"type": "control_request", "request_id": "stop",
            "request": {"subtype": "interrupt"}}));
    }

    pub fn send(&mut self, line: &Value) {
        self.send_text(&line.to_string());
    }

    pub fn send_text(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Nobody reads any more.
    pub fn close_stdout(&mut self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    pub fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(HOPELESS);
        let line = line.unwrap_or_else(|error| panic!("{error} after {:#?}", self.events));
        let event: Value = serde_json::from_str(&line).unwrap();
        self.events.push(event.clone());
        event
    }

    /// The next event of a kind.
    pub fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next();
            if fits(&event) {
                return event;
            }
            assert_ne!(event["type"], "result", "{:#?}", self.events);
        }
    }

    /// The next tool call that is put to the judge.
    pub fn question(&mut self) -> Value {
        self.until(|event| event["request"]["subtype"] == "hook_callback")
    }

    pub fn answer(&mut self, question: &Value, decision: &str, reason: &str) {
        self.send(&verdict(question["request_id"].as_str().unwrap(), decision, reason));
    }

    /// Judges each call by its name and input until the run has ended: `None`
    /// permits, a reason denies.
    pub fn judge(&mut self, judge: impl Fn(&str, &Value) -> Option<&'static str>) -> Value {
        loop {
            let event = self.next();
            if event["type"] == "result" {
                return event;
            }
            if event["request"]["subtype"] == "hook_callback" {
                let call = &event["request"]["input"];
                match judge(call["tool_name"].as_str().unwrap(), &call["tool_input"]) {
                    None => self.answer(&event, "allow", ""),
                    Some(reason) => self.answer(&event, "deny", reason),
                }
            }
        }
    }

    pub fn allow_all(&mut self) -> Value {
        self.judge(|_, _| None)
    }

    pub fn result(&mut self) -> Value {
        self.until(|event| event["type"] == "result")
    }

    /// Ends the input and waits for the exit code.
    pub fn finish(&mut self) -> i32 {
        self.close_stdin();
        self.exit_code()
    }

    pub fn exit_code(&mut self) -> i32 {
        let start = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < HOPELESS, "it does not end: {:#?}", self.events);
            std::thread::sleep(Duration::from_millis(2));
        };
        status.code().unwrap_or_else(|| panic!("{status}"))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The results of tool calls so far: their texts, and whether they are
    /// errors.
    pub fn told(&self) -> Vec<(String, bool)> {
        let results = self.events.iter().filter(|event| event["type"] == "user");
        let results = results.flat_map(|event| event["message"]["content"].as_array().unwrap());
        results
            .map(|result| {
                let text = result["content"].as_str().unwrap().to_owned();
                (text, result["is_error"].as_bool().unwrap())
            })
            .collect()
    }

    pub fn of_subtype(&self, subtype: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["subtype"] == subtype).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands over lines until there are no more, or nobody listens.
fn read_lines(mut stdout: BufReader<ChildStdout>, lines: &Sender<String>, deaf: &AtomicBool) {
    let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    loop {
        if stdout.buffer().is_empty() {
            let mut watched = [PollFd::new(stdout.get_ref(), PollFlags::IN)];
            let ready = poll(&mut watched, Some(&moment)).unwrap();
            if deaf.load(Ordering::Relaxed) {
                return;
            }
            if ready == 0 {
                continue;
            }
        }
        let mut line = String::new();
        if stdout.read_line(&mut line).unwrap() == 0 || lines.send(line).is_err() {
            return;
        }
    }
}

pub fn verdict(request: &str, decision: &str, reason: &str) -> Value {
    json!({"type": "control_response", "response": {
        "subtype": "success",
        "request_id": request,
        "response": {"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }},
    }})
}

/// Whether a process is there and does anything.
pub fn is_alive(id: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z")
}

/// Waits until a process is gone.
pub fn until_gone(id: &str) {
    let start = std::time::Instant::now();
    while is_alive(id) {
        assert!(start.elapsed() < HOPELESS, "process {id} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
