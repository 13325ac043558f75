//! Ways for an orchestrator to die, or to be let down by its disk or by git.
//!
//! `strace` kills it at a system call that is counted, or makes that call fail,
//! so that the very moments before a record is written and before it is flushed
//! are met, and met again by the same seed. Only the thread that decides and
//! records is looked at; threads that do the work die at instants of the clock.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Stage, Told};

/// Numbers that follow from a seed.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// One of the numbers below `end`; splitmix64.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

/// Calls that the deciding thread makes all along, and how many a session that is
/// taken up again has at least, about. `strace` counts each kind for itself.
const CALLS: [(&str, u64); 7] = [
    ("openat", 300),
    ("statx", 300),
    ("read", 200),
    ("write", 120),
    ("close", 400),
    ("fcntl", 400),
    ("clone3", 12),
];

/// How the orchestrators of one session die.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Each gets to record a few events, and dies with the last one written and
    /// not yet flushed. With one, this meets every event of the session: whoever
    /// only did again what the one before had done lets the next live longer.
    Flush { events: u64 },
    /// The same, before the last one is written.
    Write { events: u64 },
    /// At any system call.
    Call,
    /// At any instant.
    Instant,
    /// At any instant, and everybody else with it: the machine goes down.
    Blackout,
    /// Each gets to record a few events; then the disk is full.
    FullDisk,
    /// The same, and what was written cannot be flushed.
    BrokenDisk,
    /// One of its calls of git fails, before or after it did its work, or is
    /// killed.
    Git,
}

impl Manner {
    /// Whether it takes `strace`.
    pub fn counts_calls(self) -> bool {
        !matches!(self, Manner::Instant | Manner::Blackout | Manner::Git)
    }

    /// So many seeds in a row meet every manner.
    pub const ALL: u64 = 8;

    pub fn of(seed: u64) -> Manner {
        match seed % 12 {
            0 => Manner::Flush { events: 1 },
            1 | 8 => Manner::Call,
            2 | 9 => Manner::Instant,
            3 => Manner::Git,
            4 => Manner::Write { events: 2 },
            5 => Manner::FullDisk,
            6 => Manner::Blackout,
            7 => Manner::BrokenDisk,
            10 => Manner::Flush { events: 3 },
            _ => Manner::Write { events: 4 },
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Manner::Flush { .. } => "before a flush",
            Manner::Write { .. } => "before a write",
            Manner::Call => "at a system call",
            Manner::Instant => "at an instant",
            Manner::Blackout => "with everyone",
            Manner::FullDisk => "of a full disk",
            Manner::BrokenDisk => "of a broken disk",
            Manner::Git => "of git",
        }
    }

    /// How the next one dies, after so many that got nowhere.
    pub fn next(self, chance: &mut Chance, in_vain: u64) -> Death {
        match self {
            Manner::Flush { events } => {
                Death::Record { call: "fdatasync", how: KILL, number: 1 + events + in_vain }
            }
            Manner::Write { events } => {
                Death::Record { call: "write", how: KILL, number: 1 + events + in_vain }
            }
            Manner::FullDisk => {
                Death::Record { call: "write", how: "error=ENOSPC", number: 5 + in_vain }
            }
            Manner::BrokenDisk => {
                Death::Record { call: "fdatasync", how: "error=EIO", number: 4 + in_vain }
            }
            Manner::Git => {
                let mishap =
                    ["fail", "work; fail", "die"][usize::try_from(chance.below(3)).unwrap()];
                Death::Git { mishap, number: 1 + chance.below(60) }
            }
            Manner::Call => {
                let (call, often) = CALLS[usize::try_from(chance.below(7)).unwrap()];
                Death::Call { call, number: 1 + chance.below(often) }
            }
            Manner::Instant => Death::Instant { ms: 50 + chance.below(1_200) },
            Manner::Blackout => Death::Blackout { ms: 300 + chance.below(2_500) },
        }
    }
}

impl Manner {
    /// Whether this is how somebody whom it met may end: dead, or with a refusal
    /// that says what happened and, if there is a session, that it goes on.
    pub fn explains(self, told: &Told, begun: bool) -> bool {
        let refused = |code, words: &str| {
            told.code == Some(code)
                && told.stderr.contains(words)
                && (told.stderr.contains("`blueflame resume") || !begun)
        };
        if told.signal == Some(9) {
            return !matches!(self, Manner::Git);
        }
        match self {
            Manner::FullDisk => refused(70, "No space left on device"),
            Manner::BrokenDisk => refused(70, "Input/output error"),
            // The configuration is read first, which asks git where the repository is.
            Manner::Git if told.code == Some(2) => told.stderr.contains("`git rev-parse"),
            Manner::Git => [3, 70].into_iter().any(|code| refused(code, "git")),
            _ => false,
        }
    }
}

/// What `strace` does at a call.
const KILL: &str = "signal=SIGKILL";

/// How one orchestrator dies.
#[derive(Debug)]
pub enum Death {
    /// At one of its calls on the journal, counted. The first record of each is
    /// that it goes on.
    Record {
        call: &'static str,
        how: &'static str,
        number: u64,
    },
    /// Soon after the session began, when its journal had no name to look for.
    First,
    Git {
        mishap: &'static str,
        number: u64,
    },
    Call {
        call: &'static str,
        number: u64,
    },
    Instant {
        ms: u64,
    },
    Blackout {
        ms: u64,
    },
}

impl Death {
    /// Lets the program run until it dies this way, or ends before.
    pub fn carry_out(&self, stage: &Stage, arguments: &[&str]) -> Told {
        match self {
            Death::Record { call, how, number } => {
                let mut wrapper = strace(call, how, *number);
                let journal = stage.session().join("journal.jsonl");
                wrapper.extend(["-P".to_owned(), journal.to_str().unwrap().to_owned()]);
                stage.start_under(&wrapper, arguments).end()
            }
            Death::Call { call, number } => {
                stage.start_under(&strace(call, KILL, *number), arguments).end()
            }
            Death::First => stage.start_under(&strace("fdatasync", KILL, 3), arguments).end(),
            Death::Git { mishap, number } => {
                let path = unlucky_git(stage, mishap, *number);
                stage.start_with(arguments, &[("PATH", &path)]).end()
            }
            Death::Instant { ms } => {
                let mut running = stage.start(arguments);
                thread::sleep(Duration::from_millis(*ms));
                running.kill_if_alive();
                running.end()
            }
            Death::Blackout { ms } => {
                let mut running = stage.start(arguments);
                thread::sleep(Duration::from_millis(*ms));
                running.kill_if_alive();
                let told = running.end();
                // Whoever is started in this moment is met in the next round.
                loop {
                    let left = stage.running();
                    if left.is_empty() {
                        break;
                    }
                    for (pid, _) in left {
                        let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                told
            }
        }
    }
}

/// A `PATH` with a git in it that does its work, but for one call.
fn unlucky_git(stage: &Stage, mishap: &str, number: u64) -> String {
    // Each call takes the next number that is free, also if several come at once.
    let script = format!(
        r#"number=1
set -C
while ! : 2>/dev/null >"$place/$number"; do number=$((number + 1)); done
set +C
if [ $number = {number} ]; then {mishap}; fi
"#
    );
    git_that(stage, &script).1
}

/// A directory, and a `PATH` in which it comes first: a git is in it that runs these
/// lines before it does its work. They find some mishaps to choose from.
pub fn git_that(stage: &Stage, lines: &str) -> (PathBuf, String) {
    let place = tempfile::tempdir_in(stage.env.root()).unwrap().keep();
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|it| it.join("git")).find(|it| it.exists());
    let script = format!(
        r#"#!/bin/bash
place="{}" real="{}" root="{}"
fail() {{ echo "fatal: write error: No space left on device" >&2; exit 128; }}
work() {{ "$real" "${{all[@]}}" >/dev/null 2>&1; }}
die() {{ kill -KILL $$; }}
half() {{
  "$real" "${{all[@]}}" >"$place/out.$$" 2>/dev/null
  head -c $(($(stat -c %s "$place/out.$$") / 2)) "$place/out.$$"
  die
}}
all=("$@")
# Agents may find this program, and are none of its business.
[ -w "$place" ] || exec "$real" "$@"
{lines}
exec "$real" "$@"
"#,
        place.display(),
        real.unwrap().display(),
        stage.env.root().display(),
    );
    let git = place.join("git");
    fs::write(&git, script).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{path}", place.display());
    (place, path)
}

/// A command line that does something to one system call of what follows it.
fn strace(call: &str, how: &str, number: u64) -> Vec<String> {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:{how}:when={number}");
    ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject].map(str::to_owned).to_vec()
}
