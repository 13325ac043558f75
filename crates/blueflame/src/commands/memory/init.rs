//! `blueflame memory init --beads`: lets `bd` make its directory.

use std::env;

use super::super::asking::{Enter, Said, confirm};
use crate::cli::MemoryInit;
use crate::config_file::Loaded;
use crate::failure::{Failure, Kind};
use crate::memory::mirror::{self, Bd, INIT, Patience};
use crate::stderr::eprintln;

pub fn run(loaded: &Loaded, arguments: &MemoryInit) -> Result<(), Failure> {
    let directory = mirror::directory(&loaded.repository);
    if directory.exists() {
        let why = format!("`{}` is there already", directory.display());
        return Err(Failure::new(Kind::Usage, why).hint("nothing has to be done"));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let bd = Bd::identify(&path, &loaded.repository, Patience::default().call).map_err(|why| {
        Failure::new(Kind::Missing, why).hint("notes are kept without it; see docs/memory.md")
    })?;
    eprintln!("`bd` {} would be run as `bd {}`.", bd.version, INIT.join(" "));
    eprintln!("It makes `{}`, and may add a line to `.gitignore`.", directory.display());
    eprintln!("It is told to install no hooks, write no files for agents, and commit nothing.");
    if !arguments.yes {
        match confirm("do it?", Enter::MeansNo) {
            Said::Yes => {}
            Said::No => return Err(Failure::new(Kind::Declined, "nothing was done")),
            Said::Nobody => {
                return Err(Failure::new(Kind::Declined, "nobody is there to ask")
                    .hint("`blueflame memory init --beads --yes` does it without asking"));
            }
        }
    }
    bd.init().map_err(|error| Failure::new(Kind::Missing, error))?;
    if !directory.is_dir() {
        let why = format!("`bd init` ended well, but made no `{}`", directory.display());
        return Err(Failure::new(Kind::Missing, why));
    }
    eprintln!("done; `bd` gets a copy of the notes when a session ends");
    Ok(())
}
