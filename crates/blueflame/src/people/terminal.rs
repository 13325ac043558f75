//! The terminal of the person: lines in, text out.
//!
//! Lines are read as the terminal gives them, after Enter, so it works over
//! ssh, in tmux and on a dumb terminal, and no mode is ever left behind. What
//! was typed before a question was shown is no answer to it. Prompts go to
//! standard error: standard output belongs to data.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{self, QueueSelector};

use super::programs::Programs;
use super::{Cancel, Unanswered};
use crate::diagnostics::Look;

const USUAL_WIDTH: usize = 80;

/// More than anyone types; what comes then is no line of a person.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Debug)]
pub struct Terminal {
    input: File,
    screen: File,
    output: AutoStream<File>,
    /// Read, but not yet asked for.
    pending: Vec<u8>,
    pub(super) programs: Programs,
    lent: Lent,
}

/// Tells whether a program of the person has the terminal: Ctrl-C is meant for
/// that program then, and not for us.
#[derive(Clone, Debug, Default)]
pub struct Lent(Arc<AtomicBool>);

impl Lent {
    pub fn is_lent(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn set(&self, lent: bool) {
        self.0.store(lent, Ordering::SeqCst);
    }
}

/// What came of waiting for a line.
#[derive(Debug)]
pub(super) enum Heard {
    Line(String),
    /// Ctrl-D, or the terminal is gone.
    End,
}

impl Terminal {
    /// The terminal that the program was started on. There is none when either
    /// the answers or the questions would go somewhere else.
    pub fn of_process() -> Option<Terminal> {
        let input = io::stdin().as_fd().try_clone_to_owned().ok()?;
        let output = io::stderr().as_fd().try_clone_to_owned().ok()?;
        Terminal::new(input, output, Programs::of_environment())
    }

    /// A terminal to read from and to write to, or `None` if they are not one.
    pub fn new(input: OwnedFd, output: OwnedFd, programs: Programs) -> Option<Terminal> {
        let (input, screen) = (File::from(input), File::from(output));
        if !input.is_terminal() || !screen.is_terminal() {
            return None;
        }
        let choice = AutoStream::choice(&screen);
        let output = AutoStream::new(screen.try_clone().ok()?, choice);
        let lent = Lent::default();
        Some(Terminal { input, screen, output, pending: Vec::new(), programs, lent })
    }

    pub fn lent(&self) -> Lent {
        self.lent.clone()
    }

    /// How wide it is now; people resize their windows.
    pub(super) fn width(&self) -> usize {
        match termios::tcgetwinsize(&self.screen) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            Ok(_) | Err(_) => USUAL_WIDTH,
        }
    }

    pub(super) fn has_colour(&self) -> bool {
        self.output.current_choice() != ColorChoice::Never
    }

    pub(super) fn look(&self) -> Look {
        if self.has_colour() { Look::Terminal } else { Look::Plain }
    }

    /// Both ends, for a program that is lent the terminal.
    pub(super) fn ends(&self) -> io::Result<(File, File)> {
        Ok((self.input.try_clone()?, self.screen.try_clone()?))
    }

    /// A terminal that went away shows nothing; waiting for a line finds out.
    pub(super) fn show(&mut self, text: &str) {
        let _ = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
    }

    /// Throws away what was typed so far.
    pub(super) fn forget_typed(&mut self) {
        self.pending.clear();
        // On a terminal that is gone there is nothing to throw away.
        let _ = termios::tcflush(&self.input, QueueSelector::IFlush);
    }

    /// Waits for a line, or for the question to be taken back.
    pub(super) fn line(&mut self, cancel: &Cancel) -> Result<Heard, Unanswered> {
        loop {
            if let Some(line) = self.next_pending() {
                return Ok(Heard::Line(line));
            }
            cancel.check()?;
            if self.is_readable(Some(cancel), None) && !self.read_some() {
                return Ok(Heard::End);
            }
        }
    }

    /// A line that is there already, as the rest of a pasted text would be.
    pub(super) fn line_at_once(&mut self) -> Option<String> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        if self.pending.is_empty() && self.is_readable(None, Some(at_once)) {
            self.read_some();
        }
        self.next_pending()
    }

    fn is_readable(&self, cancel: Option<&Cancel>, limit: Option<Timespec>) -> bool {
        let mut wanted = vec![PollFd::new(&self.input, PollFlags::IN)];
        let signal = cancel.map(Cancel::signal);
        wanted.extend(signal.as_ref().map(|signal| PollFd::new(signal, PollFlags::IN)));
        // A signal that interrupts the wait is like waiting in vain.
        poll(&mut wanted, limit.as_ref()).is_ok() && !wanted[0].revents().is_empty()
    }

    /// Whether there will be more.
    fn read_some(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.input.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    self.pending.extend_from_slice(&buffer[..length]);
                    return true;
                }
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
                // What a terminal says that was hung up.
                Err(_) => return false,
            }
        }
    }

    fn next_pending(&mut self) -> Option<String> {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let end = match self.pending.iter().position(ends) {
            Some(end) => end,
            None if self.pending.len() > LONGEST_LINE => self.pending.len() - 1,
            None => return None,
        };
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        let text = String::from_utf8_lossy(&line);
        // Arrow keys and the like leave control characters behind.
        Some(text.chars().filter(|c| *c == '\t' || !c.is_control()).collect())
    }
}
