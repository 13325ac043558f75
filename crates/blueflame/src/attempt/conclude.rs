//! How a run ended, from everything that is known about it.
//!
//! Three sides have something to say: we (who may have stopped it), the
//! gateway (which knows about money and the provider), and the program itself.
//! They are believed in this order.

use std::time::Duration;

use blueflame_core::outcome::{BudgetScope, Killer, Outcome};
use jiff::Timestamp;

use super::sealed::Ending;
use crate::executor::{Account, Told};
use crate::sandbox;

/// Why we ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It had run for this long.
    Wall(Duration),
    /// It gave no sign of life for this long.
    Idle(Duration),
    /// It had waited for people for this long.
    Waited(Duration),
    /// The session stops.
    Asked,
    /// It made a call that was not allowed, or never asked about.
    Breach(String),
    /// The gateway refused it more money.
    Budget(BudgetScope),
    /// It asks again and again.
    Loop(String),
    /// It has had as many turns as it may have.
    Turns,
    /// The provider wants a longer pause than is waited for.
    Limited,
    /// Something of ours broke.
    Internal(String),
}

/// What is known about a run when it is over.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub cause: Option<Cause>,
    /// Whether the cause came when the program had said its last word already.
    pub late: bool,
    /// The last word of the provider about a pause.
    pub limited: Option<Limited>,
    /// The status of the provider's last answer, if that was an error.
    pub provider_failed: Option<u16>,
    pub account: Account,
    pub exit: Exit,
    /// Whether it had to return something.
    pub output_wanted: bool,
    /// What it last wrote to its error stream.
    pub complaint: String,
    /// The beginning of the last line of its output that made no sense.
    pub unread: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    pub until: Option<Timestamp>,
}

/// How a process left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// It could not be started.
    #[default]
    Never,
    Code(i32),
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Never => f.write_str("never started"),
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}{}", sandbox::limit_behind(*signal)),
        }
    }
}

/// How long to wait when a provider wants a pause and does not say for how long.
pub const UNNAMED_PAUSE: Duration = Duration::from_secs(60);

const SIGKILL: i32 = 9;

pub fn conclude(known: &Known, now: Timestamp) -> Ending {
    let crashed = |detail: String| Ending::Failed(Outcome::Crashed { detail });
    // What came after the end did not end it. A breach is never forgiven.
    let breach = matches!(known.cause, Some(Cause::Breach(_)));
    let cause = known.cause.as_ref().filter(|_| breach || !known.late);
    match cause {
        Some(Cause::Wall(_) | Cause::Idle(_) | Cause::Waited(_)) => {
            return Ending::Failed(Outcome::TimedOut);
        }
        Some(Cause::Asked) => return Ending::Failed(Outcome::Killed { by: Killer::Us }),
        Some(Cause::Breach(why)) => {
            return Ending::Failed(Outcome::Violated { violations: vec![why.clone()] });
        }
        // A run that came to its end in spite of a refused request, say of a
        // helper model, is judged by what it left.
        Some(Cause::Budget(limit)) if known.account.end != Told::Finished => {
            return Ending::Failed(Outcome::BudgetSpent { limit: *limit });
        }
        Some(Cause::Loop(why)) if known.account.end != Told::Finished => {
            return crashed(why.clone());
        }
        Some(Cause::Turns) if known.account.end != Told::Finished => {
            return Ending::Failed(Outcome::MaxTurns);
        }
        Some(Cause::Limited) if known.account.end != Told::Finished => {
            return limited(known.limited, now);
        }
        Some(Cause::Internal(why)) => return crashed(why.clone()),
        Some(Cause::Budget(_) | Cause::Loop(_) | Cause::Turns | Cause::Limited) | None => {}
    }
    let account = &known.account;
    match &with_status(&account.end, known.provider_failed) {
        Told::Finished if known.output_wanted && account.output.is_none() => {
            let said = shortened(&account.text);
            let problems = vec![format!("it returned no structured output; it said: {said}")];
            Ending::Failed(Outcome::Malformed { problems })
        }
        Told::Finished => {
            Ending::Stopped { text: account.text.clone(), output: account.output.clone() }
        }
        Told::MaxTurns => Ending::Failed(Outcome::MaxTurns),
        Told::Budget => Ending::Failed(Outcome::BudgetSpent { limit: BudgetScope::Agent }),
        Told::BadOutput => {
            let problem = "what it returned never had the shape that was asked for";
            Ending::Failed(Outcome::Malformed { problems: vec![problem.to_owned()] })
        }
        Told::Interrupted => Ending::Failed(Outcome::Killed { by: Killer::Other }),
        Told::Api { status: Some(429), .. } => limited(known.limited, now),
        // A limit that it named before is still the reason to wait.
        Told::Api { status: Some(503 | 529), .. } if named(known.limited, now).is_some() => {
            limited(known.limited, now)
        }
        Told::Api { status: Some(status @ (503 | 529)), .. } => {
            Ending::Failed(Outcome::Overloaded { status: *status })
        }
        Told::Api { status: Some(status @ (401 | 403)), message } => crashed(format!(
            "the provider does not accept the login ({status}): {}",
            shortened(message)
        )),
        Told::Api { status: Some(status), message } => {
            crashed(format!("the provider answered {status}: {}", shortened(message)))
        }
        Told::Api { status: None, message } => {
            crashed(format!("the model was not reached: {}", shortened(message)))
        }
        Told::Failed { message } => crashed(shortened(message)),
        Told::Nothing => match known.exit {
            Exit::Never => crashed(format!("it could not be started: {}", known.complaint)),
            Exit::Signal(SIGKILL) => match sandbox::excess_told(&known.complaint) {
                Some(why) => crashed(why.to_owned()),
                None => Ending::Failed(Outcome::Killed { by: Killer::Other }),
            },
            exit if known.complaint.is_empty() => match &known.unread {
                None => crashed(format!("it left without a word: {exit}")),
                Some(line) => {
                    let line = shortened(line);
                    crashed(format!("it left without a result: {exit}; unreadable was: {line}"))
                }
            },
            exit => crashed(format!("{exit}: {}", shortened(&known.complaint))),
        },
    }
}

/// Not every program says what the provider's error was.
fn with_status(end: &Told, status: Option<u16>) -> Told {
    match (end, status) {
        (Told::Failed { message } | Told::Api { status: None, message }, Some(_)) => {
            Told::Api { status, message: message.clone() }
        }
        (end, _) => end.clone(),
    }
}

fn limited(limited: Option<Limited>, now: Timestamp) -> Ending {
    let until = named(limited, now);
    let until = until.unwrap_or_else(|| now.saturating_add(UNNAMED_PAUSE).unwrap_or(now));
    Ending::Failed(Outcome::RateLimited { until })
}

/// The end of a limit that is still to come.
fn named(limited: Option<Limited>, now: Timestamp) -> Option<Timestamp> {
    limited.and_then(|limited| limited.until).filter(|until| *until > now)
}

/// Enough of a text to know what it is about.
fn shortened(text: &str) -> String {
    const MOST: usize = 500;
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(end: Told) -> Known {
        let account = Account { end, ..Account::default() };
        Known { account, exit: Exit::Code(1), ..Known::default() }
    }

    fn api(status: Option<u16>) -> Known {
        told(Told::Api { status, message: "m".into() })
    }

    #[test]
    fn each_end_has_its_place_in_the_taxonomy() {
        const WHILE: Duration = Duration::from_secs(9);
        let now = Timestamp::from_second(1_000_000).unwrap();
        let later = now + Duration::from_secs(3600);
        let caused = |cause, end| Known { cause: Some(cause), ..told(end) };
        let late = |cause, end| Known { late: true, ..caused(cause, end) };
        let with_limit = |until| Known { limited: Some(Limited { until }), ..api(Some(429)) };
        for (what, known, expected) in [
            ("done", told(Told::Finished), "stopped"),
            ("no output", Known { output_wanted: true, ..told(Told::Finished) }, "malformed"),
            ("bad output", told(Told::BadOutput), "malformed"),
            ("turns", told(Told::MaxTurns), "max-turns"),
            ("own budget flag", told(Told::Budget), "budget"),
            ("wall", caused(Cause::Wall(Duration::ZERO), Told::Nothing), "timed-out"),
            ("idle", caused(Cause::Idle(Duration::ZERO), Told::Finished), "timed-out"),
            ("stopped", caused(Cause::Asked, Told::Interrupted), "killed"),
            ("breach", caused(Cause::Breach("x".into()), Told::Finished), "violated"),
            ("refused", caused(Cause::Budget(BudgetScope::Agent), Told::Nothing), "budget"),
            ("refused, done", caused(Cause::Budget(BudgetScope::Agent), Told::Finished), "stopped"),
            ("refused a turn", caused(Cause::Turns, Told::Nothing), "max-turns"),
            ("loop", caused(Cause::Loop("x".into()), Told::Nothing), "crashed"),
            ("ours", caused(Cause::Internal("x".into()), Told::Finished), "crashed"),
            ("interrupted by others", told(Told::Interrupted), "killed"),
            ("401", api(Some(401)), "crashed"),
            ("stopped, finished", late(Cause::Asked, Told::Finished), "stopped"),
            ("too long, finished", late(Cause::Wall(WHILE), Told::Finished), "stopped"),
            ("silent, finished", late(Cause::Idle(WHILE), Told::Finished), "stopped"),
            ("full disk, finished", late(Cause::Internal("x".into()), Told::Finished), "stopped"),
            ("stopped, had failed", late(Cause::Asked, Told::MaxTurns), "max-turns"),
            ("breach, finished", late(Cause::Breach("x".into()), Told::Finished), "violated"),
            ("waited for ever", caused(Cause::Waited(WHILE), Told::Nothing), "timed-out"),
            ("stopped, then finished", caused(Cause::Asked, Told::Finished), "killed"),
            ("too long, then finished", caused(Cause::Wall(WHILE), Told::Finished), "timed-out"),
            ("429", api(Some(429)), "rate-limited"),
            ("529", api(Some(529)), "overloaded"),
            ("503", api(Some(503)), "overloaded"),
            (
                "529 after a limit with a time",
                Known { limited: Some(Limited { until: Some(later) }), ..api(Some(529)) },
                "rate-limited",
            ),
            ("500", api(Some(500)), "crashed"),
            ("unreachable", api(None), "crashed"),
            (
                "529, in other words",
                Known { provider_failed: Some(529), ..api(None) },
                "overloaded",
            ),
            ("a long pause", caused(Cause::Limited, Told::Nothing), "rate-limited"),
            ("a long pause, done", caused(Cause::Limited, Told::Finished), "stopped"),
            ("429 with a time", with_limit(Some(later)), "rate-limited"),
            ("killed", Known { exit: Exit::Signal(9), ..told(Told::Nothing) }, "killed"),
            ("segfault", Known { exit: Exit::Signal(11), ..told(Told::Nothing) }, "crashed"),
            ("silent exit", Known { exit: Exit::Code(0), ..told(Told::Nothing) }, "crashed"),
            ("no program", Known::default(), "crashed"),
        ] {
            let name = match conclude(&known, now) {
                Ending::Stopped { .. } => "stopped",
                Ending::Failed(outcome) => outcome.name(),
            };
            assert_eq!(name, expected, "{what}");
        }
    }

    #[test]
    fn a_pause_ends_when_the_provider_said_or_after_a_while() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let later = now + Duration::from_secs(3600);
        let until = |known: &Known| match conclude(known, now) {
            Ending::Failed(Outcome::RateLimited { until }) => until,
            other => panic!("{other:?}"),
        };
        let limited = |until| Known { limited: Some(Limited { until }), ..api(Some(429)) };
        assert_eq!(until(&limited(Some(later))), later);
        assert_eq!(until(&limited(None)), now + UNNAMED_PAUSE);
        assert_eq!(until(&limited(Some(now - Duration::from_secs(5)))), now + UNNAMED_PAUSE);
    }

    #[test]
    fn a_limit_that_was_passed_is_named() {
        let killed = |complaint: &str| Known {
            exit: Exit::Signal(SIGKILL),
            complaint: complaint.into(),
            ..told(Told::Nothing)
        };
        let over = killed("cc: busy\nblueflame: over a limit: it filled 9 MiB\n");
        let detail = "it filled 9 MiB".to_owned();
        let named = Ending::Failed(Outcome::Crashed { detail });
        assert_eq!(conclude(&over, Timestamp::UNIX_EPOCH), named);
        let other = Ending::Failed(Outcome::Killed { by: Killer::Other });
        assert_eq!(conclude(&killed("cc: busy\n"), Timestamp::UNIX_EPOCH), other);
        let slow = Known { exit: Exit::Signal(24), ..killed("") };
        let Ending::Failed(Outcome::Crashed { detail }) = conclude(&slow, Timestamp::UNIX_EPOCH)
        else {
            panic!("it did not crash");
        };
        assert!(detail.contains("sandbox.max_cpu_seconds"), "{detail}");
    }

    #[test]
    fn one_that_was_not_understood_is_quoted() {
        let known = |unread: Option<&str>| Known {
            exit: Exit::Code(0),
            unread: unread.map(str::to_owned),
            ..Known::default()
        };
        for (unread, expected) in [
            (None, "it left without a word: exit code 0"),
            (Some("{\"ty"), "it left without a result: exit code 0; unreadable was: {\"ty"),
        ] {
            let detail = expected.to_owned();
            let crashed = Ending::Failed(Outcome::Crashed { detail });
            assert_eq!(conclude(&known(unread), Timestamp::UNIX_EPOCH), crashed);
        }
    }

    #[test]
    fn what_it_returned_is_handed_on() {
        let account = Account {
            end: Told::Finished,
            text: "fine".into(),
            output: Some(json!({"a": 1})),
            ..Account::default()
        };
        let known = Known { account, output_wanted: true, ..Known::default() };
        let expected = Ending::Stopped { text: "fine".into(), output: Some(json!({"a": 1})) };
        assert_eq!(conclude(&known, Timestamp::UNIX_EPOCH), expected);
    }

    #[test]
    fn reasons_stay_short_and_cut_between_characters() {
        let long = "é".repeat(2_000);
        let Ending::Failed(Outcome::Crashed { detail }) =
            conclude(&told(Told::Failed { message: long }), Timestamp::UNIX_EPOCH)
        else {
            panic!()
        };
        assert_eq!(detail.chars().count(), 501);
    }
}
