//! Conflicts: where a merger starts, and what becomes of its resolution.
//!
//! A merger gets the fold as far as git can do it, with conflict markers in the
//! files that conflict. What it returns has to be exactly that, except for those
//! files, and becomes one commit for the whole changeset.

use std::collections::BTreeSet;
use std::path::PathBuf;

use blueflame_core::ids::Oid;
use blueflame_core::outcome::Fold;
use jiff::Timestamp;

use super::message::{self, About};
use super::{FoldOrder, Landing, LandingError, Source, shown};
use crate::git::trees::{NewCommit, Signing};

/// A fold that needs a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicted {
    /// A commit on what has landed, with everything folded and conflict
    /// markers where git could not do it.
    pub start: Oid,
    pub files: Vec<String>,
}

/// What git alone makes of a changeset.
#[derive(Clone, Debug)]
pub(super) struct Mechanical {
    /// The tree with everything folded.
    pub commit: Oid,
    pub conflicts: Vec<PathBuf>,
}

impl Landing {
    /// The place where a merger starts.
    pub fn conflicted(&self, order: &FoldOrder) -> Result<Conflicted, LandingError> {
        let whole = self.mechanical(&order.onto, &order.sources())?;
        Ok(Conflicted { start: whole.commit, files: shown(&whole.conflicts) })
    }

    /// What had landed when the place where a merger starts was made.
    pub fn beneath(&self, start: &Oid) -> Result<Oid, LandingError> {
        Ok(self.git.call(["rev-parse", "--verify", &format!("{start}^1")]).answer()?.oid()?)
    }

    /// Makes the changeset's commit of what a merger left: on what had landed
    /// when it started, and on nothing that came since.
    pub fn fold_resolution(&self, order: &FoldOrder, resolved: &Oid) -> Result<Fold, LandingError> {
        let subjects = order.tasks.iter().map(|task| {
            let Source { start, commit, .. } = &task.source;
            self.git.subjects(start, commit)
        });
        let subjects: Vec<Vec<String>> = subjects.collect::<Result<_, _>>()?;
        let abouts: Vec<About<'_>> = order
            .tasks
            .iter()
            .zip(&subjects)
            .map(|(task, subjects)| task.about(subjects))
            .collect();
        let mut message = order.style.resolved(&abouts, &order.session, &order.changeset);
        if let Some(merger) = &order.merger {
            message += &message::merger(merger);
        }
        let commit = self.commit(&NewCommit {
            tree: &self.git.tree_of(resolved)?,
            parents: &[&order.onto],
            message: &message,
            name: &order.author.name,
            email: &order.author.email,
            when: order.when,
            signing: self.signing()?,
        })?;
        self.proof(&order.onto, &commit, &order.sources())?;
        self.folded(&order.session, &order.changeset, &order.onto, commit)
    }

    /// Folds without a person's or an agent's help. The commits in between
    /// are nobody's: they carry trees from one merge to the next.
    pub(super) fn mechanical(
        &self,
        onto: &Oid,
        sources: &[Source],
    ) -> Result<Mechanical, LandingError> {
        let mut commit = onto.clone();
        let mut conflicts = BTreeSet::new();
        for source in sources {
            let merged = self.git.merge_from(&source.start, &commit, &source.commit)?;
            conflicts.extend(merged.conflicts);
            commit = self.git.commit(&NewCommit {
                tree: &merged.tree,
                parents: &[onto],
                message: "fold in progress\n",
                name: "Blue Flame",
                email: "blueflame@localhost",
                when: Timestamp::UNIX_EPOCH,
                signing: Signing::Off,
            })?;
        }
        Ok(Mechanical { commit, conflicts: conflicts.into_iter().collect() })
    }
}
