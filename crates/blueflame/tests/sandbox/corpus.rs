//! The corpus: every case that the sandbox must decide, tried inside it, in both
//! tiers, by root and by an ordinary user.

use std::process::{Child, Command, Stdio};

use blueflame::process_tree;
use blueflame::sandbox::Tier;
use serde_json::Value;

use crate::cage::{Cage, attempts, everything, tight};

const CASES: &str = include_str!("../../../core/tests/policy/cases.json");

/// A process of the person's that has to live on.
struct Canary(Child);

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the weaker tier is known not to hold, with the reason that
/// docs/sandbox.md gives.
const NOT_BY_LANDLOCK: [(&str, &str); 8] = [
    ("fs-019", "the workspace's own git directory can be moved"),
    ("fs-020", "the workspace's own git directory can be removed"),
    ("fs-032", "modes and dates of the user's files can be changed"),
    ("fs-033", "modes and dates of the user's files can be changed"),
    ("git-013", "the workspace's own git settings can be written"),
    ("git-015", "the workspace's own git directory can be moved"),
    ("net-023", "there is no /tmp"),
    ("proc-013", "names of processes can be seen"),
];

/// The same for root.
const NOT_FOR_ROOT: [(&str, &str); 1] = [("fs-026", "root stays root, without capabilities")];

#[test]
fn every_sandbox_case_of_the_corpus_is_decided_as_expected() {
    every_case(Tier::Namespaces, Cage::new);
}

#[test]
fn every_sandbox_case_is_decided_for_an_ordinary_user_as_well() {
    if Cage::of_ordinary_user().is_some() {
        every_case(Tier::Namespaces, || Cage::of_ordinary_user().unwrap());
    }
}

#[test]
fn every_sandbox_case_but_the_known_ones_is_held_by_the_weaker_tier() {
    every_case(Tier::Landlock, Cage::new);
}

#[test]
fn and_by_the_weaker_tier_for_an_ordinary_user() {
    if Cage::of_ordinary_user().is_some() {
        every_case(Tier::Landlock, || Cage::of_ordinary_user().unwrap());
    }
}

fn every_case(tier: Tier, cage: impl Fn() -> Cage) {
    if attempts().is_none() {
        return;
    }
    let corpus: Value = serde_json::from_str(CASES).unwrap();
    let sleeper = Command::new("sleep").arg("4700").stdin(Stdio::null()).spawn().unwrap();
    let mut canary = Canary(sleeper);
    let (mut wrong, mut count, mut gaps) = (Vec::new(), 0, 0);
    for case in corpus["cases"].as_array().unwrap() {
        if case["run"] != "sandbox" {
            continue;
        }
        count += 1;
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let command = case["tool_input"]["command"].as_str().unwrap();
        let mut cage = cage().in_tier(tier);
        cage.terms.limits = tight();
        let outcome = cage.run(everything(), command);
        let held = match text("expected") {
            "deny" => !outcome.stdout.contains("PWNED"),
            "allow" => outcome.stdout.contains(text("must")),
            "contain" => true,
            other => panic!("what is `{other}`?"),
        };
        let intact = cage.run_outside(
            "git() { command git -c 'safe.directory=*' -C {REPO} \"$@\"; }; git fsck --no-dangling \
             && test -z \"$(git status --porcelain -uno)\" \
             && test -e {OTHER}/src/theirs.txt && test ! -s {HUMAN}/.bashrc",
        );
        let home = cage.env.path("home").display().to_string();
        let alone = process_tree::with_environment("HOME", &home).is_empty();
        if gaps_of(tier, &cage).any(|id| id == text("id")) {
            gaps += usize::from(!held);
            continue;
        }
        if !held || !intact || !alone || canary.0.try_wait().unwrap().is_some() {
            let (out, err) = (shortened(&outcome.stdout), shortened(&outcome.stderr));
            let id = text("id");
            wrong.push(format!(
                "{id} held {held}, intact {intact}, alone {alone}: {command}\n{out}\n{err}"
            ));
        }
    }
    assert!(count >= 60, "only {count} cases");
    // One that is closed has to leave the list, and the page.
    assert_eq!(gaps, gaps_of(tier, &cage()).count(), "gaps that there are no longer");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What is known not to be held, for whoever lives in this cage.
fn gaps_of(tier: Tier, cage: &Cage) -> impl Iterator<Item = &'static str> + use<> {
    let weaker = tier == Tier::Landlock;
    let root = weaker && cage.is_of_root();
    let all = NOT_BY_LANDLOCK.iter().filter(move |_| weaker);
    all.chain(NOT_FOR_ROOT.iter().filter(move |_| root)).map(|(id, _)| *id)
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
