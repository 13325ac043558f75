//! Where a task starts: the base, with the finished work of the tasks that it
//! builds on.
//!
//! Merges are made of objects alone, and the commits follow from what goes
//! into them: the same work always gives the same commit, so a start that was
//! made before a crash is the one that is made after it.

use blueflame_core::ids::Oid;

use super::Workspaces;
use super::plain::PlainRepository;
use crate::git::GitError;

/// What came of putting the work together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum StartPoint {
    Ready(Oid),
    /// A task's work does not fit on what stands before it.
    Conflict {
        dependency: Oid,
        files: Vec<String>,
    },
}

/// Two sides as one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merged {
    pub tree: Oid,
    pub conflicts: Vec<String>,
}

impl Workspaces {
    /// Merges the dependencies, in this order, onto the base.
    pub fn starting_point(&self, base: &Oid, dependencies: &[Oid]) -> Result<StartPoint, GitError> {
        let mut at = base.clone();
        for dependency in dependencies {
            if contains(&self.plain, &at, dependency)? {
                continue;
            }
            if contains(&self.plain, dependency, &at)? {
                at = dependency.clone();
                continue;
            }
            let merged = merge(&self.plain, None, &at, dependency)?;
            if !merged.conflicts.is_empty() {
                let dependency = dependency.clone();
                return Ok(StartPoint::Conflict { dependency, files: merged.conflicts });
            }
            at = self.join(&at, dependency, &merged.tree)?;
        }
        Ok(StartPoint::Ready(at))
    }

    fn join(&self, at: &Oid, dependency: &Oid, tree: &Oid) -> Result<Oid, GitError> {
        let show = |commit: &Oid| {
            let words = ["show", "--no-patch", "--format=%ct", commit.as_str()];
            let answer = self.plain.git().words(&words).run()?;
            let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
            text.parse::<i64>().map_err(|_| answer.strange(text.as_bytes()))
        };
        // Never before its parents: git's walks through history rely on dates.
        let date = format!("@{} +0000", show(at)?.max(show(dependency)?));
        self.plain
            .git()
            .variable("GIT_AUTHOR_NAME", "Blue Flame")
            .variable("GIT_AUTHOR_EMAIL", "blueflame@localhost")
            .variable("GIT_AUTHOR_DATE", &date)
            .variable("GIT_COMMITTER_NAME", "Blue Flame")
            .variable("GIT_COMMITTER_EMAIL", "blueflame@localhost")
            .variable("GIT_COMMITTER_DATE", &date)
            .words(&["commit-tree", "-p", at.as_str(), "-p", dependency.as_str()])
            .words(&["-m", "Start from the work of another task", tree.as_str()])
            .oid()
    }
}

/// Whether a commit is, or comes after, another.
pub(super) fn contains(
    plain: &PlainRepository,
    commit: &Oid,
    other: &Oid,
) -> Result<bool, GitError> {
    let words = ["merge-base", "--is-ancestor", other.as_str(), commit.as_str()];
    let answer = plain.git().words(&words).run()?;
    Ok(answer.if_any()?.is_some())
}

/// Merges two commits, from where they parted or from a given commit.
pub(super) fn merge(
    plain: &PlainRepository,
    parted: Option<&Oid>,
    ours: &Oid,
    theirs: &Oid,
) -> Result<Merged, GitError> {
    let mut call = plain.git().words(&["merge-tree", "--write-tree", "-z"]);
    call = call.words(&["--name-only", "--no-messages"]);
    if let Some(parted) = parted {
        call = call.word(format!("--merge-base={parted}"));
    }
    let answer = call.words(&[ours.as_str(), theirs.as_str()]).run()?;
    if !matches!(answer.status.code(), Some(0 | 1)) {
        return Err(answer.failure());
    }
    let mut parts = answer.stdout.split(|byte| *byte == 0);
    let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let tree = Oid::new(tree.as_str()).map_err(|_| answer.strange(tree.as_bytes()))?;
    let files = parts.filter(|part| !part.is_empty());
    let conflicts: Vec<String> =
        files.map(|file| String::from_utf8_lossy(file).into_owned()).collect();
    // Without a list of files, 1 would be an error and not a conflict.
    if answer.status.success() || !conflicts.is_empty() {
        Ok(Merged { tree, conflicts })
    } else {
        Err(answer.failure())
    }
}
