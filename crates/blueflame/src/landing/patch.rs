//! What a changeset changes, whatever it is folded onto.
//!
//! An approval is bound to this. Line numbers do not count, so a base that moved
//! elsewhere leaves it as it is. Everything that can mean something does count,
//! blanks included: git's usual patch id ignores them, and a person who approved
//! an indentation would have approved any other. The lines around a change count
//! too, so an approval is asked for again when those changed.

use blueflame_core::ids::{ChangesetId, Oid, SessionId, TaskId};

use super::message::{CHANGESET, REVERTS, SESSION, TASK};
use super::{Landing, LandingError};

/// One commit of a changeset, with what its trailers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub commit: Oid,
    pub tree: Oid,
    pub parents: Vec<String>,
    pub tasks: Vec<TaskId>,
    pub session: Option<SessionId>,
    pub changeset: Option<ChangesetId>,
    pub reverts: Option<String>,
}

impl Landing {
    /// Names the change from `onto` to `commit`, task by task.
    pub(super) fn patch_of(&self, onto: &Oid, commit: &Oid) -> Result<String, LandingError> {
        let links = self.chain(onto, commit)?;
        let commits: Vec<&Oid> = links.iter().map(|link| &link.commit).collect();
        let ids = self.git.patch_ids(&commits)?;
        let mut hash = blake3::Hasher::new();
        for link in &links {
            for task in &link.tasks {
                hash.update(task.as_str().as_bytes());
                hash.update(b" ");
            }
            hash.update(ids.get(&link.commit).map_or("nothing", Oid::as_str).as_bytes());
            hash.update(b"\n");
        }
        Ok(hash.finalize().to_hex().to_string())
    }

    /// The commits on top of `onto`, oldest first, each on the one before.
    pub(super) fn chain(&self, onto: &Oid, commit: &Oid) -> Result<Vec<Link>, LandingError> {
        let links = self.links(&["--topo-order", "--reverse", &format!("{onto}..{commit}")])?;
        let mut before = onto;
        for link in &links {
            if link.parents != [before.as_str()] {
                break;
            }
            before = &link.commit;
        }
        if before == commit && commit != onto {
            return Ok(links);
        }
        Err(LandingError::NotOnTop { commit: commit.clone(), onto: onto.clone() })
    }

    /// Commits of a history, with their trailers.
    pub(super) fn links(&self, which: &[&str]) -> Result<Vec<Link>, LandingError> {
        let trailer = |key| format!("%x1f%(trailers:key={key},valueonly,separator=%x2C)");
        let trailers = [TASK, SESSION, CHANGESET, REVERTS].map(trailer).concat();
        let format = format!("--format=%H%x1f%T%x1f%P{trailers}");
        let ran =
            self.git.call(["log", "-z", "--no-show-signature", &format]).words(which).answer()?;
        let links = ran.fields().map(|field| link(&String::from_utf8_lossy(field)));
        links.map(|link| link.ok_or_else(|| ran.strange().into())).collect()
    }
}

fn link(text: &str) -> Option<Link> {
    let fields: Vec<&str> = text.trim_matches('\n').split('\x1f').collect();
    let [commit, tree, parents, tasks, session, changeset, reverts] = fields[..] else {
        return None;
    };
    Some(Link {
        commit: Oid::new(commit).ok()?,
        tree: Oid::new(tree).ok()?,
        parents: parents.split_whitespace().map(str::to_owned).collect(),
        tasks: tasks.split(',').filter_map(|task| TaskId::new(task).ok()).collect(),
        session: SessionId::new(session).ok(),
        changeset: ChangesetId::new(changeset).ok(),
        reverts: (!reverts.is_empty()).then(|| reverts.to_owned()),
    })
}
