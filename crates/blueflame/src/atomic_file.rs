//! Files that appear whole or not at all.
//!
//! The bytes go into a temporary file in the same directory, which then takes
//! the name in one step. A reader sees the old file or the new one, never a part
//! of either, and an error leaves no temporary file behind. Nothing here edits a
//! file in place.
//!
//! If the name is a symbolic link, the link itself is replaced. What it pointed
//! to stays as it was: we never write through a link that somebody else could
//! have put there.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// How much of a crash a replaced file has to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A killed process. Enough for what can be made again, such as a
    /// projection.
    Process,
    /// A power cut. For what nothing else remembers.
    Power,
}

/// A file that could not be put in place; what was there before still is.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} `{}`: {source}", path.display())]
pub struct AtomicError {
    pub step: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// Puts `bytes` at `path`, in place of whatever has that name.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), AtomicError> {
    replace_with(path, |file| file.write_all(bytes), durability)
}

/// Puts what `fill` makes of a new file at `path`, in place of whatever has
/// that name.
pub fn replace_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    durability: Durability,
) -> Result<(), AtomicError> {
    let staged = stage(path, fill, durability)?;
    staged.persist(path).map_err(|error| failed("replace", path)(error.error))?;
    settle(path, durability)
}

/// Makes a file that survives a power cut, unless the name is taken
/// ([`io::ErrorKind::AlreadyExists`]).
pub fn create(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), AtomicError> {
    let staged = stage(path, fill, Durability::Power)?;
    staged.persist_noclobber(path).map_err(|error| failed("create", path)(error.error))?;
    settle(path, Durability::Power)
}

/// Makes the names inside a directory survive a power cut.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn stage(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    durability: Durability,
) -> Result<NamedTempFile, AtomicError> {
    let mut staged = Builder::new()
        .prefix(".blueflame-")
        .suffix(".tmp")
        // As for any other new file, the umask takes away from this.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory_of(path))
        .map_err(failed("write beside", path))?;
    fill(staged.as_file_mut()).map_err(failed("write", path))?;
    match durability {
        Durability::Process => {}
        Durability::Power => staged.as_file().sync_all().map_err(failed("sync", path))?,
    }
    Ok(staged)
}

fn settle(path: &Path, durability: Durability) -> Result<(), AtomicError> {
    match durability {
        Durability::Process => Ok(()),
        Durability::Power => {
            sync_directory(directory_of(path)).map_err(failed("sync the directory of", path))
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AtomicError {
    let path = path.to_owned();
    move |source| AtomicError { step, path, source }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names_in(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("status.json");
        for (text, durability) in [("one", Durability::Process), ("two", Durability::Power)] {
            replace(&path, text.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names_in(dir.path()), ["status.json"]);
    }

    #[test]
    fn a_link_is_replaced_and_its_target_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("secret"), dir.path().join("status.json"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &link).unwrap();
        replace(&link, b"new", Durability::Process).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    }

    #[test]
    fn an_error_leaves_the_old_file_and_no_temporary_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.json");
        fs::write(&path, "old").unwrap();

        let half = create(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(half.unwrap_err().source.kind(), io::ErrorKind::StorageFull);

        let taken = create(&path, |file| file.write_all(b"new"));
        assert_eq!(taken.unwrap_err().source.kind(), io::ErrorKind::AlreadyExists);

        let directory = dir.path().join("a directory");
        fs::create_dir(&directory).unwrap();
        let refused = replace(&directory, b"new", Durability::Power).unwrap_err();
        assert!(refused.to_string().starts_with("cannot replace `"), "{refused}");

        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names_in(dir.path()), ["a directory", "result.json"]);
    }

    #[test]
    fn a_missing_directory_is_an_error_and_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gone/status.json");
        assert!(replace(&path, b"x", Durability::Process).is_err());
        assert!(names_in(dir.path()).is_empty());
    }
}
