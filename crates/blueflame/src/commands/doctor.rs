//! `blueflame doctor`: what is there and what is missing, with what to type.

use std::path::Path;

use blueflame_core::config::{self, SandboxMode};

use super::here;
use crate::cli::{Common, Doctor};
use crate::config_file::{self, Loaded};
use crate::doctor::{self, Place, Standing};
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::prove;
use crate::stderr::eprintln;
use crate::stdout;
use crate::store::Store;

pub fn run(arguments: &Doctor, common: &Common) -> Result<(), Failure> {
    doctor::take_open_files();
    let directory = here()?;
    prove::sweep();
    let loaded = match &common.config {
        Some(path) => Some(config_file::load(Some(path))?),
        // One that is not there is a finding; what is wrong with one is shown.
        None => config_file::load_if_any().ok().flatten(),
    };
    if arguments.prove {
        return prove(arguments, &directory, loaded.as_ref());
    }
    let looked = doctor::look_for_executors(loaded.as_ref().map(|it| &it.config));
    let findings = doctor::examine(&Place { directory, loaded: loaded.as_ref() }, &looked);
    if arguments.json {
        let document = serde_json::json!({
            "standing": doctor::standing(&findings),
            "findings": findings,
            "executors": doctor::executors_document(&looked),
        });
        stdout::write(&format!("{document}\n"))?;
    } else {
        stdout::write(&doctor::page(&findings))?;
        stdout::write(&format!("\n{}", doctor::executors_page(&looked)))?;
    }
    match doctor::standing(&findings) {
        Standing::Good | Standing::Warning => Ok(()),
        Standing::Missing => {
            Err(Failure::new(Kind::Missing, "something is missing; no session can begin"))
        }
    }
}

/// Attacks everything, shows what came of it, and keeps that for the sessions of
/// this repository.
fn prove(arguments: &Doctor, directory: &Path, loaded: Option<&Loaded>) -> Result<(), Failure> {
    let standard;
    let config = if let Some(loaded) = loaded {
        &loaded.config
    } else {
        eprintln!("note: there is no configuration that can be used: the defaults are proven");
        standard = config::read(b"schema_version: 2\n")
            .config
            .ok_or_else(|| Failure::new(Kind::Internal, "the defaults cannot be read"))?;
        &standard
    };
    let (proof, trials) = prove::run(config)?;
    if arguments.json {
        let document = serde_json::json!({"proof": proof, "trials": trials});
        stdout::write(&format!("{document}\n"))?;
    } else {
        stdout::write(&prove::page(&proof, &trials))?;
    }
    match loaded.map_or_else(|| Store::find(directory), |loaded| Ok(loaded.store())) {
        Ok(store) => {
            let store = store.for_writing(Remote::Refuse)?;
            let path = prove::record::keep(store.store(), &proof, &trials)
                .map_err(|error| Failure::new(Kind::Internal, error))?;
            eprintln!("kept in {}, for the journals of sessions to come", path.display());
        }
        Err(error) => eprintln!("note: the result is not kept: {error}"),
    }
    if proof.is_whole() {
        return Ok(());
    }
    let count = proof.open.len();
    let failure = Failure::new(Kind::Missing, format!("{count} of these do not hold here"));
    Err(match config.sandbox.mode {
        SandboxMode::Auto | SandboxMode::Namespaces => failure,
        SandboxMode::Landlock | SandboxMode::Off => failure
            .hint("`sandbox: {mode: namespaces}` in the configuration is the strongest boundary"),
    })
}
