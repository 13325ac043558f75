//! What sessions left behind: found, judged, and removed only if nothing is
//! lost by it.
//!
//! Looking changes nothing. Of a session that can still go on, everything stays.
//! Of one that ended, the journal stays in any case; work that did not land stays
//! unless the person says otherwise; and what landed and is not on the base branch
//! yet stays whatever the person says.

mod refs;
mod remains;
mod sockets;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::config::{Config, Upstream};
use blueflame_core::ids::{Oid, SessionId};
use jiff::{SignedDuration, Timestamp};

use crate::failure::{Failure, Kind};
use crate::git::Call;
use crate::history;
use crate::store::Store;
use crate::workspace::{self, Leftover};

pub use self::refs::Ref;

/// What is to be looked at, and how the person wants it judged.
#[derive(Debug)]
pub struct Sweep<'a> {
    pub store: &'a Store,
    pub config: &'a Config,
    /// The git directory that all checkouts share.
    pub common: PathBuf,
    /// Where workspaces are.
    pub trees: PathBuf,
    /// Where the base branch is.
    pub base: Oid,
    pub now: Timestamp,
    /// Logs of sessions that are older go.
    pub keep_logs: SignedDuration,
    /// And so do the oldest, if all of them together take more.
    pub keep_log_bytes: u64,
    pub unlanded: Unlanded,
}

/// What becomes of work that did not land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlanded {
    Stays,
    Goes,
}

/// Something that was found.
#[derive(Debug)]
pub struct Item {
    /// Whose it is, if that is known.
    pub session: Option<SessionId>,
    pub name: String,
    pub thing: Thing,
    pub bytes: u64,
    pub fate: Fate,
}

#[derive(Debug)]
pub enum Thing {
    Paths(Vec<PathBuf>),
    Workspace(PathBuf),
    Refs(Vec<Ref>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Goes,
    Stays(Reason),
}

/// Why something stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    CanGoOn,
    /// The person asked for something that was cut short.
    Errand,
    Unlanded,
    Unpublished,
    /// Nothing is known of the session.
    Unknown,
    Replayed,
    Unreadable(String),
}

impl Sweep<'_> {
    /// Everything that sessions and attempts have left, with what becomes of it.
    pub fn look(&self) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        let workspaces = workspace::leftovers(&self.trees).map_err(internal)?;
        let refs = refs::list(&self.common).map_err(internal)?;
        let sessions = self.store.sessions()?;
        // The newest come first, and have the first claim on the room for logs.
        let mut room = self.keep_log_bytes;
        for id in &sessions {
            let mine = |leftover: &&Leftover| leftover.session == *id;
            let workspaces: Vec<&Leftover> = workspaces.iter().filter(mine).collect();
            let refs: Vec<&Ref> = refs.iter().filter(|it| it.session == *id).collect();
            items.extend(self.session(id, &workspaces, &refs, &mut room)?);
        }
        items.extend(self.strangers(&sessions, &workspaces, &refs)?);
        let bases = workspace::unused_bases(&self.trees).map_err(internal)?;
        if !bases.is_empty() {
            let name = "checkouts that no workspace is laid over".to_owned();
            items.push(Item::of_paths(None, name, bases, Fate::Goes));
        }
        items.extend(sockets::look(self.now));
        Ok(items)
    }

    fn session(
        &self,
        id: &SessionId,
        workspaces: &[&Leftover],
        refs: &[&Ref],
        room_for_logs: &mut u64,
    ) -> Result<Vec<Item>, Failure> {
        let directory = self.store.session(id);
        let whole = |reason| {
            let mut paths: Vec<PathBuf> = workspaces.iter().map(|it| it.path.clone()).collect();
            paths.push(directory.path().to_owned());
            let name = "everything".to_owned();
            Item::of_paths(Some(id), name, paths, Fate::Stays(reason))
        };
        let state = match history::fold(&directory.journal(), None, |_| {}) {
            Ok(history) => history.state,
            Err(error) => return Ok(vec![whole(Reason::Unreadable(error.to_string()))]),
        };
        if state.ended().is_none() {
            return Ok(vec![whole(Reason::CanGoOn)]);
        }
        if state.errand.is_some() {
            return Ok(vec![whole(Reason::Errand)]);
        }
        let remains = remains::Remains { sweep: self, state: &state, directory: &directory };
        let mut items = remains.workspaces(workspaces);
        items.extend(remains.refs(refs)?);
        items.extend(remains.attempts(room_for_logs).map_err(internal)?);
        Ok(items)
    }

    /// What belongs to no session that there is.
    fn strangers(
        &self,
        sessions: &[SessionId],
        workspaces: &[Leftover],
        refs: &[Ref],
    ) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        for id in self.store.begun()? {
            if !sessions.contains(&id) {
                let paths = vec![self.store.session(&id).path().to_owned()];
                let name = "the directory of a session that never began".to_owned();
                items.push(Item::of_paths(Some(&id), name, paths, Fate::Goes));
            }
        }
        let unknown = match self.unlanded {
            Unlanded::Stays => Fate::Stays(Reason::Unknown),
            Unlanded::Goes => Fate::Goes,
        };
        for it in workspaces.iter().filter(|it| !sessions.contains(&it.session)) {
            items.push(Item::of_workspace(it, unknown.clone()));
        }
        let strange: Vec<Ref> =
            refs.iter().filter(|it| !sessions.contains(&it.session)).cloned().collect();
        let mut ids: Vec<&SessionId> = strange.iter().map(|it| &it.session).collect();
        ids.dedup();
        for id in ids {
            let mine = strange.iter().filter(|it| it.session == *id).cloned().collect();
            items.push(Item::of_refs(id, "refs of a session that is gone", mine, unknown.clone()));
        }
        Ok(items)
    }

    /// Whether the configuration answers from what a session recorded.
    fn replays(&self, id: &SessionId) -> bool {
        matches!(&self.config.gateway.upstream, Upstream::Replay(session) if session == id)
    }

    /// Removes one thing that goes.
    pub fn remove(&self, item: &Item) -> Result<(), Failure> {
        match &item.thing {
            Thing::Paths(paths) => {
                for path in paths {
                    workspace::remove_tree(path).map_err(|error| {
                        internal(format!("`{}` cannot be removed: {error}", path.display()))
                    })?;
                }
                Ok(())
            }
            Thing::Workspace(path) => {
                workspace::remove_leftover(&self.trees, path).map_err(internal)?;
                // It may have been the last that was laid over a checkout.
                for base in workspace::unused_bases(&self.trees).map_err(internal)? {
                    workspace::remove_base(&base).map_err(internal)?;
                }
                Ok(())
            }
            Thing::Refs(refs) => refs::remove(&self.common, refs).map_err(internal),
        }
    }

    /// Whether everything up to a commit is on the base branch.
    fn is_on_base(&self, commit: &Oid) -> Result<bool, Failure> {
        if *commit == self.base {
            return Ok(true);
        }
        let words = ["merge-base", "--is-ancestor", commit.as_str(), self.base.as_str()];
        let answer = Call::plain(&self.common).words(&words).run().map_err(internal)?;
        Ok(answer.status.success())
    }
}

impl Item {
    fn of_paths(
        session: Option<&SessionId>,
        name: String,
        paths: Vec<PathBuf>,
        fate: Fate,
    ) -> Item {
        let bytes = paths.iter().map(|path| size(path)).sum();
        Item { session: session.cloned(), name, thing: Thing::Paths(paths), bytes, fate }
    }

    fn of_workspace(leftover: &Leftover, fate: Fate) -> Item {
        let name = match &leftover.name {
            Some(name) => format!("workspace {name}"),
            None => "a workspace that was never finished".to_owned(),
        };
        let bytes = size(&leftover.path);
        let (session, thing) =
            (Some(leftover.session.clone()), Thing::Workspace(leftover.path.clone()));
        Item { session, name, thing, bytes, fate }
    }

    fn of_refs(session: &SessionId, what: &str, refs: Vec<Ref>, fate: Fate) -> Item {
        let name = format!("{} {what}", refs.len());
        Item { session: Some(session.clone()), name, thing: Thing::Refs(refs), bytes: 0, fate }
    }
}

/// What a file or a directory with all that is in it takes on the disk. Links
/// are not followed, and what cannot be looked at counts as nothing.
fn size(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    let inside = if found.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| size(&entry.path())).sum()
    } else {
        0
    };
    found.blocks() * 512 + inside
}

/// The names in a directory, in order; none if it is not there.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn internal(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Internal, error)
}
