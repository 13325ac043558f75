//! Publishing into a person's checkout.
//!
//! git moves branch, index and files forward together, and only if nothing that
//! is not committed stands in the way: changed and staged files, untracked files,
//! and also ignored ones, which git would overwrite unless told otherwise. All of
//! that is looked at first, so that the person hears which files it is about; git
//! looks again and has the last word. Nothing is ever stashed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::halfway::Halfway;
use super::intent::Intent;
use super::{Landing, LandingError, Publication, PublishOrder, branch_ref, shown, words};
use crate::git::GitError;
use crate::git::plumbing::Plumbing;
use crate::git::trees::PathChange;
use crate::git::worktrees::unfinished;

/// It writes as many files as have changed, so it gets longer than a question.
const DEADLINE: Duration = Duration::from_secs(300);

/// So many files are named to the person.
const NAMED: usize = 5;

impl Landing {
    pub(super) fn forward_checkout(
        &self,
        order: &PublishOrder,
        worktree: &Path,
    ) -> Result<Publication, LandingError> {
        let PublishOrder { base_branch: branch, expected, commit, .. } = order;
        let git = self.git.in_worktree(worktree);
        let git_dir = git.worktree_git_dir()?;
        if let Some(what) = unfinished(&git_dir) {
            return Ok(Publication::waiting(format!(
                "a {} is not finished in `{}`; finish or abort it, then `blueflame publish`",
                what.name(),
                worktree.display()
            )));
        }
        let lock = git_dir.join("index.lock");
        if self.patiently(|| fs::symlink_metadata(&lock).ok()).is_some() {
            return Ok(Publication::waiting(format!(
                "`{}` is there: another git works in `{}`, or one died there; when none does, \
                 remove the file, then `blueflame publish`",
                lock.display(),
                worktree.display()
            )));
        }
        let changes = self.git.changes(expected, commit)?;
        let in_the_way = match in_the_way(&git, worktree, &changes) {
            // As with a filter of the person's whose program is not installed.
            Err(GitError::Failed { message, .. }) => {
                return Ok(Publication::waiting(format!(
                    "`git status` fails in `{}`: {}; when it works there, `blueflame publish`",
                    worktree.display(),
                    message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
                )));
            }
            looked => looked?,
        };
        if !in_the_way.is_empty() {
            return Ok(Publication::waiting(format!(
                "{} in `{}` would be overwritten; commit, stash or move {}, then \
                 `blueflame publish`",
                some(&in_the_way),
                worktree.display(),
                if in_the_way.len() == 1 { "it" } else { "them" }
            )));
        }
        let intent = Intent {
            branch: branch.clone(),
            old: expected.clone(),
            new: commit.clone(),
            worktree: worktree.to_owned(),
        };
        let locked = self.declare(&intent)?;
        // A person may have switched branches a moment ago; git would then
        // move that one.
        let head = git.head()?;
        if head != Some(branch_ref(branch)) {
            self.take_back()?;
            return Ok(Publication::waiting(format!(
                "`{}` was switched to another branch just now; `blueflame publish` tries again",
                worktree.display()
            )));
        }
        let hooks = self.veto_hooks()?;
        let ran = git
            .call(["merge", "--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-squash"])
            .words(["--quiet", "--no-stat", commit.as_str()])
            .setting(format!("core.hooksPath={}", hooks.display()))
            .setting(format!("branch.{branch}.mergeOptions="))
            .holding(locked)
            .deadline(DEADLINE)
            .run();
        let message = match ran {
            Ok(ran) if ran.status.success() => String::new(),
            Ok(ran) => ran.stderr,
            Err(error @ GitError::TooSlow { .. }) => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        // Also a git that gave up may have been halfway, as with a full disk.
        if let Halfway::Stuck(reason) = self.finish_halfway()? {
            return Ok(Publication::waiting(reason));
        }
        self.why_not(order, &message)
    }
}

/// What is not committed and would be written over.
fn in_the_way(
    git: &Plumbing,
    worktree: &Path,
    changes: &[PathChange],
) -> Result<Vec<PathBuf>, GitError> {
    let ran = git
        .call(["status", "--porcelain", "-z", "--untracked-files=no", "--no-renames"])
        .words(["--ignore-submodules=all"])
        .answer()?;
    let dirty = ran.fields().filter_map(|field| field.get(3..));
    let dirty: BTreeSet<PathBuf> =
        dirty.map(|name| PathBuf::from(OsString::from_vec(name.to_vec()))).collect();
    let tracked: BTreeSet<&Path> = changes
        .iter()
        .filter(|change| change.old.is_some())
        .map(|change| change.path.as_path())
        .collect();
    let mut found = BTreeSet::new();
    for change in changes {
        if dirty.contains(&change.path) {
            found.insert(change.path.clone());
        }
        if change.old.is_none() {
            found.extend(occupied(worktree, &change.path, &tracked));
        }
    }
    Ok(found.into_iter().collect())
}

/// What has the place of a new file: something of that name, or something that
/// is no directory where one is needed.
fn occupied(worktree: &Path, path: &Path, tracked: &BTreeSet<&Path>) -> Option<PathBuf> {
    let lies_there = |path: &Path| fs::symlink_metadata(worktree.join(path)).ok();
    let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    for parent in parents {
        if tracked.contains(parent) {
            // A committed file makes way for a directory; git sees to that.
            return None;
        }
        if lies_there(parent).is_some_and(|found| !found.is_dir()) {
            return Some(parent.to_owned());
        }
    }
    let found = lies_there(path)?;
    let makes_way = |inner: &&Path| inner.starts_with(path) && **inner != *path;
    if found.is_dir() && tracked.iter().any(makes_way) {
        // A committed directory makes way for a file, if nothing else is in it.
        return None;
    }
    Some(path.to_owned())
}

/// The first of them, and how many more there are.
pub(super) fn some(paths: &[PathBuf]) -> String {
    let named = words(&shown(&paths[..paths.len().min(NAMED)]));
    match paths.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
