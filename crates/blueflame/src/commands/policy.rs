//! `blueflame policy check`: what would happen to tool calls, and why.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::ops::ControlFlow;

use crate::stderr::eprintln;
use blueflame_core::ids::Role;
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::{Decision, Policy, PolicyRules, Rule, Scope, ToolCall, Verdict};
use serde::Serialize;

use crate::cli::{self, Common, PolicyCheck, RoleName};
use crate::config_file;
use crate::failure::{Failure, Kind};
use crate::ground::RealGround;
use crate::stdout;

/// The longest line that is read; longer ones are denied.
const LONGEST: u64 = 16 * 1024 * 1024;

/// A verdict as it is printed.
#[derive(Serialize)]
struct Line<'v> {
    decision: Decision,
    rule: &'v str,
    details: &'v str,
}

pub fn run(command: &cli::Policy, common: &Common) -> Result<(), Failure> {
    match command {
        cli::Policy::Check(arguments) => check(arguments, common),
    }
}

fn check(arguments: &PolicyCheck, common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let role = match arguments.role {
        RoleName::Planner => Role::Planner,
        RoleName::Worker => Role::Worker,
        RoleName::Validator => Role::Validator,
        RoleName::Merger => Role::Merger,
    };
    let locks = locks(&arguments.locks)?;
    let mut rules = PolicyRules::of(&loaded.config, role, &locks);
    if locks.is_empty() {
        rules.scope = Scope::Everything;
    }
    let policy = Policy::new(rules).map_err(|error| Failure::new(Kind::Internal, error))?;
    let ground =
        RealGround::new(&loaded.repository).map_err(|error| Failure::new(Kind::Missing, error))?;
    if arguments.prove_examples {
        prove(&policy)?;
        if io::stdin().is_terminal() {
            return Ok(());
        }
    }
    judge_lines(|call| policy.judge(call, &ground))
}

fn locks(written: &[String]) -> Result<Vec<LockPath>, Failure> {
    let lock = |text: &String| {
        LockPath::new(text).map_err(|why| {
            Failure::new(Kind::Usage, format!("`{text}` is not a path to lock: {why}"))
                .hint("give files or directories of the repository, such as --locks src/auth,docs")
        })
    };
    written.iter().map(lock).collect()
}

fn prove(policy: &Policy) -> Result<(), Failure> {
    let proofs = policy.prove();
    let failed: Vec<_> = proofs.iter().filter(|proof| !proof.holds()).collect();
    for proof in &failed {
        let expected = match proof.example.expected {
            Decision::Allow => "allowed",
            Decision::Deny => "denied",
        };
        let Verdict { rule, details, target, .. } = &proof.verdict;
        eprintln!("example   `{target}` should be {expected}: {rule}: {details}");
    }
    if failed.is_empty() {
        eprintln!("examples  all {} hold", proofs.len());
        return Ok(());
    }
    let message = format!("{} of {} examples do not hold", failed.len(), proofs.len());
    Err(Failure::new(Kind::Usage, message)
        .hint("a command that is listed but can never run has to be written otherwise"))
}

fn judge_lines(judge: impl Fn(&ToolCall) -> Verdict) -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| {
            Failure::new(Kind::Usage, format!("standard input cannot be read: {error}"))
        })?;
        if read == 0 {
            return Ok(());
        }
        let whole = bytes.ends_with(b"\n") || read as u64 != LONGEST;
        if !whole {
            input.skip_until(b'\n').map_err(|error| Failure::new(Kind::Usage, error))?;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let verdict = match serde_json::from_slice::<ToolCall>(&bytes) {
            _ if !whole => unreadable("the line is longer than 16 MiB"),
            Ok(call) => judge(&call),
            Err(error) => unreadable(&error.to_string()),
        };
        let Verdict { decision, rule, details, .. } = &verdict;
        let line = serde_json::to_string(&Line { decision: *decision, rule, details })
            .map_err(|error| Failure::new(Kind::Internal, error))?;
        if let ControlFlow::Break(end) = stdout::write_on(&format!("{line}\n")) {
            return end;
        }
    }
}

fn unreadable(why: &str) -> Verdict {
    let details = format!(
        "this is no tool call: {why}. Send one JSON object a line, with tool_name and tool_input."
    );
    Verdict::denied(Rule::ToolInput, "", details)
}
