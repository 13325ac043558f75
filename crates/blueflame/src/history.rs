//! A session's journal, folded: events with the state they met.
//!
//! Reading needs no lock and changes nothing, so it works beside a running
//! orchestrator.

use std::path::{Path, PathBuf};

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
        let event: Event =
            record.event().map_err(|source| ReadError::Event { path: path.to_owned(), source })?;
        visit(&Moment { record, event: &event, before: state.as_ref() });
        let applied = match &mut state {
            Some(state) => state.apply(record.at, &event),
            None => State::begin(record.at, &event).map(|begun| state = Some(begun)),
        };
        let seq = record.seq;
        applied.map_err(|source| HistoryError::Illegal { path: path.to_owned(), seq, source })?;
        last = seq;
    }
    if let Some(asked) = until.filter(|asked| *asked != last) {
        return Err(HistoryError::NoSuchRecord { path: path.to_owned(), asked, last });
    }
    let state = state.ok_or_else(|| HistoryError::Empty { path: path.to_owned() })?;
    Ok(History { header: reader.header().clone(), state, last })
}
