//! The corpus: every case that the sandbox must decide, tried inside it.

use std::process::{Child, Command, Stdio};

use blueflame::sandbox::Limits;
use serde_json::Value;

use crate::cage::{Cage, attempts, everything};

const CASES: &str = include_str!("../../../core/tests/policy/cases.json");

/// A process of the person's that has to live on.
struct Canary(Child);

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_sandbox_case_of_the_corpus_is_decided_as_expected() {
    if attempts().is_none() {
        return;
    }
    let corpus: Value = serde_json::from_str(CASES).unwrap();
    let sleeper = Command::new("sleep").arg("4700").stdin(Stdio::null()).spawn().unwrap();
    let mut canary = Canary(sleeper);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for case in corpus["cases"].as_array().unwrap() {
        if case["run"] != "sandbox" {
            continue;
        }
        count += 1;
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let command = case["tool_input"]["command"].as_str().unwrap();
        let mut cage = Cage::new();
        cage.terms.limits = Limits {
            memory_mb: Some(1024),
            cpu_seconds: Some(60),
            file_mb: Some(50),
            open_files: Some(1024),
            processes: Some(256),
        };
        let outcome = cage.run(everything(), command);
        let held = match text("expected") {
            "deny" => !outcome.stdout.contains("PWNED"),
            "allow" => outcome.stdout.contains(text("must")),
            "contain" => true,
            other => panic!("what is `{other}`?"),
        };
        let intact = cage.run_outside(
            "git -C {REPO} fsck --no-dangling && test -z \"$(git -C {REPO} status --porcelain -uno)\" \
             && test -e {OTHER}/src/theirs.txt && test ! -s {HUMAN}/.bashrc",
        );
        let survivors = cage.run_outside("! pgrep -f 'sleep 471[0-9]'");
        if !held || !intact || !survivors || canary.0.try_wait().unwrap().is_some() {
            let (out, err) = (shortened(&outcome.stdout), shortened(&outcome.stderr));
            let id = text("id");
            wrong.push(format!("{id} held {held}, intact {intact}: {command}\n{out}\n{err}"));
        }
    }
    assert!(count >= 60, "only {count} cases");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
}

fn shortened(text: &str) -> String {
    text.chars().take(500).collect()
}

impl Cage {
    fn run_outside(&self, command: &str) -> bool {
        let mut shell = self.env.command("/bin/sh");
        shell.arg("-c").arg(self.filled(command)).stdout(Stdio::null()).stderr(Stdio::null());
        shell.status().unwrap().success()
    }
}
