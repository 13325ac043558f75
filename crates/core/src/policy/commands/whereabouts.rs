//! In which directories a command may find itself, and what of the disk is taken to
//! stay as it is.

use std::collections::BTreeSet;

use super::super::verdict::{Rule, deny};
use super::Walked;

pub(super) type Directories = BTreeSet<String>;

/// Where a command may leave the shell: when it succeeds, and when it fails.
pub(super) struct After {
    pub success: Directories,
    pub failure: Directories,
    /// Where the shell stays if a `cd` fails although its directory is there.
    pub stray: Directories,
}

impl After {
    pub fn unchanged(directories: &Directories) -> Self {
        After {
            success: directories.clone(),
            failure: directories.clone(),
            stray: Directories::new(),
        }
    }

    /// Where the next command finds itself, as far as can be expected.
    pub fn either(&self) -> Directories {
        &self.success | &self.failure
    }

    /// Where a command finds itself that is run because this one failed.
    pub fn failed(&self) -> Directories {
        &self.failure | &self.stray
    }

    pub fn anywhere(&self) -> Directories {
        &self.success | &self.failed()
    }
}

/// What is there now is taken to be there when the line is run, as far as the line
/// itself leaves it alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Trust {
    /// Directories stay where they are.
    pub directories: bool,
    /// No names are added.
    pub names: bool,
}

/// A loop that went somewhere else with each round could end up anywhere.
pub(super) fn stays(from: &Directories, end: &Directories) -> Walked<After> {
    if end.is_subset(from) {
        return Ok(After::unchanged(from));
    }
    deny(Rule::CommandArgument, "`cd` in a loop is not followed. Use `( cd DIR && ... )`.")
}
