//! What a repository brings along for `bd`: hooks that it runs with all rights of
//! the person, and settings that it obeys.

use std::fs;
use std::path::Path;

use super::{directory, program::Unusable};
use crate::git::Git;

/// Refuses what somebody else may have put there.
pub fn refuse(repository: &Path) -> Result<(), Unusable> {
    let refused = |what: &str| Err(Unusable::BroughtAlong { what: what.to_owned() });
    let hooks = directory(repository).join("hooks");
    // What is there but cannot be listed may be anything.
    let has_hooks = match fs::read_dir(&hooks) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => hooks.symlink_metadata().is_ok(),
    };
    if has_hooks {
        return refused("`.beads/hooks` has hooks in it, which it would run without a sandbox");
    }
    match Git::in_dir(repository).is_tracked(".beads") {
        Ok(false) => Ok(()),
        Ok(true) => refused("`.beads` is committed, and so comes from whoever can commit"),
        Err(_) => refused("git does not say whether `.beads` is committed"),
    }
}
