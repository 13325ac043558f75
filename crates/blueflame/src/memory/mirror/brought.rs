//! What a repository brings along for `bd`: hooks that it runs with all rights of
//! the person, and settings that it obeys.

use std::fs;

use super::place::Place;
use crate::git::Git;

/// What somebody else may have put there, in words.
pub fn along(place: &Place) -> Option<&'static str> {
    let hooks = place.directory.join("hooks");
    // What is there but cannot be listed may be anything.
    let has_hooks = match fs::read_dir(&hooks) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => hooks.symlink_metadata().is_ok(),
    };
    if has_hooks {
        return Some("`.beads/hooks` has hooks in it, which `bd` runs without a sandbox");
    }
    match Git::in_dir(&place.home).is_tracked(".beads") {
        Ok(false) => None,
        Ok(true) => Some("`.beads` is committed, and so comes from whoever can commit"),
        Err(_) => Some("git does not say whether `.beads` is committed"),
    }
}
