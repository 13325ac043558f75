//! How workspaces come by their files, and which way works here.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::config;

use super::{enter, subvolume};
use crate::sandbox::Tier;

/// The ways there are, the quickest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Making {
    /// Laid over a checkout that they share. The program goes into them.
    Layers { blueflame: PathBuf },
    /// As copies of a checkout, which share with it what nobody writes.
    Copies,
    /// Each by a checkout of its own.
    Checkouts,
}

/// What was found to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub making: Making,
    /// Why there are no layers, if there are none.
    pub without_layers: Option<String>,
}

impl Making {
    /// The quickest way for workspaces below a directory, which need not be there yet.
    /// It is tried on the file system that they are on: in the git directory, unless
    /// that is on another.
    pub fn choose(
        worktree: &config::Worktree,
        tier: Tier,
        blueflame: &Path,
        root: &Path,
        common: &Path,
    ) -> Chosen {
        let near = root.ancestors().find(|path| path.is_dir()).unwrap_or(common);
        let system = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let place = if system(near) == system(common) { common } else { near };
        let layers = if !worktree.layers {
            Err("`worktree.layers` is off".to_owned())
        } else if tier == Tier::Namespaces {
            enter::try_out(blueflame, place)
        } else {
            Err("layers need the sandbox `namespaces`".to_owned())
        };
        let Err(why) = layers else {
            let making = Making::Layers { blueflame: blueflame.to_owned() };
            return Chosen { making, without_layers: None };
        };
        let copies = subvolume::try_out(place).is_ok();
        let making = if copies { Making::Copies } else { Making::Checkouts };
        Chosen { making, without_layers: Some(why) }
    }
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.making {
            Making::Layers { .. } => "laid over one checkout that they share: tried, and works",
            Making::Copies => "copies of one checkout (btrfs): tried, and works",
            Making::Checkouts => "a checkout for each agent",
        })?;
        match &self.without_layers {
            Some(why) => write!(f, "; no layers, because {why}"),
            None => Ok(()),
        }
    }
}
