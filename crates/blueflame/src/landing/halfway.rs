//! A publication that was cut short in a person's checkout.
//!
//! git writes files one by one, then the index, then the branch. Killed in
//! between, it leaves some files new, lock files, and a branch that has not moved.
//! Removing the locks and trying again is not enough, because git then takes its
//! own half-written files for the person's. So each path that it was about to
//! change is looked at. What is provably git's doing is put back: the old content,
//! the new content, the beginning of the new content, or nothing at all. Before
//! git started, none of these paths held anything that was not committed; so
//! whatever else is there now was put there by the person since. Then nothing is
//! touched, and the person is told.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;

use super::checkout::some;
use super::intent::Intent;
use super::moving::{another_git, remove_if_newer};
use super::{Landing, LandingError, branch_ref};
use crate::git::GitError;
use crate::git::plumbing::Plumbing;
use crate::git::trees::{Entry, Kind, PathChange};

/// Whether a publication that was cut short is out of the way.
#[derive(Debug)]
#[must_use]
pub(super) enum Halfway {
    Clear,
    Stuck(String),
}

/// What a path holds, seen from the two commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Old,
    /// Something that git left on its way to the new commit.
    Ours,
    Theirs,
}

impl Landing {
    /// Puts a checkout back to where a publication found it, if one was cut
    /// short there.
    pub(super) fn finish_halfway(&self) -> Result<Halfway, LandingError> {
        let Some((intent, at_work)) = self.declared_at_rest()? else { return Ok(Halfway::Clear) };
        let Intent { branch, old, new, worktree } = &intent;
        let place = worktree.display();
        if at_work {
            return Ok(Halfway::Stuck(format!(
                "git is still bringing `{branch}` forward in `{place}`; `blueflame publish` in a while"
            )));
        }
        if !worktree.is_dir() {
            self.take_back()?;
            return Ok(Halfway::Clear);
        }
        let here = std::slice::from_ref(worktree);
        if let Some(pid) = self.patiently(|| another_git(here)) {
            return Ok(Halfway::Stuck(format!(
                "git is at work in `{place}` (process {pid}); `blueflame publish` when it is done"
            )));
        }
        let git = self.git.in_worktree(worktree);
        let base = self.git.commit_at(&branch_ref(branch))?;
        if base.as_ref() == Some(new) {
            // The branch moves last: everything else was done.
            self.clear_locks(&git, &intent)?;
            self.take_back()?;
            return Ok(Halfway::Clear);
        }
        let head = git.head()?;
        if base.as_ref() != Some(old) || head != Some(branch_ref(branch)) {
            // The person has gone on from there; what is there now is theirs.
            self.take_back()?;
            return Ok(Halfway::Clear);
        }
        self.clear_locks(&git, &intent)?;
        let changes = self.git.changes(old, new)?;
        let theirs = theirs(&git, worktree, &changes)?;
        if !theirs.is_empty() {
            return Ok(Halfway::Stuck(format!(
                "bringing `{branch}` forward was cut short in `{place}`, and {} changed since; \
                 move that away, then `blueflame publish`",
                some(&theirs)
            )));
        }
        if let Some(path) = put_back(&git, worktree, old, &changes)? {
            return Ok(Halfway::Stuck(format!(
                "bringing `{branch}` forward was cut short in `{place}`, and `{}` now has files of \
                 its own; move them away, then `blueflame publish`",
                path.display()
            )));
        }
        self.take_back()?;
        Ok(Halfway::Clear)
    }

    /// Removes the locks that our git took and can no longer give back. It is
    /// gone, and no other git is at work there.
    fn clear_locks(&self, git: &Plumbing, intent: &Intent) -> Result<(), LandingError> {
        let git_dir = git.worktree_git_dir()?;
        let branch = format!("{}.lock", branch_ref(&intent.branch));
        let mut locks = vec![
            git_dir.join("index.lock"),
            git_dir.join("HEAD.lock"),
            git_dir.join("ORIG_HEAD.lock"),
            git_dir.join("AUTO_MERGE.lock"),
            self.common_dir.join(branch),
        ];
        // This one a git in any other checkout may have taken.
        if !self.git_at_work()? {
            locks.push(self.common_dir.join("packed-refs.lock"));
        }
        for lock in locks {
            remove_if_newer(&lock, &self.intent_path())?;
        }
        Ok(())
    }
}

/// The paths that hold something git cannot have left.
fn theirs(
    git: &Plumbing,
    worktree: &Path,
    changes: &[PathChange],
) -> Result<Vec<PathBuf>, LandingError> {
    let mut theirs = Vec::new();
    for change in changes {
        if look(git, worktree, change)? == Holds::Theirs {
            theirs.push(change.path.clone());
        }
    }
    Ok(theirs)
}

fn look(git: &Plumbing, worktree: &Path, change: &PathChange) -> Result<Holds, LandingError> {
    let path = worktree.join(&change.path);
    let failed = |source| LandingError::File { step: "read", path: path.clone(), source };
    let sides = [&change.old, &change.new];
    if sides.iter().any(|side| side.as_ref().is_some_and(|entry| entry.kind == Kind::Submodule)) {
        // git leaves the files of submodules alone.
        return Ok(Holds::Old);
    }
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(error) if is_absence(&error) => {
            return Ok(if change.old.is_none() { Holds::Old } else { Holds::Ours });
        }
        Err(error) => return Err(failed(error)),
    };
    if found.is_dir() {
        return Ok(match (&change.old, &change.new) {
            // The directory that becomes a file, still there.
            (None, _) => Holds::Old,
            // The file became a directory; whether anything else is in it
            // turns out when it is removed.
            (Some(_), None) => Holds::Ours,
            (Some(_), Some(_)) => Holds::Theirs,
        });
    }
    if !parents_are_directories(worktree, &change.path) {
        return Ok(if change.old.is_none() { Holds::Old } else { Holds::Theirs });
    }
    let content = if found.is_symlink() {
        fs::read_link(&path).map_err(failed)?.as_os_str().as_bytes().to_vec()
    } else if found.is_file() {
        fs::read(&path).map_err(failed)?
    } else {
        return Ok(Holds::Theirs);
    };
    if let Some(old) = &change.old
        && content == written(git, old, &change.path)?
        && found.is_symlink() == (old.kind == Kind::Link)
    {
        let same = found.is_symlink() || is_executable(&found) == (old.kind == Kind::Executable);
        return Ok(if same { Holds::Old } else { Holds::Ours });
    }
    if let Some(new) = &change.new
        && found.is_symlink() == (new.kind == Kind::Link)
        && written(git, new, &change.path)?.starts_with(&content)
    {
        return Ok(Holds::Ours);
    }
    let empty = content.is_empty() && found.is_file();
    Ok(if empty && change.old.is_some() && change.new.is_some() {
        Holds::Ours
    } else {
        Holds::Theirs
    })
}

/// The bytes that git writes to a work tree for an entry.
fn written(git: &Plumbing, entry: &Entry, path: &Path) -> Result<Vec<u8>, GitError> {
    let oid = entry.oid.as_str();
    if entry.kind == Kind::Link {
        return Ok(git.call(["cat-file", "blob", oid]).answer()?.stdout);
    }
    let mut named = std::ffi::OsString::from("--path=");
    named.push(path);
    Ok(git.call(["cat-file", "--filters"]).words([named]).words([oid]).answer()?.stdout)
}

/// Puts the old commit's version of each path into index and work tree. Gives
/// the directory that is in the way of one, if there is such.
fn put_back(
    git: &Plumbing,
    worktree: &Path,
    old: &Oid,
    changes: &[PathChange],
) -> Result<Option<PathBuf>, LandingError> {
    let (before, added): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.old.is_some());
    for change in &added {
        if look(git, worktree, change)? == Holds::Ours {
            remove(worktree, &change.path)?;
        }
    }
    if !added.is_empty() {
        git.call(["update-index", "--force-remove", "-z", "--stdin"])
            .input(names(added))
            .answer()?;
    }
    let mut ours = Vec::new();
    for change in &before {
        if look(git, worktree, change)? != Holds::Ours {
            continue;
        }
        let path = worktree.join(&change.path);
        if path.is_dir() && !path.is_symlink() && fs::remove_dir(&path).is_err() {
            return Ok(Some(change.path.clone()));
        }
        ours.push(*change);
    }
    // First the index, which may be the new one already; then only files that
    // are provably not the person's.
    for (how, which) in [("--staged", before), ("--worktree", ours)] {
        if !which.is_empty() {
            git.call(["restore", &format!("--source={old}"), how, "--pathspec-file-nul"])
                .words(["--pathspec-from-file=-"])
                .input(names(which))
                .answer()?;
        }
    }
    Ok(None)
}

/// Removes a file, and the directories that are empty without it.
fn remove(worktree: &Path, path: &Path) -> Result<(), LandingError> {
    let full = worktree.join(path);
    match fs::remove_file(&full) {
        Err(source) if !is_absence(&source) => {
            return Err(LandingError::File { step: "remove", path: full, source });
        }
        _ => {}
    }
    for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
        if fs::remove_dir(worktree.join(parent)).is_err() {
            break;
        }
    }
    Ok(())
}

fn names<'a>(changes: impl IntoIterator<Item = &'a PathChange>) -> Vec<u8> {
    let mut names = Vec::new();
    for change in changes {
        names.extend_from_slice(change.path.as_os_str().as_bytes());
        names.push(0);
    }
    names
}

fn parents_are_directories(worktree: &Path, path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .filter(|parent| !parent.as_os_str().is_empty())
        .all(|parent| fs::symlink_metadata(worktree.join(parent)).is_ok_and(|found| found.is_dir()))
}

fn is_executable(found: &Metadata) -> bool {
    found.permissions().mode() & 0o100 != 0
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
