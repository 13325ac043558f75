//! A session's journal, folded: events with the state they met.
//!
//! Reading needs no lock and changes nothing, so it works beside a running
//! orchestrator.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueflame_core::event::Event;
use blueflame_core::state::{Illegal, State};

use crate::failure::{Failure, Kind};
use crate::journal::{Header, ReadError, Reader, Record, Step};

/// Why a history cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The chain holds, but the story makes no sense: someone wrote a record
    /// that no orchestrator would have.
    #[error("`{}`: record {seq}: {source}", path.display())]
    Illegal { path: PathBuf, seq: u64, source: Illegal },
    #[error("`{}` has no record {asked}; the last one is {last}", path.display())]
    NoSuchRecord { path: PathBuf, asked: u64, last: u64 },
    #[error("`{}` tells of no session yet", path.display())]
    Empty { path: PathBuf },
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Failure {
        match error {
            HistoryError::Read(error) => error.into(),
            HistoryError::Illegal { .. } => Failure::new(Kind::Internal, &error)
                .hint("the file is intact but its records contradict each other; keep a copy"),
            HistoryError::NoSuchRecord { .. } => {
                Failure::new(Kind::Usage, &error).hint("`blueflame log` shows the numbers")
            }
            HistoryError::Empty { .. } => Failure::new(Kind::Usage, &error),
        }
    }
}

/// One event on its way into the state.
#[derive(Debug)]
pub struct Moment<'a> {
    pub record: Record<'a>,
    pub event: &'a Event,
    /// The state before the event; `None` for the one that starts a session.
    pub before: Option<&'a State>,
}

/// A history as far as it was read.
#[derive(Debug)]
pub struct History {
    pub header: Header,
    pub state: State,
    /// The number of the last record in it.
    pub last: u64,
}

/// Folds a journal up to a record, or as far as it goes, and shows each event
/// to `visit` before it is applied.
pub fn fold(
    path: &Path,
    until: Option<u64>,
    mut visit: impl FnMut(&Moment<'_>),
) -> Result<History, HistoryError> {
    let mut reader = Reader::open(path)?;
    let mut state: Option<State> = None;
    let mut last = reader.head().seq;
    while until.is_none_or(|until| last < until) {
        let record = match reader.step()? {
            Step::Record(record) => record,
            Step::NotYet => break,
            Step::StartedOver => {
                state = None;
                continue;
            }
        };
        let event = event(path, &record)?;
        visit(&Moment { record, event: &event, before: state.as_ref() });
        let seq = record.seq;
        apply(path, &mut state, &record, &event)?;
        last = seq;
    }
    if let Some(asked) = until.filter(|asked| *asked != last) {
        return Err(HistoryError::NoSuchRecord { path: path.to_owned(), asked, last });
    }
    let state = state.ok_or_else(|| HistoryError::Empty { path: path.to_owned() })?;
    Ok(History { header: reader.header().clone(), state, last })
}

/// Folds a journal and goes on as it grows, until `each` breaks. It is shown the
/// state whenever everything that is there was read, at least once in every
/// interval.
pub fn follow<B>(
    path: &Path,
    every: Duration,
    mut each: impl FnMut(&News<'_>) -> ControlFlow<B>,
) -> Result<B, HistoryError> {
    let mut state: Option<State> = None;
    let mut read = 0;
    let mut shown = None;
    let mut reader = Reader::open(path)?;
    reader.follow(every, |step| match step {
        Step::Record(record) => {
            read += 1;
            let folded =
                event(path, &record).and_then(|event| apply(path, &mut state, &record, &event));
            match folded {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        }
        Step::StartedOver => {
            read += 1;
            state = None;
            ControlFlow::Continue(())
        }
        Step::NotYet => {
            let grown = shown != Some(read);
            shown = Some(read);
            match &state {
                Some(state) => match each(&News { state, grown }) {
                    ControlFlow::Continue(()) => ControlFlow::Continue(()),
                    ControlFlow::Break(end) => ControlFlow::Break(Ok(end)),
                },
                None => ControlFlow::Continue(()),
            }
        }
    })?
}

/// A state that is as new as the journal.
#[derive(Debug)]
pub struct News<'a> {
    pub state: &'a State,
    /// Whether the journal has changed since the state was last shown.
    pub grown: bool,
}

fn event(path: &Path, record: &Record<'_>) -> Result<Event, HistoryError> {
    let read = record.event();
    Ok(read.map_err(|source| ReadError::Event { path: path.to_owned(), source })?)
}

fn apply(
    path: &Path,
    state: &mut Option<State>,
    record: &Record<'_>,
    event: &Event,
) -> Result<(), HistoryError> {
    let applied = match state {
        Some(state) => state.apply(record.at, event),
        None => State::begin(record.at, event).map(|begun| *state = Some(begun)),
    };
    let illegal = |source| HistoryError::Illegal { path: path.to_owned(), seq: record.seq, source };
    applied.map_err(illegal)
}
