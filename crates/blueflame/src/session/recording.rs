//! Events on their way into the journal: the state takes them one by one, and the
//! disk is waited for once for all that came together.

use blueflame_core::event::Event;
use jiff::Timestamp;

use super::views::Views;
use super::{Entry, Session};
use crate::failure::{Failure, Kind};

/// An event that the state has taken and the journal has not yet.
#[derive(Debug)]
pub(super) struct Taken {
    at: Timestamp,
    pub(super) event: Event,
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
        let taken = self.take(event)?;
        self.write([&taken])
    }

    /// What cannot follow is refused by the state, which stays as it was.
    pub(super) fn take(&mut self, event: Event) -> Result<Taken, Unrecorded> {
        let at = Timestamp::now().max(self.state.last_at);
        self.state.apply(at, &event).map_err(|illegal| Unrecorded::Illegal(illegal.to_string()))?;
        Ok(Taken { at, event })
    }

    /// Writes, then reports. The state is ahead of a journal that takes nothing
    /// more; but then nothing more is done either.
    pub(super) fn write<'a>(
        &mut self,
        taken: impl IntoIterator<Item = &'a Taken>,
    ) -> Result<(), Unrecorded> {
        let batch: Vec<_> = taken.into_iter().map(|it| (it.at, &it.event)).collect();
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
        Ok(())
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
