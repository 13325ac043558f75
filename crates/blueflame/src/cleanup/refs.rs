//! The references of sessions in the person's repository.

use std::path::Path;

use blueflame_core::ids::{Oid, SessionId};

use crate::git::{Call, GitError};

/// `refs/blueflame/<session>/<kind>/<name>`, or without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    pub full: String,
    pub session: SessionId,
    pub kind: String,
    pub name: Option<String>,
    pub commit: Oid,
}

/// All of them, by session.
pub fn list(common: &Path) -> Result<Vec<Ref>, GitError> {
    let format = "--format=%(objectname) %(refname)";
    let list = Call::plain(common).words(&["for-each-ref", format, "refs/blueflame/"]).line()?;
    Ok(list.lines().filter_map(read).collect())
}

/// What does not look like ours is left alone.
fn read(line: &str) -> Option<Ref> {
    let (commit, full) = line.split_once(' ')?;
    let rest = full.strip_prefix("refs/blueflame/")?;
    let (session, rest) = rest.split_once('/')?;
    let (kind, name) = match rest.split_once('/') {
        Some((kind, name)) => (kind, Some(name.to_owned())),
        None => (rest, None),
    };
    Some(Ref {
        full: full.to_owned(),
        session: SessionId::new(session).ok()?,
        kind: kind.to_owned(),
        name,
        commit: Oid::new(commit).ok()?,
    })
}

/// Removes them if they are still what was looked at; all or none.
pub fn remove(common: &Path, refs: &[Ref]) -> Result<(), GitError> {
    let commands: String =
        refs.iter().flat_map(|it| ["delete ", &it.full, " ", it.commit.as_str(), "\n"]).collect();
    Call::plain(common).words(&["update-ref", "--stdin"]).input(commands).done()
}
