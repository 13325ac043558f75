//! The work of an agent that stopped by itself, and turned out not to be finished.
//!
//! An attempt process saves what an agent leaves that was stopped or broke down.
//! One that says it is done has most often committed everything, and a look at
//! that would be for nothing. Whoever looks at the work and finds it wanting has it
//! saved here, by a process that goes into the workspace as the attempt's did.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use blueflame_core::ids::Oid;
use serde::{Deserialize, Serialize};

use super::directory::{Directory, DirectoryError, Running};
use super::link;
use super::run::{CannotBegin, cannot};
use super::snapshot::Camera;
use crate::bounded_run::{self, Bounds};
use crate::stdout;
use crate::workspace::enter;

/// How long all of it may take; a large workspace has to be read.
const PATIENCE: Duration = Duration::from_secs(300);

/// More than it has to say.
const MOST_SAID: u64 = 1 << 20;

/// What came of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Saved {
    /// The newest snapshot, if there is any.
    pub snapshot: Option<Oid>,
    /// What is not in it.
    pub remarks: Vec<String>,
}

/// Has the work of an attempt saved that has ended.
pub fn save(blueflame: &Path, directory: &Directory) -> io::Result<Saved> {
    let mut command = link::process("__snapshot", blueflame, directory);
    let bounds = Bounds { patience: PATIENCE, most: MOST_SAID, stop: None };
    let ran = bounded_run::run(&mut command, bounds).map_err(io::Error::other)?;
    if !ran.status.success() {
        let said = ran.stderr.trim();
        return Err(io::Error::other(said.strip_prefix("error: ").unwrap_or(said).to_owned()));
    }
    Ok(serde_json::from_str(&ran.stdout)?)
}

/// Is that process.
pub fn run(root: &Path) -> Result<(), CannotBegin> {
    let directory = Directory::open(root);
    let _running = take_up(&directory).map_err(cannot)?;
    let spec = directory.spec().map_err(cannot)?;
    enter::enter(&spec.workspace).map_err(cannot)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let mut saved = Saved::default();
    if let Some(mut camera) = Camera::of(&directory, &spec) {
        runtime.block_on(camera.take()).map_err(cannot)?;
        saved = Saved { snapshot: camera.last().cloned(), remarks: camera.remarks() };
    }
    let text = serde_json::to_string(&saved).map_err(cannot)?;
    stdout::write(&text).map_err(|failure| cannot(failure.message()))
}

/// The attempt process may be about to leave, and one that an orchestrator left
/// behind may be at it still.
fn take_up(directory: &Directory) -> Result<Running, DirectoryError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match directory.take_up() {
            Err(DirectoryError::Held { .. }) if Instant::now() < until => {}
            other => return other,
        }
    }
}
