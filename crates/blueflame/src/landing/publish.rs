//! Publishing: the base branch moves forward to what has landed.
//!
//! Only forward, only from where it was expected, and only to a commit that
//! landed. A branch that is checked out nowhere is a ref, moved by comparing and
//! swapping. One that is checked out is moved by git in that checkout. What stands
//! in the way is left as it is, and the person is told what and what to do.

use std::path::PathBuf;

use blueflame_core::event::PublishResult;
use blueflame_core::ids::{Oid, SessionId};

use super::halfway::Halfway;
use super::{Landing, LandingError, Refs, branch_ref};
use crate::git::refs::{Moved, RefChange};
use crate::git::worktrees::{git_dirs, unfinished, will_return_to};

#[derive(Clone, Debug)]
pub struct PublishOrder {
    pub session: SessionId,
    pub base_branch: String,
    /// Where the base branch was when the commit landed.
    pub expected: Oid,
    pub commit: Oid,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Publication {
    Published,
    /// The base branch is somewhere else by now: ask for the tip again.
    Moved {
        base: Oid,
    },
    /// It has to wait for the person.
    Waiting {
        reason: String,
    },
}

impl Publication {
    pub(super) fn waiting(reason: impl Into<String>) -> Self {
        Publication::Waiting { reason: reason.into() }
    }

    /// As the core wants to know it.
    pub fn result(self, base_branch: &str) -> PublishResult {
        match self {
            Publication::Published => PublishResult::Published,
            Publication::Waiting { reason } => PublishResult::Waiting { reason },
            Publication::Moved { base } => PublishResult::Waiting {
                reason: format!(
                    "`{base_branch}` moved to {} meanwhile; `blueflame publish` brings both together",
                    short(&base)
                ),
            },
        }
    }
}

/// Where a branch is checked out.
enum Place {
    Nowhere,
    At(PathBuf),
    Blocked(String),
}

impl Landing {
    pub fn publish(&self, order: &PublishOrder) -> Result<Publication, LandingError> {
        let PublishOrder { session, base_branch, expected, commit } = order;
        let integration = self.git.commit_at(&Refs(session).integration())?;
        let landed = match &integration {
            Some(integration) => self.git.is_in(commit, integration)?,
            None => false,
        };
        if !landed {
            return Err(LandingError::NotLanded { commit: commit.clone() });
        }
        if let Halfway::Stuck(reason) = self.finish_halfway()? {
            return Ok(Publication::waiting(reason));
        }
        let name = branch_ref(base_branch);
        let Some(base) = self.git.commit_at(&name)? else {
            return Err(LandingError::NoBase { branch: base_branch.clone() });
        };
        if self.git.is_in(commit, &base)? {
            return self.published(order);
        }
        if base != *expected || !self.git.is_in(&base, commit)? {
            return Ok(Publication::Moved { base });
        }
        let publication = match self.place(base_branch)? {
            Place::Blocked(reason) => Publication::Waiting { reason },
            Place::At(worktree) => self.forward_checkout(order, &worktree)?,
            Place::Nowhere => self.forward_ref(order, &name)?,
        };
        match publication {
            Publication::Published => self.published(order),
            other => Ok(other),
        }
    }

    fn published(&self, order: &PublishOrder) -> Result<Publication, LandingError> {
        let name = Refs(&order.session).published();
        let change = [RefChange::Set { name: &name, to: &order.commit }];
        self.set_refs(&change, "blueflame: publish")?;
        Ok(Publication::Published)
    }

    fn forward_ref(&self, order: &PublishOrder, name: &str) -> Result<Publication, LandingError> {
        let from = Some(&order.expected);
        let change = [RefChange::Move { name, from, to: &order.commit }];
        let hooks = self.veto_hooks()?;
        let moved = self.move_refs_with_hooks(&change, "blueflame: publish", &hooks)?;
        match moved {
            Moved::Done => Ok(Publication::Published),
            Moved::Refused(message) => self.why_not(order, &message),
        }
    }

    /// git did not do it: because the branch moved, or for its own reason.
    pub(super) fn why_not(
        &self,
        order: &PublishOrder,
        message: &str,
    ) -> Result<Publication, LandingError> {
        let branch = &order.base_branch;
        match self.git.commit_at(&branch_ref(branch))? {
            Some(base) if base == order.commit => Ok(Publication::Published),
            Some(base) if base != order.expected => Ok(Publication::Moved { base }),
            Some(_) => Ok(Publication::waiting(format!(
                "git does not move `{branch}`: {}; then `blueflame publish`",
                message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
            ))),
            None => Err(LandingError::NoBase { branch: branch.clone() }),
        }
    }

    fn place(&self, branch: &str) -> Result<Place, LandingError> {
        for dir in git_dirs(&self.common_dir) {
            if will_return_to(&dir, branch) {
                let what = unfinished(&dir).map_or("operation", |what| what.name());
                return Ok(Place::Blocked(format!(
                    "a {what} of `{branch}` is not finished yet; finish or abort it, \
                     then `blueflame publish`"
                )));
            }
        }
        let name = branch_ref(branch);
        let mut places = self.git.worktrees()?.into_iter();
        let mut places = places.by_ref().filter(|place| place.branch.as_ref() == Some(&name));
        let Some(first) = places.next() else { return Ok(Place::Nowhere) };
        if let Some(second) = places.next() {
            return Ok(Place::Blocked(format!(
                "`{branch}` is checked out twice, in `{}` and `{}`; switch one of them to another \
                 branch, then `blueflame publish`",
                first.path.display(),
                second.path.display()
            )));
        }
        if !first.path.is_dir() {
            return Ok(Place::Blocked(format!(
                "`{branch}` is checked out in `{}`, which is not there; if it is gone for good, \
                 `git worktree prune`, then `blueflame publish`",
                first.path.display()
            )));
        }
        Ok(Place::At(first.path))
    }
}

pub(super) fn short(oid: &Oid) -> &str {
    &oid.as_str()[..12]
}
