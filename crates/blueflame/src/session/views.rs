//! When the views of a session are written. They are made of the whole state,
//! which takes the longer the more tasks there are: so not for each event, but
//! every now and then, before anybody is asked anything, and at the end.

use std::time::{Duration, Instant};

use blueflame_core::gate::Gate;
use blueflame_core::state::State;

use crate::projections::{ProjectionError, Projections};

/// How often it is looked whether they are due.
pub const EVERY: Duration = Duration::from_secs(1);

/// The part of the time that may be spent with writing them: one in so many. On a
/// busy machine there are few events in a second, and this is all that is done in
/// between; so it has to be little.
const SHARE: u32 = 100;

#[derive(Debug)]
pub struct Views {
    /// `None` while another session is the one to look at.
    files: Option<Projections>,
    outdated: bool,
    /// Not to be written before, unless somebody is to see them.
    due: Instant,
}

impl Views {
    pub fn new(files: Projections) -> Views {
        Views { files: Some(files), outdated: false, due: Instant::now() }
    }

    /// Another session is the one to look at.
    pub fn leave_alone(&mut self) {
        self.files = None;
    }

    /// Something has happened since they were written.
    pub fn outdate(&mut self) {
        self.outdated = true;
    }

    /// Whether they will be due.
    pub fn are_outdated(&self) -> bool {
        self.outdated && self.files.is_some()
    }

    /// Writes them if that is due.
    pub fn bring_up(&mut self, state: &State) -> Result<(), ProjectionError> {
        if Instant::now() < self.due { Ok(()) } else { self.conclude(state) }
    }

    /// Writes them as they are to stay, except while the person may be editing the
    /// view of the tasks.
    pub fn conclude(&mut self, state: &State) -> Result<(), ProjectionError> {
        if state.gate == Some(Gate::Plan) { Ok(()) } else { self.show(state) }
    }

    /// Writes them for a question that refers to them.
    pub fn show(&mut self, state: &State) -> Result<(), ProjectionError> {
        let Some(files) = self.files.as_ref().filter(|_| self.outdated) else { return Ok(()) };
        self.outdated = false;
        let begun = Instant::now();
        let written = files.write(state).map(drop);
        self.due = Instant::now() + begun.elapsed() * SHARE;
        written
    }
}
