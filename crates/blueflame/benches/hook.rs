//! What a hook costs: the time of a whole process for one tool call, of
//! `blueflame __hook` and of other hooks that could stand in its place, all
//! measured in one run, in turns.
//!
//! `blueflame __hook` asks the endpoint that an attempt process has, where the
//! policy judges the call. The others judge for themselves, with one regular
//! expression. Against all of them: a program that does nothing.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made should stop")]
#![expect(clippy::print_stdout, reason = "its figures are for the person who asked")]

#[path = "parts/mod.rs"]
mod parts;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blueflame::attempt::endpoint::{Asked, Endpoint};
use blueflame::executor::Ruling;
use blueflame::ground::RealGround;
use blueflame::hook::wire::Dialect;
use blueflame_core::config;
use blueflame_core::ids::Role;
use blueflame_core::policy::{Policy, PolicyRules, ToolCall};
use parts::{hooks, programs};

const ROUNDS: usize = 400;

const SHELL: &str = r#"#!/bin/bash
event=$(cat)
command=$(jq -r '.tool_input.command // ""' <<< "$event")
if [[ $command =~ git[[:space:]]+push ]]; then
  jq -cn '{hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny"}}'
  exit 2
fi
"#;

const PYTHON: &str = r#"#!/usr/bin/env python3
import json, re, sys
command = json.load(sys.stdin)["tool_input"]["command"]
if re.search(r"git\s+push", command):
    print(json.dumps({"hookSpecificOutput": {"permissionDecision": "deny"}}))
    sys.exit(2)
"#;

struct Contender {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    times: Vec<Duration>,
}

fn main() {
    // What `cargo test --benches` asks for is not a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let socket = place.path().join("hook");
    let workspace = place.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    serve(&socket, &workspace);
    let own = std::process::id().to_string();
    let arguments = ["__hook", "codex", socket.to_str().unwrap(), &own, "PROOF"];
    let contender = |name, program: PathBuf, arguments: &[&str]| Contender {
        name,
        program,
        arguments: arguments.iter().map(ToString::to_string).collect(),
        times: Vec::with_capacity(ROUNDS),
    };
    let blueflame = Path::new(env!("CARGO_BIN_EXE_blueflame"));
    let mut contenders = vec![
        contender(
            "an empty program",
            programs::installed(&programs::empty(place.path()), place.path()),
            &[],
        ),
        contender("blueflame __hook", programs::installed(blueflame, place.path()), &arguments),
        contender("bash and jq", hooks::script(place.path(), "shell", SHELL), &[]),
        contender("python", python(place.path()), &[]),
    ];
    let event = serde_json::json!({
        "session_id": "s", "turn_id": "t", "cwd": workspace, "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "git status && echo done"},
        "tool_use_id": "call_1",
    })
    .to_string();
    for round in 0..ROUNDS + 20 {
        // In turns, and each first once in a while.
        let count = contenders.len();
        for at in 0..count {
            let contender = &mut contenders[(round + at) % count];
            let time = once(contender, event.as_bytes());
            if round >= 20 {
                contender.times.push(time);
            }
        }
    }
    print(&mut contenders);
}

fn once(contender: &Contender, event: &[u8]) -> Duration {
    let mut command = Command::new(&contender.program);
    command
        .args(&contender.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    // An empty program does not read.
    let _ = child.stdin.take().unwrap().write_all(event);
    let status = child.wait().unwrap();
    let time = begun.elapsed();
    assert!(status.success(), "{}: {status}", contender.name);
    time
}

/// The endpoint of an attempt process, with the policy behind it.
fn serve(socket: &Path, workspace: &Path) {
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let policy = Policy::new(PolicyRules::of(&config, Role::Worker, &[])).unwrap();
    let ground = RealGround::new(workspace).unwrap();
    let socket = socket.to_owned();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listening = Endpoint::listen(&socket, Dialect::Codex, "PROOF".to_owned());
            let (_endpoint, mut asked) = listening.unwrap();
            tell.send(()).unwrap();
            while let Some(Asked { event, reply }) = asked.recv().await {
                let call: ToolCall = serde_json::from_value(event).unwrap();
                let verdict = policy.judge(&call, &ground);
                assert!(verdict.is_allowed(), "{verdict:?}");
                let _ = reply.send(Ruling::Allow);
            }
        });
    });
    told.recv().unwrap();
}

/// The interpreter itself: what stands before it in `PATH` may be a script that
/// looks for one.
fn python(place: &Path) -> PathBuf {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    let text = PYTHON.replacen("/usr/bin/env python3", found.trim(), 1);
    hooks::script(place, "python", &text)
}

fn print(contenders: &mut [Contender]) {
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!("{ROUNDS} calls each, in turns; the time of the whole process");
    println!("| hook | median | 10 % | 90 % | against an empty program |");
    println!("|---|---|---|---|---|");
    let mut least = None;
    for contender in contenders {
        contender.times.sort_unstable();
        let at = |share: usize| ms(contender.times[contender.times.len() * share / 100]);
        let median = at(50);
        let empty = *least.get_or_insert(median);
        println!(
            "| {} | {median:.2} ms | {:.2} ms | {:.2} ms | {:.2} |",
            contender.name,
            at(10),
            at(90),
            median / empty
        );
    }
}
