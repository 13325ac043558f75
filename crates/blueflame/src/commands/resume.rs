//! `blueflame resume`: goes on with a session that was left.

use std::process::ExitCode;

use super::run::{self, Asking};
use crate::cli::{Common, Resume};
use crate::config_file;
use crate::failure::Failure;
use crate::file_system::Remote;

pub fn run(arguments: &Resume, common: &Common) -> Result<ExitCode, Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let store = loaded.store();
    let directory = store.resolve(arguments.session.as_deref())?;
    let store = store.for_writing(Remote::Refuse)?;
    let asking = Asking::new(
        arguments.decisions_file.as_deref(),
        arguments.yes,
        loaded.config.planning.interactive,
    );
    run::go_on(loaded, &store, directory, &asking, arguments.json)
}
