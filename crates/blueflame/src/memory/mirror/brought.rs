//! What a repository brings along for `bd`: hooks that it runs with all rights of
//! the person, and settings that it obeys.

use std::fs;
use std::path::{Path, PathBuf};

use super::place::Place;
use crate::git::Git;

/// What somebody else may have put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along {
    /// In words.
    pub what: &'static str,
    /// Another one if it is not the same any more.
    pub mark: String,
}

pub fn along(place: &Place) -> Option<Along> {
    let hooks = place.directory.join("hooks");
    // What is there but cannot be listed may be anything.
    let has_hooks = match fs::read_dir(&hooks) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => hooks.symlink_metadata().is_ok(),
    };
    if has_hooks {
        let what = "`.beads/hooks` has hooks in it, which `bd` runs without a sandbox";
        return Some(Along { what, mark: format!("hooks {}", fingerprint(&hooks)) });
    }
    let (what, mark) = match Git::in_dir(&place.home).is_tracked(".beads") {
        Ok(false) => return None,
        Ok(true) => ("`.beads` is committed, and so comes from whoever can commit", "committed"),
        Err(_) => ("git does not say whether `.beads` is committed", "unknown"),
    };
    Some(Along { what, mark: mark.to_owned() })
}

/// Of all files in a directory, as far as they can be read.
fn fingerprint(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let mut hasher = blake3::Hasher::new();
    for path in paths {
        let text = if path.is_dir() {
            fingerprint(&path).into_bytes()
        } else {
            fs::read(&path).unwrap_or_default()
        };
        for part in [path.as_os_str().as_encoded_bytes(), &text] {
            hasher.update(blake3::hash(part).as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_that_come_or_change_are_something_else() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::in_directory(home.path());
        let hooks = place.directory.join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        let none = along(&place).map(|it| it.mark);
        let mark_with = |name: &str, text: &str| {
            fs::write(hooks.join(name), text).unwrap();
            along(&place).unwrap().mark
        };
        let one = mark_with("on_update", "echo hello\n");
        assert_ne!(Some(&one), none.as_ref());
        assert_eq!(mark_with("on_update", "echo hello\n"), one, "nothing changed");
        let other = mark_with("on_update", "echo other\n");
        assert_ne!(other, one);
        assert_ne!(mark_with("on_create", ""), other);
    }
}
