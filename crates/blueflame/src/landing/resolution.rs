//! Conflicts: where a merger starts, and what becomes of its resolution.
//!
//! A merger gets the fold as far as git can do it, with conflict markers in the
//! files that conflict. What it returns has to be exactly that, except for those
//! files, and becomes one commit for the whole changeset.

use blueflame_core::ids::Oid;
use blueflame_core::outcome::Fold;
use jiff::Timestamp;

use super::message::{self, About};
use super::{FoldOrder, Landing, LandingError, Source, shown};
use crate::git::trees::{MergedTree, NewCommit, Signing};

/// A fold that needs a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicted {
    /// A commit on what has landed, with everything folded and conflict
    /// markers where git could not do it.
    pub start: Oid,
    pub files: Vec<String>,
}

impl Landing {
    /// The place where a merger starts.
    pub fn conflicted(&self, order: &FoldOrder) -> Result<Conflicted, LandingError> {
        let whole = self.merged_alone(&order.onto, &order.sources())?;
        let start = self.in_progress(&order.onto, &whole.tree)?;
        Ok(Conflicted { start, files: shown(&whole.conflicts) })
    }

    /// What had landed when the place where a merger starts was made.
    pub fn beneath(&self, start: &Oid) -> Result<Oid, LandingError> {
        Ok(self.git.call(["rev-parse", "--verify", &format!("{start}^1")]).answer()?.oid()?)
    }

    /// Makes the changeset's commit of what a merger left: on what had landed
    /// when it started, and on nothing that came since.
    pub fn fold_resolution(&self, order: &FoldOrder, resolved: &Oid) -> Result<Fold, LandingError> {
        let subjects = self.subjects(order)?;
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

    /// What git alone makes of a changeset, without a person's or an agent's help.
    pub(super) fn merged_alone(
        &self,
        onto: &Oid,
        sources: &[Source],
    ) -> Result<MergedTree, LandingError> {
        let mut whole: Option<MergedTree> = None;
        for source in sources {
            let before = match &whole {
                Some(whole) => &self.in_progress(onto, &whole.tree)?,
                None => onto,
            };
            let mut merged = self.git.merge_from(&source.start, before, &source.commit)?;
            merged.conflicts.extend(whole.into_iter().flat_map(|it| it.conflicts));
            merged.conflicts.sort();
            merged.conflicts.dedup();
            whole = Some(merged);
        }
        whole.ok_or(LandingError::NothingToFold)
    }

    /// A commit that is nobody's: it carries a tree from one merge to the next.
    fn in_progress(&self, onto: &Oid, tree: &Oid) -> Result<Oid, LandingError> {
        Ok(self.git.commit(&NewCommit {
            tree,
            parents: &[onto],
            message: "fold in progress\n",
            name: "Blue Flame",
            email: "blueflame@localhost",
            when: Timestamp::UNIX_EPOCH,
            signing: Signing::Off,
        })?)
    }
}
