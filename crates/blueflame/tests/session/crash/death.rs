//! Ways for an orchestrator to die.
//!
//! `strace` kills it at a system call that is counted, so that the very moments
//! before a record is written and before it is flushed are met, and met again by
//! the same seed. Only the thread that decides and records is looked at; threads
//! that do the work die at instants of the clock.

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
}

impl Manner {
    /// So many seeds in a row meet every manner.
    pub const ALL: u64 = 5;

    pub fn of(seed: u64) -> Manner {
        match seed % 10 {
            0 => Manner::Flush { events: 1 },
            1 | 6 => Manner::Call,
            2 | 7 => Manner::Instant,
            3 | 8 => Manner::Blackout,
            4 => Manner::Write { events: 2 },
            5 => Manner::Flush { events: 3 },
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
        }
    }

    /// How the next one dies, after so many that got nowhere.
    pub fn next(self, chance: &mut Chance, in_vain: u64) -> Death {
        match self {
            Manner::Flush { events } => {
                Death::Record { call: "fdatasync", number: 1 + events + in_vain }
            }
            Manner::Write { events } => {
                Death::Record { call: "write", number: 1 + events + in_vain }
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

/// How one orchestrator dies.
#[derive(Debug)]
pub enum Death {
    /// At one of its calls on the journal, counted. The first record of each is
    /// that it goes on.
    Record {
        call: &'static str,
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
            Death::Record { call, number } => {
                let mut wrapper = strace(call, *number);
                // Before there is a session, its journal has no name to look for.
                if let Some(session) = stage.sessions().pop() {
                    let journal = session.join("journal.jsonl");
                    wrapper.extend(["-P".to_owned(), journal.to_str().unwrap().to_owned()]);
                }
                stage.start_under(&wrapper, arguments).end()
            }
            Death::Call { call, number } => {
                stage.start_under(&strace(call, *number), arguments).end()
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

/// A command line that kills what follows it at one of its system calls.
fn strace(call: &str, number: u64) -> Vec<String> {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:signal=SIGKILL:when={number}");
    ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject].map(str::to_owned).to_vec()
}
