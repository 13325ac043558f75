//! Moving refs so that a git which dies over it leaves nothing in the way.
//!
//! git locks each ref by a file beside it. A machine that stops at that moment
//! leaves the files, and with them a base branch that nobody can commit to. So the
//! locks that git is about to take are written down first, and the next time those
//! that are still there are removed, unless a git is at work in the repository.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Landing, LandingError};
use crate::atomic_file::{self, Durability};
use crate::git::GitError;
use crate::git::refs::{Moved, RefChange};

impl Landing {
    /// Changes several refs, or none; no hook is asked.
    pub(super) fn move_refs(
        &self,
        changes: &[RefChange<'_>],
        why: &str,
    ) -> Result<Moved, LandingError> {
        self.move_refs_with_hooks(changes, why, Path::new("/dev/null"))
    }

    pub(super) fn move_refs_with_hooks(
        &self,
        changes: &[RefChange<'_>],
        why: &str,
        hooks: &Path,
    ) -> Result<Moved, LandingError> {
        let note = self.common_dir.join("blueflame/moving.json");
        self.clear_noted(&note)?;
        let refs = changes.iter().map(|change| format!("{}.lock", change.name()));
        let others = ["HEAD.lock", "packed-refs.lock"].map(str::to_owned);
        let locks: Vec<String> = refs.chain(others).collect();
        let failed = |source| LandingError::File { step: "write", path: note.clone(), source };
        let bytes = serde_json::to_vec(&locks).map_err(|error| failed(io::Error::other(error)))?;
        if let Some(parent) = note.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        atomic_file::replace(&note, &bytes, Durability::Power)
            .map_err(|error| failed(error.source))?;
        let moved = self.git.change_refs_with_hooks(changes, why, &hooks.to_string_lossy())?;
        remove(&note)?;
        match moved {
            // It may have been done all the same, and only what came after failed.
            Moved::Refused(_) if self.hold(changes)? => Ok(Moved::Done),
            moved => Ok(moved),
        }
    }

    /// Whether the refs are where the changes would have moved them.
    fn hold(&self, changes: &[RefChange<'_>]) -> Result<bool, LandingError> {
        for change in changes {
            match change {
                RefChange::Verify { .. } => {}
                RefChange::Move { name, to, .. } | RefChange::Set { name, to } => {
                    if self.git.commit_at(name)?.as_ref() != Some(*to) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Moves refs of our own, which nothing but a broken repository refuses.
    pub(super) fn set_refs(
        &self,
        changes: &[RefChange<'_>],
        why: &str,
    ) -> Result<(), LandingError> {
        match self.move_refs(changes, why)? {
            Moved::Done => Ok(()),
            Moved::Refused(message) => Err(refused(message)),
        }
    }

    fn clear_noted(&self, note: &Path) -> Result<(), LandingError> {
        let Ok(bytes) = fs::read(note) else { return Ok(()) };
        if self.git_at_work()? {
            return Ok(());
        }
        // Written whole, so if it cannot be read, it is none of ours.
        let locks: Vec<PathBuf> = serde_json::from_slice(&bytes).unwrap_or_default();
        for lock in locks {
            remove_if_newer(&self.common_dir.join(lock), note)?;
        }
        remove(note)
    }

    /// Whether somebody runs git anywhere in the repository.
    pub(super) fn git_at_work(&self) -> Result<bool, LandingError> {
        let worktrees = self.git.worktrees()?.into_iter().map(|worktree| worktree.path);
        let places: Vec<PathBuf> = worktrees.chain([self.common_dir.clone()]).collect();
        Ok(self.patiently(|| another_git(&places)).is_some())
    }
}

pub(super) fn refused(message: String) -> LandingError {
    GitError::Failed { command: "update-ref".into(), status: "a refusal".into(), message }.into()
}

/// A git that somebody runs in one of these places.
pub(super) fn another_git(places: &[PathBuf]) -> Option<u32> {
    let places: Vec<PathBuf> =
        places.iter().filter_map(|place| place.canonicalize().ok()).collect();
    let is_git_here = |process: &Path| {
        // A name has 15 bytes at most, and all processes there are have one to be read.
        let mut name = [0; 16];
        let comm = File::open(process.join("comm")).and_then(|mut file| file.read(&mut name));
        let name = &name[..comm.unwrap_or(0)];
        (name == b"git\n" || name.starts_with(b"git-"))
            && fs::read_link(process.join("cwd"))
                .is_ok_and(|cwd| places.iter().any(|place| cwd.starts_with(place)))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .find(|(_, path): &(u32, PathBuf)| is_git_here(path))
        .map(|(pid, _)| pid)
}

/// Removes a lock that was taken after the file that announced it.
pub(super) fn remove_if_newer(lock: &Path, announced: &Path) -> Result<(), LandingError> {
    if modified(lock) < modified(announced) { Ok(()) } else { remove(lock) }
}

fn remove(path: &Path) -> Result<(), LandingError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(LandingError::File { step: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// When a file was last written; `None` if it is not there.
fn modified(path: &Path) -> Option<(i64, i64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.mtime(), found.mtime_nsec()))
}
