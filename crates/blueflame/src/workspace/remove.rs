//! Removing workspaces and what keeps their objects.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use blueflame_core::ids::SessionId;

use super::error::{WorkspaceError, failed};
use super::{Workspace, WorkspaceName, Workspaces, subvolume};

/// A directory that some session left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub session: SessionId,
    /// `None` for one that was never finished, or that is on its way out.
    pub name: Option<WorkspaceName>,
    pub path: PathBuf,
}

impl Workspaces {
    /// Removes a workspace and the references that kept what it borrowed. What
    /// was harvested from it stays.
    pub fn remove(&self, workspace: &Workspace) -> Result<(), WorkspaceError> {
        self.remove_named(&workspace.name)
    }

    /// The same, for whoever knows only the name. It is fine if there is none.
    pub fn remove_named(&self, name: &WorkspaceName) -> Result<(), WorkspaceError> {
        remove_leftover(&self.root, &self.path_of(name))?;
        let references = [self.base_ref(name), self.restored_ref(name)];
        Ok(self.refs.delete(references.iter().map(String::as_str))?)
    }

    /// Takes a workspace its name, so that another can have it. `None` if there is
    /// none.
    pub fn put_away(&self, name: &WorkspaceName) -> Result<Option<Leftover>, WorkspaceError> {
        let path = self.path_of(name);
        let nameless = |number: u32| path.with_file_name(format!(".{name}.gone{number}"));
        // Several of the same name may be on their way out.
        let free = (1..=u32::MAX).map(nameless).find(|place| fs::symlink_metadata(place).is_err());
        let Some(place) = free else { return Ok(None) };
        match fs::rename(&path, &place) {
            Ok(()) => {
                let session = self.session.clone();
                Ok(Some(Leftover { session, name: None, path: place }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("move", &path)(error)),
        }
    }

    /// What is there, of any session.
    pub fn list(&self) -> Result<Vec<Leftover>, WorkspaceError> {
        leftovers(&self.root)
    }

    /// Removes a directory that [`list`](Self::list) found.
    pub fn remove_leftover(&self, leftover: &Leftover) -> Result<(), WorkspaceError> {
        remove_leftover(&self.root, &leftover.path)
    }
}

/// The workspaces in a place, of any session.
pub fn leftovers(root: &Path) -> Result<Vec<Leftover>, WorkspaceError> {
    let mut found = Vec::new();
    for (session, directory) in directories(root)? {
        let Ok(session) = SessionId::new(session) else { continue };
        for (name, path) in directories(&directory)? {
            let name = WorkspaceName::new(&name).ok();
            found.push(Leftover { session: session.clone(), name, path });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Removes a workspace from a place of workspaces.
pub fn remove_leftover(root: &Path, path: &Path) -> Result<(), WorkspaceError> {
    // Only ever `<session>/<name>` in our own place.
    let parts = path.strip_prefix(root).map(|rest| {
        rest.components().map(|part| matches!(part, Component::Normal(_))).collect::<Vec<_>>()
    });
    if parts.as_deref() != Ok(&[true, true]) {
        let source = io::Error::other("it is no workspace");
        return Err(failed("remove", path)(source));
    }
    remove_tree(path).map_err(failed("remove", path))?;
    // The last one takes the directory of its session along.
    if let Some(parent) = path.parent() {
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

/// Removes a directory with everything in it, also what its owner may not
/// write. It follows no links, and it is fine if nothing is there.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return fs::remove_file(path),
        Ok(_) => {}
    }
    if subvolume::is_one(path) && subvolume::remove(path).is_ok() {
        return Ok(());
    }
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    open_up(path)?;
    fs::remove_dir_all(path)
}

/// Gives the owner all rights to the directories.
fn open_up(root: &Path) -> io::Result<()> {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let mode = fs::symlink_metadata(&directory)?.permissions().mode();
        if mode & 0o700 != 0o700 {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode | 0o700))?;
        }
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(())
}

/// The directories in a directory by name; links to directories are none.
pub(super) fn directories(path: &Path) -> Result<Vec<(String, PathBuf)>, WorkspaceError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", path)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", path))?;
        if entry.file_type().map_err(failed("look at", &entry.path()))?.is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    Ok(found)
}
