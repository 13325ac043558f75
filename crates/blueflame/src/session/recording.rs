//! Events on their way into the journal: the state takes them one by one, and the
//! disk is waited for once for all that came together, and for what was decided then.

use std::mem;

use blueflame_core::event::Event;
use blueflame_core::state::crew::Agent;
use jiff::Timestamp;

use super::views::Views;
use super::{Entry, Session, tidy};
use crate::failure::{Failure, Kind};

/// An event that the state has taken.
#[derive(Debug)]
pub(super) struct Taken {
    at: Timestamp,
    pub(super) event: Event,
    /// An agent that has come to its end, as it was last.
    ended: Option<Agent>,
}

/// Why an event was not recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unrecorded {
    #[error("{0}")]
    Illegal(String),
    #[error("{0}")]
    Journal(String),
}

impl Session {
    pub(super) fn record(&mut self, event: Event) -> Result<(), Unrecorded> {
        self.take(event)?;
        self.write().map(drop)
    }

    /// Has the state take an event, to be written with the next ones. What cannot
    /// follow is refused by the state, which stays as it was.
    pub(super) fn take(&mut self, event: Event) -> Result<(), Unrecorded> {
        let at = Timestamp::now().max(self.state.last_at);
        let ended = match &event {
            Event::AgentExited { agent, .. } => self.state.crew.live().get(agent).cloned(),
            _ => None,
        };
        self.state.apply(at, &event).map_err(|illegal| Unrecorded::Illegal(illegal.to_string()))?;
        self.unwritten.push(Taken { at, event, ended });
        Ok(())
    }

    /// Writes all that was taken, then reports it. The state is ahead of a journal that
    /// takes nothing more; but then nothing more is done either.
    pub(super) fn write(&mut self) -> Result<Vec<Taken>, Unrecorded> {
        let written = mem::take(&mut self.unwritten);
        if written.is_empty() {
            return Ok(written);
        }
        let batch: Vec<_> = written.iter().map(|it| (it.at, &it.event)).collect();
        let numbers =
            self.journal.append(&batch).map_err(|error| Unrecorded::Journal(error.to_string()))?;
        let epoch = self.journal.epoch();
        for (seq, (at, event)) in numbers.zip(batch) {
            self.watch.event(Entry { seq, at, epoch }, event, &self.state);
            self.views.outdate();
            if matches!(event, Event::GateOpened { .. }) {
                self.write_views(Views::show);
            }
        }
        for taken in &written {
            self.take_leave(taken);
        }
        Ok(written)
    }

    /// Nothing is kept for an agent whose end is on the disk.
    fn take_leave(&mut self, Taken { event, ended, .. }: &Taken) {
        if let (Some(agent), Event::AgentExited { outcome, .. }) = (ended, event) {
            tidy::after_work(&self.site, agent, outcome);
        }
        if let Event::AgentExited { agent, .. }
        | Event::AgentLost { agent, .. }
        | Event::AgentStartFailed { agent, .. } = event
        {
            self.agents.remove(agent);
            self.desk.take_back(agent, None);
            self.watch.gone(agent);
        }
    }
}

impl From<Unrecorded> for Failure {
    fn from(unrecorded: Unrecorded) -> Self {
        let failure = Failure::new(Kind::Internal, &unrecorded);
        match unrecorded {
            Unrecorded::Illegal(_) => failure,
            Unrecorded::Journal(_) => failure
                .hint("what was recorded is safe, and agents at work go on by themselves")
                .hint("once the disk takes it, `blueflame resume` goes on"),
        }
    }
}
