//! `blueflame cost`: what a session has spent, and on what.

use super::{named_config, place};
use crate::books::Books;
use crate::cli::{Common, Cost};
use crate::failure::{Failure, Kind};
use crate::history;
use crate::stdout;
use crate::store::Store;

pub fn run(arguments: &Cost, common: &Common) -> Result<(), Failure> {
    let place = place(named_config(common)?.as_ref())?;
    let directory = Store::find(&place)?.resolve(arguments.session.as_deref())?;
    let state = history::fold(&directory.journal(), None, |_| {})?.state;
    let books = Books::of(&state);
    if arguments.json {
        let document =
            serde_json::to_string(&books).map_err(|error| Failure::new(Kind::Internal, error))?;
        return stdout::write(&format!("{document}\n"));
    }
    stdout::write(&books.page())
}
