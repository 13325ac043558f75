//! `blueflame replay`: fold a journal again and prove what it says.

use std::path::PathBuf;

use crate::stderr::{eprint, eprintln};
use blueflame_core::config::file::ConfigFile;
use blueflame_core::decide::was_decided;
use blueflame_core::state::State;

use super::{named_config, place};
use crate::cli::{Common, Replay};
use crate::config_file::{self, Loaded};
use crate::failure::{Failure, Kind};
use crate::git::{Git, Roots};
use crate::history;
use crate::projections::Projections;
use crate::report::{self, Scene};
use crate::stdout;
use crate::store::{Store, StoreError};

pub fn run(arguments: &Replay, common: &Common) -> Result<(), Failure> {
    let named = named_config(common)?;
    let place = place(named.as_ref())?;
    let directory = Store::find(&place)?.resolve(arguments.session.as_deref())?;
    let mut differing: Vec<(u64, String)> = Vec::new();
    let history = history::fold(&directory.journal(), arguments.at, |moment| {
        let decided = moment.before.is_none_or(|state| was_decided(state, moment.event));
        if !decided {
            differing.push((moment.record.seq, moment.record.kind.to_owned()));
        }
    })?;
    let document = serde_json::to_string(&history.state)
        .map_err(|error| Failure::new(Kind::Internal, error))?;
    if arguments.json {
        stdout::write(&format!("{document}\n"))?;
    } else {
        let scene = Scene::of_the_past(&history.state);
        eprint!("{}", report::page(&history.state, &scene));
    }
    if arguments.rebuild {
        for path in rebuild(place, named, &history.state)? {
            eprintln!("wrote     {}", path.display());
        }
    }
    let fingerprint = blake3::hash(document.as_bytes()).to_hex();
    eprintln!(
        "replayed  {} records of blueflame {}, each in its place; state {}",
        history.last,
        history.header.program,
        &fingerprint[..16]
    );
    if differing.is_empty() {
        eprintln!("decisions all as this version takes them");
        return Ok(());
    }
    for (seq, kind) in &differing {
        eprintln!("decisions record {seq}, `{kind}`, is not what this version decides there");
    }
    let count = differing.len();
    let message = match count {
        1 => "1 recorded decision differs".to_owned(),
        _ => format!("{count} recorded decisions differ"),
    };
    Err(Failure::new(Kind::Internal, message)
        .hint("the journal was written by another version, or by hand"))
}

fn rebuild(place: PathBuf, named: Option<Loaded>, state: &State) -> Result<Vec<PathBuf>, Failure> {
    let Roots { work_tree, common } = Git::in_dir(place).roots().map_err(StoreError::from)?;
    let config = match named {
        None if work_tree.join(config_file::DEFAULT_NAME).exists() => {
            Some(config_file::load(None)?)
        }
        named => named,
    };
    let tasks_file = match config {
        Some(loaded) => loaded.config.project.tasks_file.to_string(),
        None => ConfigFile::default().project.tasks_file.value,
    };
    Ok(Projections::new(&work_tree, &common, &tasks_file).write(state)?)
}
