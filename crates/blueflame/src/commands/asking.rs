//! One question with yes or no, for commands that ask nothing else.

use std::io::{self, IsTerminal as _};

use crate::stderr::eprint;

/// What an empty line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    MeansYes,
    MeansNo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Said {
    Yes,
    No,
    /// There is no terminal, and so nobody to ask.
    Nobody,
}

/// Asks at the terminal. The end of input is no yes.
pub fn confirm(question: &str, enter: Enter) -> Said {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Said::Nobody;
    }
    let choices = match enter {
        Enter::MeansYes => "Y/n",
        Enter::MeansNo => "y/N",
    };
    eprint!("{question} [{choices}] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    match (read, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(1..), "y" | "yes") => Said::Yes,
        (Ok(1..), "") if enter == Enter::MeansYes => Said::Yes,
        _ => Said::No,
    }
}
