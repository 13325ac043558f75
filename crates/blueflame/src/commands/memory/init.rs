//! `blueflame memory init --beads`: asks whether `bd` may get a copy of the notes, and
//! lets it make its directory if there is none.

use std::env;

use super::super::asking::{Enter, Said, confirm_unless};
use crate::cli::MemoryInit;
use crate::config_file::Loaded;
use crate::failure::{Failure, Kind};
use crate::interrupts::Interrupts;
use crate::memory::mirror::{
    self, Bd, BdError, INIT, Patience, Place, Standing, StateDirectory, Unusable,
};
use crate::stderr::eprintln;

pub fn run(loaded: &Loaded, arguments: &MemoryInit) -> Result<(), Failure> {
    let place = Place::of(&loaded.repository);
    let directory = place.directory.display();
    let standing = place.standing();
    if standing == Standing::HalfMade {
        let why = Unusable::HalfMade(place.directory.clone());
        return Err(Failure::new(Kind::Missing, why)
            .hint("let `bd` finish it (`bd init`) or remove it, and try again"));
    }
    let brought = mirror::brought_along(&place).filter(|_| standing == Standing::Ready);
    let state = StateDirectory::here();
    let agreed = state
        .consent(&place)
        .filter(|consent| standing == Standing::Ready && consent.covers(brought.as_ref()));
    if agreed.is_some() {
        eprintln!("you agreed to it already: nothing has to be done");
        say_whether_it_is_on(loaded);
        return Ok(());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let stop = Interrupts::listen().map_err(|error| Failure::new(Kind::Internal, error))?;
    let bd = Bd::identify(&path, &place, Patience::default().call, Some(&stop)).map_err(|why| {
        Failure::new(Kind::Missing, why).hint("notes are kept without it; see docs/memory.md")
    })?;
    if standing == Standing::Nothing {
        eprintln!("`bd` {} would be run as `bd {}`.", bd.version, INIT.join(" "));
        eprintln!("It makes `{directory}`, and may add a line to `.gitignore`.");
        eprintln!("It is told to install no hooks, write no files for agents, and commit nothing.");
    }
    eprintln!("When a session ends, `bd` gets a copy of the notes in `{directory}`.");
    if let Some(brought) = &brought {
        eprintln!("warning: {}", brought.what);
    }
    if !arguments.yes {
        match confirm_unless("do you agree?", Enter::MeansNo, Some(&stop)) {
            Said::Yes => {}
            Said::No if stop.heard() => return Err(Failure::new(Kind::Interrupted, "")),
            Said::No => return Err(Failure::new(Kind::Declined, "nothing was done")),
            Said::Nobody => {
                return Err(Failure::new(Kind::Declined, "nobody is there to ask")
                    .hint("`blueflame memory init --beads --yes` does it without asking"));
            }
        }
    }
    if standing == Standing::Nothing {
        bd.init().map_err(failed)?;
        if place.standing() != Standing::Ready {
            let why = format!("`bd init` ended well, but made no database in `{directory}`");
            return Err(Failure::new(Kind::Missing, why));
        }
    }
    state.agree(&place, brought.as_ref()).map_err(|error| Failure::new(Kind::Missing, error))?;
    eprintln!("done; that you agreed is kept for you on this machine, not in the repository");
    say_whether_it_is_on(loaded);
    Ok(())
}

fn failed(error: BdError) -> Failure {
    let kind = if error.interrupted { Kind::Interrupted } else { Kind::Missing };
    Failure::new(kind, error)
}

fn say_whether_it_is_on(loaded: &Loaded) {
    if !loaded.config.memory.as_ref().is_some_and(|memory| memory.mirror) {
        eprintln!("hint: `beads: {{mirror: true}}` in `{}` turns the copy on", loaded.name);
    }
}
