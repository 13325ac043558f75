//! Where the next changeset goes: what has landed, and where the base is now.
//!
//! A person may move the base branch at any time, also while landed work waits to
//! be published. Then the tip is a merge of both. The other way, making the landed
//! commits again on the new base, was rejected: the journal names them, people
//! have approved them, and the merge keeps both. What conflicts has to be merged
//! by the person, because what landed was approved and is not changed any more.
//!
//! If the person rewrote the base (`git pull --rebase`), landed work may be in it
//! as other commits. What adds nothing to the base is not merged once more. What
//! was published and is no longer there was taken out on purpose, and is not put
//! back behind the person's back.

use blueflame_core::ids::{Oid, SessionId};
use jiff::Timestamp;

use super::{Author, Landing, LandingError, Refs, branch_ref, message, shown};
use crate::git::refs::RefChange;
use crate::git::trees::NewCommit;

/// What a changeset is folded onto, and what that was made of: landing goes
/// ahead only if it is still so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    pub onto: Oid,
    /// The base branch.
    pub base: Oid,
    /// Everything that has landed; `None` before the first.
    pub integration: Option<Oid>,
}

impl Tip {
    /// Whether the base moved beneath landed work. The tip is then a tree that
    /// has not been verified, and has not landed.
    pub fn is_joint(&self) -> bool {
        self.onto != self.base && self.integration.as_ref() != Some(&self.onto)
    }
}

impl Landing {
    pub fn integration_tip(
        &self,
        session: &SessionId,
        base_branch: &str,
        author: &Author,
        when: Timestamp,
    ) -> Result<Tip, LandingError> {
        let branch = base_branch.to_owned();
        let refs = Refs(session);
        let names = [branch_ref(base_branch), refs.published(), refs.integration()];
        let [base, published, integration] =
            self.git.commits_at(names.each_ref().map(String::as_str))?;
        let Some(base) = base else { return Err(LandingError::NoBase { branch }) };
        if let Some(published) = published
            && !self.git.is_in(&published, &base)?
            && !self.holds_content(&base, &published)?
        {
            return Err(LandingError::Withdrawn { branch, published });
        }
        let Some(landed) = &integration else {
            return Ok(Tip { onto: base.clone(), base, integration });
        };
        let onto = if self.git.is_in(&base, landed)? {
            landed.clone()
        } else if self.git.is_in(landed, &base)? {
            base.clone()
        } else {
            let merged = self.git.merge_histories(&base, landed)?;
            if !merged.conflicts.is_empty() {
                let files = shown(&merged.conflicts);
                return Err(LandingError::BaseConflict { branch, landed: landed.clone(), files });
            }
            if merged.tree == self.git.tree_of(&base)? {
                base.clone()
            } else if let Some(before) = self.joint_before(session, [&base, landed])? {
                before
            } else {
                let joint = self.commit(&NewCommit {
                    tree: &merged.tree,
                    parents: &[&base, landed],
                    message: &message::joint(base_branch, session),
                    name: &author.name,
                    email: &author.email,
                    when,
                    signing: self.signing()?,
                })?;
                let name = Refs(session).joint();
                let kept = [RefChange::Set { name: &name, to: &joint }];
                self.set_refs(&kept, "blueflame: join")?;
                joint
            }
        };
        Ok(Tip { onto, base, integration })
    }

    /// The merge of these two that was made before. Made anew, with another
    /// date, it would be another commit: what was folded onto the first one would
    /// seem to have lost its base.
    fn joint_before(
        &self,
        session: &SessionId,
        of: [&Oid; 2],
    ) -> Result<Option<Oid>, LandingError> {
        let Some(joint) = self.git.commit_at(&Refs(session).joint())? else { return Ok(None) };
        let links = self.links(&["--max-count=1", joint.as_str()])?;
        let same = links.iter().any(|link| link.parents == of.map(Oid::as_str));
        Ok(same.then_some(joint))
    }

    /// Makes a tip what has landed, so that it can be published without a
    /// changeset on top. Verify a joint tip before.
    pub fn adopt(&self, session: &SessionId, tip: &Tip) -> Result<(), LandingError> {
        self.ensure_nothing_lost(tip)?;
        let name = Refs(session).integration();
        if self.git.commit_at(&name)?.as_ref() == Some(&tip.onto) {
            return Ok(());
        }
        let from = tip.integration.as_ref();
        let change = [RefChange::Move { name: &name, from, to: &tip.onto }];
        self.set_refs(&change, "blueflame: follow the base")
    }

    /// Whether merging `other` into `commit` would change nothing.
    pub(super) fn holds_content(&self, commit: &Oid, other: &Oid) -> Result<bool, LandingError> {
        let merged = self.git.merge_histories(commit, other)?;
        Ok(merged.conflicts.is_empty() && merged.tree == self.git.tree_of(commit)?)
    }
}
