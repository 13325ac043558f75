//! A program in the place of claude, so that nothing but the verdict is measured.
//!
//! It speaks claude's control protocol over its standard streams with the attempt
//! process that started it, exactly as claude does, and asks about one call after
//! the other. Between these it runs hooks, each as a process, turn by turn.

use std::fs;
use std::io::{BufRead, Lines, StdinLock, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What it is to do and what came of it, in files of its workspace.
pub const ORDERS: &str = "orders.json";
pub const MEASURED: &str = "measured.json";

#[derive(Serialize, Deserialize)]
pub struct Orders {
    pub verdicts: usize,
    pub hooks: Vec<Hook>,
}

/// A hook that runs after each verdict whose number this divides.
#[derive(Serialize, Deserialize)]
pub struct Hook {
    pub program: PathBuf,
    pub every: usize,
}

/// The times of the verdicts, and those of each hook.
#[derive(Serialize, Deserialize)]
pub struct Measured {
    pub verdicts: Vec<Duration>,
    pub hooks: Vec<Vec<Duration>>,
}

/// Whether this process was started in the place of claude.
pub fn is_asked_for() -> bool {
    std::env::args().any(|argument| argument == "--permission-prompt-tool")
}

pub fn play() {
    let here = std::env::current_dir().unwrap();
    let orders: Orders = serde_json::from_slice(&fs::read(ORDERS).unwrap()).unwrap();
    let mut told = std::io::stdin().lock().lines();
    assert_eq!(hear(&mut told)["request"]["subtype"], "initialize");
    let opened = json!({"subtype": "success", "request_id": "open", "response": {}});
    say(&json!({"type": "control_response", "response": opened}));
    assert_eq!(hear(&mut told)["type"], "user");
    let mut measured =
        Measured { verdicts: Vec::new(), hooks: orders.hooks.iter().map(|_| Vec::new()).collect() };
    for number in 0..orders.verdicts {
        let (call, event) = call(number, &here);
        measured.verdicts.push(verdict(&mut told, &call, &event));
        for (hook, times) in orders.hooks.iter().zip(&mut measured.hooks) {
            if number % hook.every == 0 {
                times.push(process(&hook.program, &event));
            }
        }
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": "x"});
        say(&json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }
    fs::write(MEASURED, serde_json::to_vec(&measured).unwrap()).unwrap();
    say(&json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done."}));
}

/// What claude says of a call, the same for a hook and over its streams.
fn call(number: usize, here: &Path) -> (String, Value) {
    let call = format!("call-{number}");
    let event = json!({
        "session_id": "s", "transcript_path": here.join("t.jsonl"), "cwd": here,
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Read",
        "tool_input": {"file_path": here.join("README.md")}, "tool_use_id": call,
    });
    (call, event)
}

/// Claude asks twice about each call: its hook, and whether it may.
fn verdict(told: &mut Lines<StdinLock<'_>>, call: &str, event: &Value) -> Duration {
    let begun = Instant::now();
    let hook = json!({
        "subtype": "hook_callback", "callback_id": "judge", "input": event, "tool_use_id": call,
    });
    say(&json!({"type": "control_request", "request_id": call, "request": hook}));
    let judged = hear(told);
    let permission = json!({
        "subtype": "can_use_tool", "tool_name": event["tool_name"],
        "input": event["tool_input"], "tool_use_id": call,
    });
    let second = format!("{call}-again");
    say(&json!({"type": "control_request", "request_id": second, "request": permission}));
    let permitted = hear(told);
    let time = begun.elapsed();
    let output = &judged["response"]["response"]["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "allow", "{judged}");
    assert_eq!(permitted["response"]["request_id"], second);
    assert_eq!(permitted["response"]["response"]["behavior"], "allow", "{permitted}");
    time
}

fn process(program: &Path, event: &Value) -> Duration {
    let event = event.to_string();
    let begun = Instant::now();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // An empty program does not read.
    let _ = child.stdin.take().unwrap().write_all(event.as_bytes());
    let status = child.wait_with_output().unwrap().status;
    let time = begun.elapsed();
    assert!(status.success(), "{}: {status}", program.display());
    time
}

fn say(line: &Value) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

fn hear(told: &mut Lines<StdinLock<'_>>) -> Value {
    serde_json::from_str(&told.next().unwrap().unwrap()).unwrap()
}
