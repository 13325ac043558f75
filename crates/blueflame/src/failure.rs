//! How a command fails: what kind of failure, why, and what to do about it.
//!
//! The kind gives the exit code; every code a script may rely on is in
//! [`Kind`], and nothing else ends the process.

use std::fmt;
use std::process::ExitCode;

use crate::stderr::eprintln;

/// Why the program ends with anything but success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Work was left failed, blocked or skipped.
    Incomplete,
    /// The command line, the configuration or an input file is wrong.
    Usage,
    /// A prerequisite or a boundary is missing, or the repository is in a state
    /// that only the person can put right; nothing was started, or it goes on
    /// once that is done.
    Missing,
    /// The person quit or rejected, or a gate had no answer.
    Declined,
    /// A budget stopped the session.
    Budget,
    /// Another orchestrator holds this repository.
    Held,
    /// Interrupted; the session can be resumed.
    Interrupted,
    /// Something that should not happen, such as a damaged journal.
    Internal,
}

impl Kind {
    pub const fn code(self) -> u8 {
        match self {
            Kind::Incomplete => 1,
            Kind::Usage => 2,
            Kind::Missing => 3,
            Kind::Declined => 4,
            Kind::Budget => 5,
            Kind::Held => 6,
            Kind::Internal => 70,
            Kind::Interrupted => 130,
        }
    }
}

/// A failure on its way to the person: a message, and what to type next.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    hints: Vec<String>,
}

impl Failure {
    pub fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Failure { kind, message: message.to_string(), hints: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Tells the person and gives the exit code. A failure whose details were
    /// shown already has an empty message.
    pub fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("error: {}", self.message);
        }
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.kind.code())
    }
}
