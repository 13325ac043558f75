//! Standard input: read by one thread, sorted by one task.
//!
//! Prompts queue up; answers to our questions go to whoever asked; an
//! interrupt marks every prompt that came before it. When the input ends,
//! whoever waits for an answer gets none.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use crate::stderr::eprintln;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::events;
use super::output::Output;
use super::protocol::{Hook, Incoming, Verdict};

/// The longest line that is taken. Providers take prompts of half that size.
const LONGEST: u64 = 64 << 20;

/// A prompt, numbered in the order of arrival.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) number: u64,
    pub(super) content: Value,
}

/// What the task that sorts and the run that asks have in common.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    hooks: Vec<Hook>,
    waiting: BTreeMap<String, oneshot::Sender<Verdict>>,
    closed: bool,
}

impl Desk {
    /// Who judges calls of a tool, or why nobody does.
    pub(super) fn judges_of(&self, tool: &str) -> Result<Vec<Hook>, &'static str> {
        let state = self.state();
        if state.closed {
            return Err("nobody is there any more to judge the call");
        }
        let hooks: Vec<Hook> =
            state.hooks.iter().filter(|hook| hook.judges(tool)).cloned().collect();
        if hooks.is_empty() { Err("nobody was named to judge the call") } else { Ok(hooks) }
    }

    /// Waits for the answer to a question that is about to be asked. After the
    /// end of the input there is none.
    pub(super) fn expect(&self, request: &str) -> oneshot::Receiver<Verdict> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if !state.closed {
            state.waiting.insert(request.to_owned(), sender);
        }
        receiver
    }

    /// A late answer will be nobody's.
    pub(super) fn forget(&self, request: &str) {
        self.state().waiting.remove(request);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    fn answer(&self, request: &str, verdict: Verdict) {
        if let Some(sender) = self.state().waiting.remove(request) {
            let _ = sender.send(verdict);
        }
    }

    /// What cannot be read may have been the answer, so it was no permission.
    fn refuse_waiting(&self, why: &str) {
        for (_, sender) in std::mem::take(&mut self.state().waiting) {
            let _ = sender.send(Verdict::deny(why));
        }
    }

    fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The run's side of the input.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) prompts: mpsc::UnboundedReceiver<Prompt>,
    /// Prompts up to this number have been interrupted.
    pub(super) interrupted: watch::Receiver<u64>,
    pub(super) desk: Arc<Desk>,
}

/// Starts to read and to sort.
pub(super) fn open(out: Output) -> Inbox {
    // Small: what is not read yet can wait in the pipe.
    let (sender, lines) = mpsc::channel(4);
    std::thread::spawn(move || read_lines(&mut std::io::stdin().lock(), &sender));
    let (prompt_sender, prompts) = mpsc::unbounded_channel();
    let (interrupt, interrupted) = watch::channel(0);
    let desk = Arc::new(Desk::default());
    tokio::spawn(sort(lines, prompt_sender, interrupt, Arc::clone(&desk), out));
    Inbox { prompts, interrupted, desk }
}

/// Hands over lines until the input ends or fails. Of a line that is too long
/// only the start is, which then cannot be read.
fn read_lines(input: &mut impl BufRead, lines: &mpsc::Sender<Vec<u8>>) {
    loop {
        let mut line = Vec::new();
        match input.take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST {
            line.truncate(64);
            if input.skip_until(b'\n').is_err() {
                return;
            }
        }
        if !line.trim_ascii().is_empty() && lines.blocking_send(line).is_err() {
            return;
        }
    }
}

async fn sort(
    mut lines: mpsc::Receiver<Vec<u8>>,
    prompts: mpsc::UnboundedSender<Prompt>,
    interrupt: watch::Sender<u64>,
    desk: Arc<Desk>,
    out: Output,
) {
    let mut number = 0;
    while let Some(line) = lines.recv().await {
        match Incoming::parse(&line) {
            Incoming::Initialize { request, hooks } => {
                desk.state().hooks = hooks;
                out.emit(&events::control_success(&request)).await;
            }
            Incoming::Interrupt { request } => {
                let _ = interrupt.send(number);
                out.emit(&events::control_success(&request)).await;
            }
            Incoming::Unknown { request, subtype } => {
                out.emit(&events::control_unknown(&request, &subtype)).await;
            }
            Incoming::User { content } => {
                number += 1;
                let _ = prompts.send(Prompt { number, content });
            }
            Incoming::Response { request, verdict } => desk.answer(&request, verdict),
            Incoming::Other => {}
            Incoming::Unreadable { why } => {
                eprintln!("a line of the input cannot be read: {why}");
                desk.refuse_waiting("the answer could not be read");
            }
        }
    }
    desk.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_line_breaks_and_empty_ones_are_nothing() {
        let (sender, mut lines) = mpsc::channel(10);
        read_lines(&mut &b"one\n\n  \ntwo\r\nthree"[..], &sender);
        drop(sender);
        let mut seen = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            seen.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(seen, ["one\n", "two\r\n", "three"]);
    }

    #[test]
    fn after_the_end_nobody_judges_and_whoever_waits_is_told() {
        let desk = Desk::default();
        assert!(desk.judges_of("Bash").is_err(), "nobody was named");
        let mut waiting = desk.expect("q1");
        desk.answer("q2", Verdict::Allow);
        assert!(waiting.try_recv().is_err(), "the answer to another question");
        desk.close();
        assert_eq!(waiting.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(desk.expect("q3").try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn what_cannot_be_read_is_no_permission_for_whoever_waits() {
        let desk = Desk::default();
        let mut waiting = desk.expect("q1");
        desk.refuse_waiting("unreadable");
        desk.answer("q1", Verdict::Allow);
        assert_eq!(waiting.try_recv(), Ok(Verdict::deny("unreadable")));
    }
}
