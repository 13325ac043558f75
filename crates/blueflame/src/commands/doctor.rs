//! `blueflame doctor`: what is there and what is missing, with what to type.

use std::path::Path;

use super::here;
use crate::cli::{Common, Doctor};
use crate::config_file::{self, DEFAULT_NAME};
use crate::doctor::{self, Place, Standing};
use crate::failure::{Failure, Kind};
use crate::git::Git;
use crate::stdout;

pub fn run(arguments: &Doctor, common: &Common) -> Result<(), Failure> {
    let directory = here()?;
    let loaded = match &common.config {
        Some(path) => Some(config_file::load(Some(path))?),
        // One that is not there is a finding; what is wrong with one is shown.
        None if is_configured(&directory) => config_file::load(None).ok(),
        None => None,
    };
    let findings = doctor::examine(&Place { directory, loaded: loaded.as_ref() });
    if arguments.json {
        let document = serde_json::json!({
            "standing": doctor::standing(&findings),
            "findings": findings,
        });
        stdout::write(&format!("{document}\n"))?;
    } else {
        stdout::write(&doctor::page(&findings))?;
    }
    match doctor::standing(&findings) {
        Standing::Good | Standing::Warning => Ok(()),
        Standing::Missing => {
            Err(Failure::new(Kind::Missing, "something is missing; no session can begin"))
        }
    }
}

fn is_configured(directory: &Path) -> bool {
    let root = Git::in_dir(directory).top_level();
    root.is_ok_and(|root| root.join(DEFAULT_NAME).exists())
}
