//! Where Blue Flame keeps its state: in `<git common dir>/blueflame`, which all
//! work trees of a repository share and no `git clean` or `git stash` reaches.
//!
//! This file knows names and directories. It does not read journals, and making a
//! [`Store`] changes nothing on the disk.

use std::io;
use std::path::{Path, PathBuf};

use blueflame_core::ids::SessionId;

use crate::atomic_file;
use crate::failure::{Failure, Kind};
use crate::file_system::{FileSystem, Remote};
use crate::git::{Git, GitError};

/// Why state cannot be found, named or made.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is on a {file_system} file system, where locks and flushes cannot be trusted", path.display())]
    Remote { path: PathBuf, file_system: FileSystem },
    #[error("there is no session yet")]
    NoSessions,
    #[error("there is no session `{asked}`; there {}", listed(sessions))]
    NoSuchSession { asked: String, sessions: Vec<SessionId> },
    #[error("`{asked}` could be any of {}", named(sessions))]
    Ambiguous { asked: String, sessions: Vec<SessionId> },
    #[error("session `{0}` exists already")]
    Exists(SessionId),
}

fn listed(sessions: &[SessionId]) -> String {
    match sessions {
        [] => "are none yet".to_owned(),
        [one] => format!("is only `{one}`"),
        many => format!("are {}", named(many)),
    }
}

fn named(sessions: &[SessionId]) -> String {
    let mut names: Vec<String> = sessions.iter().take(10).map(|id| format!("`{id}`")).collect();
    if sessions.len() > names.len() {
        names.push(format!("{} more", sessions.len() - names.len()));
    }
    names.join(", ")
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let kind = match &error {
            StoreError::Git(_) | StoreError::Remote { .. } => Kind::Missing,
            StoreError::NoSessions
            | StoreError::NoSuchSession { .. }
            | StoreError::Ambiguous { .. } => Kind::Usage,
            // A disk that is full, or may not be written, is for the person.
            StoreError::Io { source, .. } if is_of_the_disk(source) => Kind::Missing,
            StoreError::Io { .. } | StoreError::Exists(_) => Kind::Internal,
        };
        let failure = Failure::new(kind, &error);
        match error {
            StoreError::Git(GitError::NotARepository { .. }) => {
                failure.hint("go to your project, or begin one with `git init`")
            }
            StoreError::Io { source, .. } if is_of_the_disk(&source) => {
                failure.hint("sessions are kept there: it must be writable, with room on the disk")
            }
            _ => failure,
        }
    }
}

fn is_of_the_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// The state of one repository, for reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// Finds the state of the repository that a directory belongs to, be it the
    /// main work tree, a linked one, or deep inside either.
    pub fn find(directory: &Path) -> Result<Store, StoreError> {
        Ok(Store::in_common_dir(&Git::in_dir(directory).common_dir()?))
    }

    /// The state of the repository whose work trees share this directory.
    pub fn in_common_dir(common: &Path) -> Store {
        Store { root: common.join("blueflame") }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn lock_file(&self) -> PathBuf {
        self.root.join("LOCK")
    }

    pub fn session(&self, id: &SessionId) -> SessionDir {
        SessionDir { path: self.sessions_dir().join(id.as_str()), id: id.clone() }
    }

    /// All sessions that have a journal, the newest first.
    pub fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let mut sessions = self.begun()?;
        // A directory without a journal is a session that never began.
        sessions.retain(|id| self.session(id).journal().exists());
        Ok(sessions)
    }

    /// All sessions that have a directory, the newest first.
    pub fn begun(&self) -> Result<Vec<SessionId>, StoreError> {
        let directory = self.sessions_dir();
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("list", &directory)(error)),
        };
        let mut sessions = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed("list", &directory))?.file_name();
            sessions.extend(name.to_str().and_then(|name| SessionId::new(name).ok()));
        }
        // The id is made of the date and the time.
        sessions.sort_unstable_by(|one, other| other.cmp(one));
        Ok(sessions)
    }

    /// The session a person means: the newest, or the one whose id begins as they
    /// wrote, with or without `ses-`.
    pub fn resolve(&self, asked: Option<&str>) -> Result<SessionDir, StoreError> {
        let sessions = self.sessions()?;
        let Some(asked) = asked else {
            return Ok(self.session(sessions.first().ok_or(StoreError::NoSessions)?));
        };
        let begins = |id: &&SessionId| {
            let id = id.as_str();
            id.starts_with(asked) || id.trim_start_matches("ses-").starts_with(asked)
        };
        let found: Vec<&SessionId> = sessions.iter().filter(begins).collect();
        match found.as_slice() {
            [one] if !asked.is_empty() => Ok(self.session(one)),
            [] | [_] => Err(StoreError::NoSuchSession { asked: asked.to_owned(), sessions }),
            _ => {
                let sessions = found.into_iter().cloned().collect();
                Err(StoreError::Ambiguous { asked: asked.to_owned(), sessions })
            }
        }
    }

    /// Makes the directories and checks that this is a disk to rely on. Only what
    /// this gives can be locked and written.
    pub fn for_writing(&self, remote: Remote) -> Result<WritableStore, StoreError> {
        make_directory(&self.root)?;
        let file_system = FileSystem::of(&self.root).map_err(failed("look at", &self.root))?;
        self.for_writing_on(file_system, remote)
    }

    fn for_writing_on(
        &self,
        file_system: FileSystem,
        remote: Remote,
    ) -> Result<WritableStore, StoreError> {
        match (file_system, remote) {
            (FileSystem::Remote(_), Remote::Refuse) => {
                Err(StoreError::Remote { path: self.root.clone(), file_system })
            }
            (FileSystem::Local, _) | (FileSystem::Remote(_), Remote::Accept) => {
                make_directory(&self.sessions_dir())?;
                Ok(WritableStore { store: self.clone() })
            }
        }
    }

    fn sessions_dir(&self) -> PathBuf {
        self.root.join("sessions")
    }
}

/// The state of one repository, on a disk that can be trusted with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritableStore {
    store: Store,
}

impl WritableStore {
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Makes the directory of a new session.
    pub fn begin(&self, id: &SessionId) -> Result<SessionDir, StoreError> {
        let session = self.store.session(id);
        match std::fs::create_dir(&session.path) {
            Ok(()) => {}
            // Left by one that was killed before its journal began.
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && !session.journal().exists() => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::Exists(id.clone()));
            }
            Err(error) => return Err(failed("make", &session.path)(error)),
        }
        sync_name(&session.path)?;
        Ok(session)
    }
}

/// The directory of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDir {
    id: SessionId,
    path: PathBuf,
}

impl SessionDir {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directories of its agent runs.
    pub fn attempts(&self) -> PathBuf {
        self.path.join("attempts")
    }

    /// Links to the places where checks are made.
    pub fn checkouts(&self) -> PathBuf {
        self.path.join("checkouts")
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    match std::fs::create_dir(path) {
        Ok(()) => sync_name(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(failed("make", path)(error)),
    }
}

/// Makes the name of a new directory survive a power cut.
fn sync_name(path: &Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(path);
    atomic_file::sync_directory(parent).map_err(failed("sync", parent))
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Io { step, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store_with(ids: &[&str]) -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store { root: dir.path().join("blueflame") };
        let writable = store.for_writing(Remote::Refuse).unwrap();
        for id in ids {
            let session = writable.begin(&SessionId::new(*id).unwrap()).unwrap();
            std::fs::write(session.journal(), "").unwrap();
        }
        (dir, store)
    }

    const THREE: [&str; 3] = ["ses-20260206-143022", "ses-20260301-080000", "ses-20260301-090000"];

    #[test]
    fn a_session_is_found_by_nothing_by_its_start_or_in_full() {
        let (_dir, store) = store_with(&THREE);
        for (asked, found) in [
            (None, THREE[2]),
            (Some("ses-202602"), THREE[0]),
            (Some("20260301-08"), THREE[1]),
            (Some(THREE[2]), THREE[2]),
        ] {
            assert_eq!(store.resolve(asked).unwrap().id().as_str(), found, "{asked:?}");
        }
    }

    #[test]
    fn what_cannot_be_resolved_says_what_there_is() {
        let (_dir, store) = store_with(&THREE);
        let message = |asked| store.resolve(Some(asked)).unwrap_err().to_string();
        assert_eq!(
            message("ses-20260301"),
            "`ses-20260301` could be any of `ses-20260301-090000`, `ses-20260301-080000`"
        );
        assert_eq!(
            message("x"),
            "there is no session `x`; there are `ses-20260301-090000`, `ses-20260301-080000`, \
             `ses-20260206-143022`"
        );
        let (_dir, store) = store_with(&THREE[..1]);
        let message = |asked| store.resolve(Some(asked)).unwrap_err().to_string();
        assert_eq!(message(""), "there is no session ``; there is only `ses-20260206-143022`");
        let (_dir, store) = store_with(&[]);
        assert_eq!(store.resolve(None).unwrap_err().to_string(), "there is no session yet");
    }

    #[test]
    fn only_directories_with_a_journal_are_sessions() {
        let (_dir, store) = store_with(&THREE[..1]);
        let sessions = store.sessions_dir();
        std::fs::create_dir(sessions.join(THREE[1])).unwrap();
        std::fs::create_dir(sessions.join("notes")).unwrap();
        assert_eq!(store.sessions().unwrap(), [SessionId::new(THREE[0]).unwrap()]);
        let nowhere = Store { root: sessions.join("nowhere") };
        assert_eq!(nowhere.sessions().unwrap(), []);
    }

    #[test]
    fn a_session_begins_once_but_one_that_never_began_can() {
        let (_dir, store) = store_with(&THREE[..1]);
        let writable = store.for_writing(Remote::Refuse).unwrap();
        let taken = writable.begin(&SessionId::new(THREE[0]).unwrap());
        assert!(matches!(taken, Err(StoreError::Exists(_))));
        let fresh = SessionId::new(THREE[1]).unwrap();
        assert_eq!(writable.begin(&fresh).unwrap(), writable.begin(&fresh).unwrap());
    }

    #[test]
    fn a_file_system_of_others_is_written_only_when_the_person_says_so() {
        let (_dir, store) = store_with(&[]);
        let nfs = FileSystem::Remote("NFS");
        let refused = store.for_writing_on(nfs, Remote::Refuse).unwrap_err();
        assert!(refused.to_string().contains("is on a NFS file system"), "{refused}");
        assert_eq!(Failure::from(refused).kind(), Kind::Missing);
        assert!(store.for_writing_on(nfs, Remote::Accept).is_ok());
    }
}
