//! Refs: read, compared, and moved in transactions that compare first.

use blueflame_core::ids::Oid;

use super::GitError;
use super::plumbing::{Plumbing, Ran};

/// One line of a transaction. Either all of them happen or none does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefChange<'a> {
    /// The ref holds this, and goes on doing so.
    Verify { name: &'a str, holds: &'a Oid },
    /// The ref holds `from`, or does not exist, and then holds `to`.
    Move { name: &'a str, from: Option<&'a Oid>, to: &'a Oid },
    /// The ref holds `to` afterwards, whatever it held.
    Set { name: &'a str, to: &'a Oid },
}

/// Whether a transaction happened.
#[derive(Debug)]
#[must_use]
pub enum Moved {
    Done,
    /// Nothing was changed; the words are git's.
    Refused(String),
}

impl Plumbing {
    /// The commit that a ref points at, if there is such a ref.
    pub fn commit_at(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let [commit] = self.commits_at([name])?;
        Ok(commit)
    }

    /// The same for several refs, with one look at all of them.
    pub fn commits_at<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Option<Oid>; N], GitError> {
        let about = self.objects().about(&names.map(|name| format!("{name}^{{commit}}")))?;
        let mut found = about.into_iter().map(|about| about.map(|it| it.oid));
        Ok(names.map(|_| found.next().flatten()))
    }

    /// The ref of the branch that is checked out, if one is.
    pub fn head(&self) -> Result<Option<String>, GitError> {
        let ran = self.call(["symbolic-ref", "--quiet", "HEAD"]).run()?;
        Ok(ran.if_any()?.map(|ran| ran.text()))
    }

    /// Whether `commit` is an ancestor of `of`, or the same.
    pub fn is_in(&self, commit: &Oid, of: &Oid) -> Result<bool, GitError> {
        if commit == of {
            return Ok(true);
        }
        let ran = self.call(["merge-base", "--is-ancestor", commit.as_str(), of.as_str()]).run()?;
        Ok(ran.if_any()?.is_some())
    }

    /// Changes several refs, or none. Hooks come from a directory, and one of
    /// them can refuse.
    pub fn change_refs_with_hooks(
        &self,
        changes: &[RefChange<'_>],
        why: &str,
        hooks: &str,
    ) -> Result<Moved, GitError> {
        let width = changes.iter().map(RefChange::width).max().unwrap_or(40);
        let none = "0".repeat(width);
        let mut input = String::from("start\0");
        for change in changes {
            let line = match change {
                RefChange::Verify { name, holds } => format!("verify {name}\0{holds}\0"),
                RefChange::Move { name, from, to } => {
                    let from = from.map_or(none.as_str(), Oid::as_str);
                    format!("update {name}\0{to}\0{from}\0")
                }
                RefChange::Set { name, to } => format!("update {name}\0{to}\0\0"),
            };
            input.push_str(&line);
        }
        input += "prepare\0commit\0";
        let ran: Ran = self
            .call(["update-ref", "-m", why, "--stdin", "-z"])
            .setting(format!("core.hooksPath={hooks}"))
            .input(input)
            .run()?;
        match ran.code() {
            Some(0) => Ok(Moved::Done),
            Some(_) => Ok(Moved::Refused(ran.stderr)),
            None => Err(ran.failure()),
        }
    }
}

impl RefChange<'_> {
    pub fn name(&self) -> &str {
        match self {
            RefChange::Verify { name, .. }
            | RefChange::Move { name, .. }
            | RefChange::Set { name, .. } => name,
        }
    }

    fn width(&self) -> usize {
        match self {
            RefChange::Verify { holds: oid, .. }
            | RefChange::Move { to: oid, .. }
            | RefChange::Set { to: oid, .. } => oid.as_str().len(),
        }
    }
}
