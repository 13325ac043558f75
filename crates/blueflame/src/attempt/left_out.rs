//! What is in a workspace and does not go into its snapshots: other
//! repositories, because git would run what their configuration says, and very
//! large files, because they would fill the disk.

use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use blueflame_core::lock_path::LockPath;

/// The largest file that is saved.
const LARGEST: u64 = 50 << 20;

/// Something that is left out, by its path below the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    Repository(Vec<u8>),
    Large(Vec<u8>),
}

impl LeftOut {
    pub fn path(&self) -> &[u8] {
        match self {
            LeftOut::Repository(path) | LeftOut::Large(path) => path,
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(self.path());
        match self {
            LeftOut::Repository(_) => {
                write!(f, "`{path}` is a repository of its own and not in the snapshots")
            }
            LeftOut::Large(_) => {
                write!(f, "`{path}` is larger than {} MiB and not in the snapshots", LARGEST >> 20)
            }
        }
    }
}

/// Looks through a workspace; `None` if that takes too long. No link is
/// followed. What cannot be read is passed over: git says so itself.
pub fn look(workspace: &Path, exclude: &[LockPath], patience: Duration) -> Option<Vec<LeftOut>> {
    let until = Instant::now() + patience;
    let mut found = Vec::new();
    let mut places = vec![workspace.to_owned()];
    while let Some(place) = places.pop() {
        if Instant::now() > until {
            return None;
        }
        let below =
            |path: &Path| path.strip_prefix(workspace).map(|it| it.as_os_str().as_bytes().to_vec());
        let Ok(entries) = fs::read_dir(&place) else { continue };
        let mut directories = Vec::new();
        let mut repository = false;
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let Ok(name) = below(&path) else { continue };
            if entry.file_name() == ".git" {
                repository = true;
            } else if exclude.iter().any(|it| name == it.as_str().trim_end_matches('/').as_bytes())
            {
                // Left out already, by a rule.
            } else if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() && entry.metadata().is_ok_and(|it| it.len() > LARGEST) {
                found.push(LeftOut::Large(name));
            }
        }
        if repository && place != workspace {
            let Ok(name) = below(&place) else { continue };
            // Whatever is large in there is left out with it.
            let inside = |it: &LeftOut| {
                it.path().strip_prefix(name.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
            };
            found.retain(|it| !inside(it));
            found.push(LeftOut::Repository(name));
        } else {
            places.extend(directories);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_and_large_files_are_found_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in [".git", "src/nested/.git", "src/nested/deeper/.git", "target/.git", "a/b"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::create_dir_all(at("linked-module")).unwrap();
        fs::write(at("linked-module/.git"), "gitdir: ../x").unwrap();
        fs::write(at("a/b/small"), "x").unwrap();
        for name in ["a/b/large", "src/nested/large"] {
            fs::File::create(at(name)).unwrap().set_len(LARGEST + 1).unwrap();
        }
        std::os::unix::fs::symlink("/", at("a/everything")).unwrap();
        let exclude = [LockPath::new("target").unwrap()];
        let mut found = look(dir.path(), &exclude, Duration::from_secs(60)).unwrap();
        found.sort_by(|a, b| a.path().cmp(b.path()));
        let expected = [
            LeftOut::Large(b"a/b/large".to_vec()),
            LeftOut::Repository(b"linked-module".to_vec()),
            LeftOut::Repository(b"src/nested".to_vec()),
        ];
        assert_eq!(found, expected);
        assert_eq!(look(dir.path(), &[], Duration::ZERO), None);
    }
}
