//! When the views of a session are written. They are made of the whole state,
//! which takes the longer the more tasks there are: so not for each event, but
//! every now and then, before anybody is asked anything, and at the end.

use std::time::Duration;

use blueflame_core::gate::Gate;
use blueflame_core::state::State;

use crate::projections::{ProjectionError, Projections};

/// How old they get while a session runs.
pub const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Views {
    /// `None` while another session is the one to look at.
    files: Option<Projections>,
    outdated: bool,
}

impl Views {
    pub fn new(files: Projections) -> Views {
        Views { files: Some(files), outdated: false }
    }

    /// Another session is the one to look at.
    pub fn leave_alone(&mut self) {
        self.files = None;
    }

    /// Something has happened since they were written.
    pub fn outdate(&mut self) {
        self.outdated = true;
    }

    /// Writes them if they are not as they should be, except while the person may
    /// be editing the view of the tasks.
    pub fn bring_up(&mut self, state: &State) -> Result<(), ProjectionError> {
        if state.gate == Some(Gate::Plan) { Ok(()) } else { self.show(state) }
    }

    /// The same, before that: the question refers to them.
    pub fn show(&mut self, state: &State) -> Result<(), ProjectionError> {
        match &self.files {
            Some(files) if self.outdated => {
                self.outdated = false;
                files.write(state).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }
}
