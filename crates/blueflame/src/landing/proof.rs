//! Proof that what lands is what the tasks did: all of it, and nothing else.
//!
//! Each commit is compared with what git makes of its tasks alone. Where git
//! could do it, the trees are the same, byte for byte. Where it could not, the
//! files that conflicted may differ, but hold no conflict markers, and every
//! other file is the same. Landing asks for this itself.

use std::collections::BTreeSet;
use std::path::PathBuf;

use blueflame_core::ids::{Oid, TaskId};

use super::patch::Link;
use super::{Landing, LandingError, Source, shown, words};
use crate::at_once;

/// A commit that does not hold exactly the work it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("`{task}` is not in what would land")]
    Task { task: TaskId },
    #[error("`{task}` is in what would land, but nobody approved it there")]
    Extra { task: TaskId },
    #[error("`{commit}` names no task")]
    Nobody { commit: Oid },
    #[error("`{commit}` is not what its tasks did, in {}", words(files))]
    Differs { commit: Oid, files: Vec<String> },
    #[error("`{commit}` still has conflict markers in {}", words(files))]
    Markers { commit: Oid, files: Vec<String> },
}

impl Landing {
    /// Whether the commits from `onto` to `commit` are the work of these
    /// tasks, in this order.
    pub fn proof(&self, onto: &Oid, commit: &Oid, sources: &[Source]) -> Result<(), LandingError> {
        let links = self.chain(onto, commit)?;
        let mut left = sources;
        let mut comparisons = Vec::new();
        let mut before = onto;
        for link in &links {
            if link.tasks.is_empty() {
                return Err(Missing::Nobody { commit: link.commit.clone() }.into());
            }
            let (mine, rest) = left.split_at(link.tasks.len().min(left.len()));
            let mut named = mine.iter().map(|source| &source.task);
            if let Some(task) = link.tasks.iter().find(|task| named.next() != Some(*task)) {
                return Err(Missing::Extra { task: task.clone() }.into());
            }
            comparisons.push((before, link, mine));
            (before, left) = (&link.commit, rest);
        }
        if let Some(source) = left.first() {
            return Err(Missing::Task { task: source.task.clone() }.into());
        }
        let compared =
            at_once::each(&comparisons, 1, |(onto, link, mine)| self.compare(onto, link, mine));
        compared.into_iter().collect()
    }

    fn compare(&self, onto: &Oid, link: &Link, sources: &[Source]) -> Result<(), LandingError> {
        let alone = self.merged_alone(onto, sources)?;
        if alone.conflicts.is_empty() && alone.tree == link.tree {
            return Ok(());
        }
        let open: BTreeSet<PathBuf> = alone.conflicts.into_iter().collect();
        let changes = self.git.changes(&alone.tree, &link.tree)?;
        let other: Vec<PathBuf> = changes
            .into_iter()
            .map(|change| change.path)
            .filter(|path| !open.contains(path))
            .collect();
        let commit = link.commit.clone();
        if !other.is_empty() {
            return Err(Missing::Differs { commit, files: shown(&other) }.into());
        }
        let marked = self.marked(onto, &commit, &open)?;
        if marked.is_empty() {
            return Ok(());
        }
        Err(Missing::Markers { commit, files: shown(&marked) }.into())
    }

    /// The files in which the change adds lines that open or close a conflict.
    fn marked(
        &self,
        onto: &Oid,
        commit: &Oid,
        among: &BTreeSet<PathBuf>,
    ) -> Result<Vec<PathBuf>, LandingError> {
        let mut marked = Vec::new();
        for change in self.git.changes(onto, commit)? {
            let Some(new) = change.new.filter(|_| among.contains(&change.path)) else { continue };
            let text = self.git.call(["cat-file", "blob", new.oid.as_str()]).answer()?.stdout;
            let has =
                |marker: &[u8]| text.split(|byte| *byte == b'\n').any(|l| l.starts_with(marker));
            if has(b"<<<<<<< ") && has(b">>>>>>> ") {
                marked.push(change.path);
            }
        }
        Ok(marked)
    }
}
