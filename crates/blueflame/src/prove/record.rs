//! The last proof, kept beside the sessions of a repository, and what it says
//! about the session that begins now.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use blueflame_core::config::{Config, ProcessLimit};
use blueflame_core::event::Event;
use blueflame_core::ids::{ExecutorName, Role};
use blueflame_core::proof::{Circumstances, Proof};
use serde::{Deserialize, Serialize};

use super::Trial;
use crate::at_once;
use crate::atomic_file::{self, AtomicError, Durability};
use crate::executor::{self, Executor, find};
use crate::sandbox::Boundary;
use crate::store::Store;

/// The version of the file's format.
const FORMAT: u32 = 1;

/// What is kept. Only the proof is read again; the rest is for people.
#[derive(Debug, Serialize)]
struct Kept<'k> {
    format: u32,
    proof: &'k Proof,
    trials: &'k [Trial],
}

#[derive(Debug, Deserialize)]
struct Known {
    format: u32,
    proof: Proof,
}

/// Why what is known cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the last proof in `{}` cannot be read: {why}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    why: String,
}

fn file(store: &Store) -> PathBuf {
    store.root().join("proof.json")
}

/// Keeps a proof in place of the last one.
pub fn keep(store: &Store, proof: &Proof, trials: &[Trial]) -> Result<PathBuf, AtomicError> {
    let path = file(store);
    let kept = Kept { format: FORMAT, proof, trials };
    let fill = |file: &mut std::fs::File| Ok(serde_json::to_writer_pretty(file, &kept)?);
    atomic_file::replace_with(&path, fill, Durability::Power)?;
    Ok(path)
}

/// The last proof, if there is one.
pub fn last(store: &Store) -> Result<Option<Proof>, Unreadable> {
    let path = file(store);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unreadable { path, why: error.to_string() }),
    };
    match serde_json::from_slice::<Known>(&text) {
        Ok(known) if known.format == FORMAT => Ok(Some(known.proof)),
        Ok(known) => Err(Unreadable { path, why: format!("it has format {}", known.format) }),
        Err(error) => Err(Unreadable { path, why: error.to_string() }),
    }
}

/// What the journal of a session says of it.
pub fn event(proof: Proof, now: &Circumstances) -> Event {
    let outdated = proof.outdated_by(now);
    Event::SessionProven { proof, outdated }
}

/// An agent program that the configuration may use and that is there.
#[derive(Debug)]
pub struct Installed {
    pub executor: &'static dyn Executor,
    pub program: PathBuf,
    pub found: find::Found,
}

/// All of them, looked at in this way.
pub fn installed(
    config: &Config,
    look: impl Fn(&dyn Executor, &Path) -> find::Found + Sync,
) -> Vec<Installed> {
    let used = |executor: &&dyn Executor| {
        Role::ALL.iter().any(|role| {
            config.executors.chains.of(*role).iter().any(|it| it.as_str() == executor.name())
        })
    };
    let look = |executor: &&'static dyn Executor| {
        let program = find::program(*executor)?;
        let found = look(*executor, &program);
        Some(Installed { executor: *executor, program, found })
    };
    let used: Vec<&'static dyn Executor> = executor::ALL.into_iter().filter(used).collect();
    // Some take a while to say their version.
    at_once::each(&used, 1, look).into_iter().flatten().collect()
}

/// What a proof depends on, as it is now.
pub fn circumstances(installed: &[Installed], boundary: Boundary) -> Circumstances {
    let mut executors = BTreeMap::new();
    for Installed { executor, found, .. } in installed {
        if let (Ok(name), find::Found::Usable { version, .. }) =
            (ExecutorName::new(executor.name()), found)
        {
            executors.insert(name, version.clone());
        }
    }
    let system = rustix::system::uname();
    let (host, kernel) = (system.nodename().to_string_lossy(), system.release().to_string_lossy());
    Circumstances {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        machine: format!("{host}, {} {kernel}", system.sysname().to_string_lossy()),
        sandbox: match boundary.counting {
            ProcessLimit::Kernel => boundary.tier.name().to_owned(),
            ProcessLimit::Watched => format!("{}, processes watched", boundary.tier.name()),
        },
        executors,
    }
}
