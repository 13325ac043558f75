//! Taking a landed changeset back.
//!
//! The changeset is found by the trailers of its commits, also when its session
//! is long gone. What it changed is undone by one new commit on top of everything
//! that has landed since, which is verified, approved, landed and published like
//! any other changeset.

use std::collections::BTreeSet;

use blueflame_core::event::FoldResult;
use blueflame_core::ids::{ChangesetId, Oid, SessionId};
use jiff::Timestamp;

use super::publish::short;
use super::{Author, Landing, LandingError, Missing, message, shown};
use crate::git::trees::NewCommit;

/// A changeset in the history of the base branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedChangeset {
    pub session: SessionId,
    pub changeset: ChangesetId,
    /// The commit before its first.
    pub before: Oid,
    /// Its last commit.
    pub last: Oid,
}

#[derive(Clone, Debug)]
pub struct RevertOrder {
    pub session: SessionId,
    /// Under which the undoing lands.
    pub changeset: ChangesetId,
    pub onto: Oid,
    pub undo: LandedChangeset,
    pub author: Author,
    pub when: Timestamp,
}

impl LandedChangeset {
    pub fn name(&self) -> String {
        format!("{}/{}", self.session, self.changeset)
    }
}

impl Landing {
    /// Finds a changeset in the history of `tip`. The session is needed only
    /// if more than one has landed a changeset of that name.
    pub fn find_landed(
        &self,
        tip: &Oid,
        changeset: &ChangesetId,
        session: Option<&SessionId>,
    ) -> Result<LandedChangeset, LandingError> {
        let grep = format!("--grep={}: {changeset}", message::CHANGESET);
        let links = self.links(&["--topo-order", "--fixed-strings", &grep, tip.as_str()])?;
        let mine = |link: &&super::patch::Link| {
            link.changeset.as_ref() == Some(changeset)
                && session.is_none_or(|session| link.session.as_ref() == Some(session))
        };
        let mine: Vec<_> = links.iter().filter(mine).collect();
        let sessions: BTreeSet<&SessionId> =
            mine.iter().filter_map(|link| link.session.as_ref()).collect();
        if sessions.len() > 1 {
            let changeset = changeset.clone();
            let sessions = sessions.into_iter().map(ToString::to_string).collect();
            return Err(LandingError::AmbiguousChangeset { changeset, sessions });
        }
        let unknown = || LandingError::UnknownChangeset { changeset: changeset.clone() };
        // Newest first, each on the next one.
        let first = mine.first().ok_or_else(unknown)?;
        let session = first.session.clone().ok_or_else(unknown)?;
        let mut before = first.parents.first();
        for link in &mine[1..] {
            if before.map(String::as_str) != Some(link.commit.as_str()) {
                break;
            }
            before = link.parents.first();
        }
        let before = before.and_then(|oid| Oid::new(oid).ok()).ok_or_else(unknown)?;
        let (changeset, last) = (changeset.clone(), first.commit.clone());
        Ok(LandedChangeset { session, changeset, before, last })
    }

    /// Folds the undoing of a changeset.
    pub fn revert(&self, order: &RevertOrder) -> Result<FoldResult, LandingError> {
        let LandedChangeset { before, last, .. } = &order.undo;
        let merged = self.git.merge_from(last, &order.onto, before)?;
        if !merged.conflicts.is_empty() {
            return Ok(FoldResult::Conflict { files: shown(&merged.conflicts) });
        }
        let text = message::revert(&order.undo.name(), &order.session, &order.changeset);
        let commit = self.commit(&NewCommit {
            tree: &merged.tree,
            parents: &[&order.onto],
            message: &text,
            name: &order.author.name,
            email: &order.author.email,
            when: order.when,
            signing: self.signing()?,
        })?;
        self.folded(&order.session, &order.changeset, &order.onto, commit).map(FoldResult::Folded)
    }

    /// What changed some files after a changeset: names of changesets, and the
    /// commits of people, the newest first.
    pub fn changed_since(
        &self,
        undo: &LandedChangeset,
        onto: &Oid,
        files: &[String],
    ) -> Result<Vec<String>, LandingError> {
        let range = format!("{}..{onto}", undo.last);
        let mut which = vec!["--topo-order", "--no-merges", &range, "--"];
        which.extend(files.iter().map(String::as_str));
        let mut names: Vec<String> = Vec::new();
        for link in self.links(&which)? {
            let name = match (&link.session, &link.changeset) {
                (Some(session), Some(changeset)) => format!("{session}/{changeset}"),
                _ => format!("commit {}", short(&link.commit)),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether `commit` is the undoing of that changeset and nothing else.
    pub(super) fn revert_proof(
        &self,
        onto: &Oid,
        commit: &Oid,
        undone: &LandedChangeset,
    ) -> Result<(), LandingError> {
        let links = self.chain(onto, commit)?;
        let named = |link: &super::patch::Link| link.reverts == Some(undone.name());
        if links.len() != 1 || !links.iter().all(named) {
            return Err(Missing::Nobody { commit: commit.clone() }.into());
        }
        let merged = self.git.merge_from(&undone.last, onto, &undone.before)?;
        if merged.conflicts.is_empty() && merged.tree == self.git.tree_of(commit)? {
            return Ok(());
        }
        let files = shown(&merged.conflicts);
        Err(Missing::Differs { commit: commit.clone(), files }.into())
    }
}
