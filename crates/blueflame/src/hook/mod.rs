//! `blueflame __hook`: what an agent program runs before each tool call.
//!
//! It decides nothing. It passes the program's event on to the attempt process
//! and says the verdict in the program's words. Agent programs make the call
//! when their hook fails, so whatever goes wrong here is a denial: bad input, no
//! answer, a panic, a deadline. What no program can see to, that it is killed
//! or never started, is found by the gateway (`blueflame_gateway::calls`).
//!
//! It runs once for every tool call and has to start fast: no runtime, no
//! configuration, no argument parser.

pub mod wire;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process;
use std::sync::Mutex;
use std::time::Duration;

use blueflame_core::policy::Distinct;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::executor::Ruling;
use crate::sandbox;
use wire::{Answer, Dialect, LONGEST_ANSWER, LONGEST_EVENT, LONGEST_QUESTION, Question, VERSION};

/// How this part of the program is called.
pub const COMMAND: &str = "__hook";

/// How long all of it may take. Programs end a hook that takes too long and make
/// the call, so this is well below what they are told ([`PROGRAMS_PATIENCE`]).
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How long a program is told to wait for its hook.
pub const PROGRAMS_PATIENCE: Duration = Duration::from_secs(60);

/// The exit code that agent programs take for a denial.
const DENIED: i32 = 2;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("it was not called as it should be: {0}")]
    Arguments(String),
    #[error("what it was told cannot be read: {0}")]
    Input(String),
    #[error("the attempt process cannot be asked: {0}")]
    Unreachable(io::Error),
    #[error("somebody else answers in place of the attempt process: process {0}")]
    Impostor(i32),
    #[error("the attempt process gave no answer: {0}")]
    NoAnswer(io::Error),
    #[error("the answer cannot be understood: {0}")]
    Garbage(String),
}

/// Where the attempt process is, and who has to be there.
#[derive(Debug)]
struct Address {
    dialect: Dialect,
    socket: PathBuf,
    answerer: i32,
    proof: String,
}

impl Address {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Address, Broken> {
        let mut next = |what: &str| {
            let missing = || Broken::Arguments(format!("{what} is missing"));
            arguments.next().ok_or_else(missing)
        };
        let text = |what: &str, argument: OsString| {
            argument.into_string().map_err(|_| Broken::Arguments(format!("{what} is no text")))
        };
        let dialect = text("the dialect", next("the dialect")?)?;
        let unknown = || Broken::Arguments(format!("there is no dialect `{dialect}`"));
        let dialect = Dialect::named(&dialect).ok_or_else(unknown)?;
        let socket = PathBuf::from(next("the socket")?);
        let answerer = text("who answers", next("who answers")?)?;
        let answerer = answerer
            .parse()
            .map_err(|_| Broken::Arguments(format!("`{answerer}` is no process")))?;
        let proof = text("the proof", next("the proof")?)?;
        match arguments.next() {
            None => Ok(Address { dialect, socket, answerer, proof }),
            Some(more) => Err(Broken::Arguments(format!("`{}` is too much", more.display()))),
        }
    }
}

/// Asks about the event on standard input and leaves with the verdict.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ! {
    run_within(PATIENCE, arguments)
}

/// The same, with as much time as it is given.
pub fn run_within(patience: Duration, arguments: impl Iterator<Item = OsString>) -> ! {
    verdict_within(patience, || {
        let address = Address::read(arguments)?;
        let event = read_event(io::stdin().lock())?;
        ask(&address, &event)
    })
}

/// Leaves the process with what `judge` says; with a denial if that takes too
/// long, fails or panics.
pub fn verdict_within(patience: Duration, judge: impl FnOnce() -> Result<Ruling, Broken>) -> ! {
    std::panic::set_hook(Box::new(|panic| {
        leave(&denial(&format!("it broke down: {panic}")));
    }));
    std::thread::spawn(move || {
        std::thread::sleep(patience);
        leave(&denial(&format!("there was no answer within {} s", patience.as_secs())));
    });
    leave(&judge().unwrap_or_else(|broken| denial(&broken.to_string())))
}

fn denial(why: &str) -> Ruling {
    let reason = format!(
        "the hook of Blue Flame could not ask whether this is allowed, so it is not: {why}. \
         Stop here and say so; if it happens again, see docs/executors.md."
    );
    Ruling::Deny { reason }
}

/// Says the verdict and ends the process. Only one verdict is ever said: whoever
/// comes second while the first is stuck leaves with a denial.
#[expect(clippy::exit, reason = "a verdict is an exit code, whoever comes to it")]
fn leave(ruling: &Ruling) -> ! {
    static SAYING: Mutex<()> = Mutex::new(());
    let Ok(_saying) = SAYING.try_lock() else { process::exit(DENIED) };
    match ruling {
        // No word against it.
        Ruling::Allow => process::exit(0),
        Ruling::Deny { reason } => {
            // Said twice: either is enough for a program that overlooks the other.
            let output = json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }});
            let _ = writeln!(io::stdout(), "{output}");
            let _ = writeln!(io::stderr(), "{reason}");
            process::exit(DENIED)
        }
    }
}

/// The event, as it was written; only that it is one is looked at.
pub fn read_event(input: impl Read) -> Result<Box<RawValue>, Broken> {
    #[derive(Deserialize)]
    struct Event {
        #[expect(dead_code, reason = "it has to be there")]
        hook_event_name: String,
    }
    let bad = |error: &dyn std::fmt::Display| Broken::Input(error.to_string());
    let mut text = Vec::new();
    input.take(LONGEST_EVENT + 1).read_to_end(&mut text).map_err(|error| bad(&error))?;
    if text.len() as u64 > LONGEST_EVENT {
        return Err(Broken::Input(format!("it has more than {LONGEST_EVENT} bytes")));
    }
    let text = String::from_utf8(text).map_err(|error| bad(&error))?;
    serde_json::from_str::<Event>(&text).map_err(|error| bad(&error))?;
    serde_json::from_str::<Distinct>(&text).map_err(|error| bad(&error))?;
    RawValue::from_string(text).map_err(|error| bad(&error))
}

fn ask(address: &Address, event: &RawValue) -> Result<Ruling, Broken> {
    let mut stream = UnixStream::connect(&address.socket).map_err(Broken::Unreachable)?;
    // Whoever listens there must be the process that it was set up for; it is
    // 0 for one outside of the sandbox, which nobody inside can be.
    let answerer = sandbox::peer(&stream).map_err(Broken::Unreachable)?;
    if answerer != address.answerer {
        return Err(Broken::Impostor(answerer));
    }
    let question = Question {
        version: VERSION,
        dialect: address.dialect,
        proof: address.proof.clone(),
        event,
    };
    let mut line =
        serde_json::to_vec(&question).map_err(|error| Broken::Input(error.to_string()))?;
    // What is one value may have been written on several lines.
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    if line.len() as u64 > LONGEST_QUESTION {
        return Err(Broken::Input("it is too long".to_owned()));
    }
    stream.write_all(&line).map_err(Broken::NoAnswer)?;
    let mut said = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut said).map_err(Broken::NoAnswer)?;
    read_answer(&said)
}

/// The verdict in what was answered, if all of it is understood.
pub fn read_answer(said: &[u8]) -> Result<Ruling, Broken> {
    if said.is_empty() {
        return Err(Broken::NoAnswer(io::ErrorKind::UnexpectedEof.into()));
    }
    // Without its end it is not all of it.
    let whole = said.strip_suffix(b"\n").ok_or_else(|| Broken::Garbage("it is cut".to_owned()))?;
    let answer: Answer =
        serde_json::from_slice(whole).map_err(|error| Broken::Garbage(error.to_string()))?;
    if answer.version != VERSION {
        return Err(Broken::Garbage(format!("it has version {}", answer.version)));
    }
    Ok(answer.ruling())
}
