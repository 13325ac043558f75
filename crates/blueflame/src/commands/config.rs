//! `blueflame config`: check, show, schema.

use crate::cli::{Common, Config};
use crate::failure::{Failure, Kind};

pub fn run(command: &Config, common: &Common) -> Result<(), Failure> {
    Err(Failure::new(Kind::Internal, format!("{command:?} {common:?} is not built yet")))
}
