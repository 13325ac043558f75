//! Git that fails: every kind of call that a session makes, each in several ways.
//!
//! The calls are known by their words, so that the same ones are met in every run.
//! Whatever fails, the session heals it or says how to go on; the next orchestrator
//! comes to the end that an undisturbed session has, and no task, none of which may
//! fail even once, has paid for it. `BLUEFLAME_GIT_FAULTS=all` lets every call fail
//! in every way, and not in one each.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use super::death::git_that;
use super::ledger::{Ledger, Person};
use super::story;
use crate::stage::{Again, RESUME, Stage, Told};

/// Before its work, after it, killed at once or with half of its answer out; or from
/// then on every time, for this orchestrator.
const WAYS: [&str; 5] = ["fail", "work; fail", "die", "half", "always"];

/// What happens to the first call of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    way: String,
    call: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}", self.way, self.call)
    }
}

/// The faults that one orchestrator after the other meets.
type Case = Vec<Fault>;

/// What is left of a command line: its words, without names that are new each time.
const KIND: &str = r#"call= skip=
for word in "$@"; do
  if [ "$skip" ]; then skip=; continue; fi
  case $word in -c | -C) skip=1; continue ;; esac
  word=${word//$root/}
  case $word in /*) word='<path>' ;; esac
  while [[ $word =~ [0-9a-f]{7,} ]]; do word=${word/"${BASH_REMATCH[0]}"/'<id>'}; done
  call+=" ${word//[0-9]/#}"
done
call=${call//$'\n'/ }; call=${call:1:100}; call=${call% }
echo "$call" >>"$place/calls"
{ read -r way; read -r wanted; } <"$place/wanted"
if [ "$call" = "$wanted" ]; then
  if [ "$way" = always ]; then : >"$place/hit"; fail; fi
  if (set -C; : >"$place/hit") 2>/dev/null; then eval "$way"; fi
fi"#;

/// Runs the program with a git that has this fault. The answer has the kinds of calls
/// that were made, and whether one of them failed.
fn let_down(stage: &Stage, arguments: &[&str], fault: Option<&Fault>) -> (Told, Met) {
    let (place, path) = git_that(stage, KIND);
    let wanted = fault.map_or("-\n-".to_owned(), |fault| format!("{}\n{}", fault.way, fault.call));
    fs::write(place.join("wanted"), wanted + "\n").unwrap();
    let told = stage.start_with(arguments, &[("PATH", &path)]).end();
    let met = Met { calls: calls(&place), hit: place.join("hit").exists() };
    (told, met)
}

struct Met {
    calls: BTreeSet<String>,
    hit: bool,
}

fn calls(place: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(place.join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn undisturbed() -> (Ledger, BTreeSet<String>) {
    let stage = story::of_two();
    let person = Person::begins(&stage);
    let (told, met) = let_down(&stage, &stage.run_arguments(), None);
    told.exits(0);
    (Ledger::of(&stage, &person), met.calls)
}

/// Where the work on all cases has got to.
struct Progress {
    open: VecDeque<Case>,
    known: BTreeSet<String>,
    /// Orchestrators that met their fault, and those of them that it stopped.
    met: usize,
    stopped: usize,
    /// Cases that are being worked on.
    busy: usize,
    /// Those that went wrong, which has been said.
    bad: Vec<Case>,
}

impl Progress {
    /// Cases for calls that are new, after the faults that led to them.
    fn discover(&mut self, calls: BTreeSet<String>, after: &[Fault], all: bool) {
        for call in calls {
            if !self.known.insert(call.clone()) {
                continue;
            }
            let turn = self.known.len() % WAYS.len();
            // What moves a ref is met in every way in any case.
            let moves = ["update-ref -m", "merge --ff-only"].iter().any(|it| call.contains(it));
            let ways = if all || moves { &WAYS[..] } else { &WAYS[turn..=turn] };
            for way in ways {
                let fault = Fault { way: (*way).to_owned(), call: call.clone() };
                self.open.push_back(after.iter().cloned().chain([fault]).collect());
            }
        }
    }
}

#[test]
fn whatever_call_of_git_fails_nothing_is_lost_and_no_task_pays() {
    let (expected, calls) = undisturbed();
    if let Ok(text) = std::env::var("BLUEFLAME_GIT_FAULT") {
        let fault = |text: &str| {
            let (way, call) = text.split_once('|').expect("way|call, as a failure prints it");
            Fault { way: way.to_owned(), call: call.to_owned() }
        };
        suffer(&text.split(";;").map(fault).collect::<Case>(), &expected);
        return;
    }
    let all = std::env::var("BLUEFLAME_GIT_FAULTS").is_ok_and(|it| it == "all");
    let mut progress = Progress {
        open: VecDeque::new(),
        known: BTreeSet::new(),
        met: 0,
        stopped: 0,
        busy: 0,
        bad: Vec::new(),
    };
    progress.discover(calls, &[], all);
    println!("{} kinds of git calls in an undisturbed session", progress.known.len());
    let progress = Mutex::new(progress);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = next(&progress) {
                    let suffered = catch_unwind(AssertUnwindSafe(|| suffer(&case, &expected)));
                    let mut progress = progress.lock().unwrap();
                    progress.busy -= 1;
                    let Ok(suffered) = suffered else {
                        progress.bad.push(case);
                        continue;
                    };
                    progress.met += suffered.met;
                    progress.stopped += suffered.stopped;
                    // One step further is far enough.
                    if case.len() == 1 {
                        progress.discover(suffered.calls, &case, all);
                    }
                }
            });
        }
    });
    let Progress { known, met, stopped, bad, .. } = progress.into_inner().unwrap();
    println!("{} kinds of git calls, {met} failed, {stopped} orchestrators stopped", known.len());
    assert_eq!(bad, Vec::<Case>::new(), "these went wrong, as told above");
    assert!(met >= known.len() / 2, "most of them were never met");
}

/// The next case; waits while there may be more to come.
fn next(progress: &Mutex<Progress>) -> Option<Case> {
    loop {
        let mut now = progress.lock().unwrap();
        if let Some(case) = now.open.pop_front() {
            now.busy += 1;
            return Some(case);
        }
        if now.busy == 0 {
            return None;
        }
        drop(now);
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[derive(Default)]
struct Suffered {
    met: usize,
    stopped: usize,
    calls: BTreeSet<String>,
}

/// One session in which one orchestrator after the other meets its fault, and the
/// last one none.
fn suffer(case: &[Fault], expected: &Ledger) -> Suffered {
    let faults: Vec<String> = case.iter().map(ToString::to_string).collect();
    let _again = Again(format!(
        "BLUEFLAME_GIT_FAULT='{}' cargo test -p blueflame --test session whatever_call_of_git",
        faults.join(";;")
    ));
    let stage = story::of_two();
    let person = Person::begins(&stage);
    let mut suffered = Suffered::default();
    let mut waits = false;
    for fault in case.iter().map(Some).chain([None]) {
        let begun = !stage.sessions().is_empty();
        let arguments = if begun { RESUME.to_vec() } else { stage.run_arguments() };
        let (told, met) = let_down(&stage, &arguments, fault);
        suffered.met += usize::from(met.hit);
        suffered.calls.extend(met.calls);
        waits |= told.stderr.contains("`blueflame publish");
        if told.code != Some(0) {
            let journal = !stage.sessions().is_empty();
            assert!(met.hit && is_a_refusal(&told, journal), "{fault:?}: {told}");
            suffered.stopped += 1;
        }
    }
    // What could not be brought to the base branch waits for the person.
    if waits {
        stage.blueflame(&["publish"]).exits(0);
    }
    let ledger = Ledger::of(&stage, &person);
    let same = ledger.leads_to_the_same_as(expected);
    assert!(same, "after {case:?}:\n{ledger:#?}\nand not\n{expected:#?}");
    suffered
}

/// Whether it says that git failed, or what git complained of, and how to go on if there is anything to go on
/// with.
fn is_a_refusal(told: &Told, begun: bool) -> bool {
    let says = |words: &str| told.stderr.contains(words);
    matches!(told.code, Some(2 | 3 | 70))
        && says("error: ")
        && (says("git") || says("No space left on device"))
        && (!begun || says("`blueflame resume"))
}
