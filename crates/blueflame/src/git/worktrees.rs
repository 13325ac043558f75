//! The checkouts of a repository, and what a person is in the middle of there.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::GitError;
use super::plumbing::Plumbing;

/// One checkout of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    pub path: PathBuf,
    /// The full name of the branch; `None` when detached.
    pub branch: Option<String>,
}

/// Something a person began in a checkout and has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    Merge,
    Rebase,
    CherryPick,
    Revert,
    Bisect,
}

impl Unfinished {
    pub fn name(self) -> &'static str {
        match self {
            Unfinished::Merge => "merge",
            Unfinished::Rebase => "rebase",
            Unfinished::CherryPick => "cherry-pick",
            Unfinished::Revert => "revert",
            Unfinished::Bisect => "bisect",
        }
    }
}

const TRACES: [(&str, Unfinished); 8] = [
    ("rebase-merge", Unfinished::Rebase),
    ("rebase-apply", Unfinished::Rebase),
    ("MERGE_HEAD", Unfinished::Merge),
    ("CHERRY_PICK_HEAD", Unfinished::CherryPick),
    ("REVERT_HEAD", Unfinished::Revert),
    ("sequencer", Unfinished::CherryPick),
    ("BISECT_LOG", Unfinished::Bisect),
    ("BISECT_START", Unfinished::Bisect),
];

/// Files in which an unfinished operation notes the branches it goes back to.
const BRANCHES_IN_USE: [&str; 4] = [
    "rebase-merge/head-name",
    "rebase-apply/head-name",
    "rebase-merge/update-refs",
    "BISECT_START",
];

impl Plumbing {
    /// All checkouts; a bare repository itself is none.
    pub fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let ran = self.call(["worktree", "list", "--porcelain", "-z"]).answer()?;
        let mut found: Vec<Worktree> = Vec::new();
        let mut bare = Vec::new();
        for field in ran.fields() {
            if let Some(path) = field.strip_prefix(b"worktree ") {
                let path = PathBuf::from(OsString::from_vec(path.to_vec()));
                found.push(Worktree { path, branch: None });
            } else if let Some(branch) = field.strip_prefix(b"branch ") {
                let last = found.last_mut().ok_or_else(|| ran.strange())?;
                last.branch = Some(String::from_utf8_lossy(branch).into_owned());
            } else if field == b"bare" {
                bare.extend(found.last().map(|worktree| worktree.path.clone()));
            }
        }
        found.retain(|worktree| !bare.contains(&worktree.path));
        Ok(found)
    }

    /// The git directory of the checkout that these calls are made in.
    pub fn worktree_git_dir(&self) -> Result<PathBuf, GitError> {
        let mut ran = self.call(["rev-parse", "--absolute-git-dir"]).answer()?;
        if ran.stdout.last() == Some(&b'\n') {
            ran.stdout.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(ran.stdout)))
    }
}

/// What a person is in the middle of, by the traces in a git directory.
pub fn unfinished(git_dir: &Path) -> Option<Unfinished> {
    let begun = |(name, what): &(&str, Unfinished)| {
        fs::symlink_metadata(git_dir.join(name)).is_ok().then_some(*what)
    };
    TRACES.iter().find_map(begun)
}

/// Whether an unfinished operation will come back to this branch.
pub fn will_return_to(git_dir: &Path, branch: &str) -> bool {
    let full = format!("refs/heads/{branch}");
    BRANCHES_IN_USE.iter().any(|name| {
        let Ok(text) = fs::read(git_dir.join(name)) else { return false };
        let mut lines = text.split(|byte| *byte == b'\n');
        lines.any(|line| line == branch.as_bytes() || line == full.as_bytes())
    })
}

/// The git directories of all checkouts, also of those that are gone.
pub fn git_dirs(common_dir: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![common_dir.to_owned()];
    let linked = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    dirs.extend(linked.map(|entry| entry.path()));
    dirs.sort_by(|one, other| one.as_os_str().as_bytes().cmp(other.as_os_str().as_bytes()));
    dirs
}
