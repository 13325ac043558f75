//! One question with yes or no, for commands that ask nothing else.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags};

use crate::child_end::wait_for_any;
use crate::interrupts::Interrupts;
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
    confirm_unless(question, enter, None)
}

/// The same where Ctrl-C does not end the program by itself: it is no yes either.
pub fn confirm_unless(question: &str, enter: Enter, stop: Option<&Interrupts>) -> Said {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Said::Nobody;
    }
    let choices = match enter {
        Enter::MeansYes => "Y/n",
        Enter::MeansNo => "y/N",
    };
    eprint!("{question} [{choices}] ");
    if let Some(stop) = stop {
        let (stdin, stop) = (io::stdin(), stop.as_fd());
        let mut watched =
            [PollFd::new(&stdin, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        if wait_for_any(&mut watched, None).is_err() || !watched[1].revents().is_empty() {
            return Said::No;
        }
    }
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    match (read, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(1..), "y" | "yes") => Said::Yes,
        (Ok(1..), "") if enter == Enter::MeansYes => Said::Yes,
        _ => Said::No,
    }
}
