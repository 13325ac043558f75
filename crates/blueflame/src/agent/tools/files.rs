//! Files as the tools read and write them: regular ones, of a bearable size,
//! replaced in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::atomic_file::{self, Durability};

/// The largest file that is read or edited.
pub(super) const LARGEST: u64 = 32 << 20;

/// Where text has no NUL, other files mostly have one early on.
const LOOKED_AT: usize = 8 << 10;

/// The bytes of a regular file. Pipes and devices are refused, not waited for.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let opened = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("there is no file `{shown}`"),
        _ => format!("`{shown}` cannot be opened: {error}"),
    })?;
    let kind = file.metadata().map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    if kind.is_dir() {
        return Err(format!("`{shown}` is a directory; list it with Glob or `ls`"));
    }
    if !kind.is_file() {
        return Err(format!("`{shown}` is not a regular file"));
    }
    if kind.len() > LARGEST {
        let (size, most) = (kind.len(), LARGEST >> 20);
        return Err(format!(
            "`{shown}` has {size} bytes, more than {most} MiB; look at parts of it with Grep, or with Bash (`sed -n`, `head`, `tail`)"
        ));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    Ok(bytes)
}

/// Whether these are the bytes of something that is not text.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

/// Puts text in the place of a file, or makes a new one with the directories
/// above it. The mode of an existing file is kept, and a link is written
/// through: whether it may be was judged before.
pub(super) fn write(path: &Path, text: &[u8]) -> Result<Written, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("`{shown}` cannot be written: {error}");
    let target: PathBuf = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path)
            .map_err(|error| format!("`{shown}` is a link that leads nowhere: {error}"))?,
        Ok(_) | Err(_) => path.to_owned(),
    };
    let existing = match fs::metadata(&target) {
        Ok(found) if found.is_file() => Some(found),
        Ok(found) if found.is_dir() => return Err(format!("`{shown}` is a directory")),
        Ok(_) => return Err(format!("`{shown}` is not a regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let (None, Some(parent)) = (&existing, target.parent()) {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let fill = |file: &mut File| {
        file.write_all(text)?;
        existing.as_ref().map_or(Ok(()), |old| file.set_permissions(old.permissions()))
    };
    atomic_file::replace_with(&target, fill, Durability::Process)
        .map_err(|error| error.to_string())?;
    Ok(if existing.is_some() { Written::Replaced } else { Written::Created })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Created,
    Replaced,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_mode_is_kept_and_directories_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/run.sh");
        assert_eq!(write(&path, b"one"), Ok(Written::Created));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        assert_eq!(write(&path, b"two"), Ok(Written::Replaced));
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
        assert_eq!(fs::read_dir(dir.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn links_are_written_through_and_those_that_lead_nowhere_are_explained() {
        let dir = tempfile::tempdir().unwrap();
        let [target, link, dangling, circle] =
            ["target", "link", "dangling", "circle"].map(|name| dir.path().join(name));
        fs::write(&target, "old").unwrap();
        symlink("target", &link).unwrap();
        symlink("nothing", &dangling).unwrap();
        symlink("circle", &circle).unwrap();
        assert_eq!(write(&link, b"new"), Ok(Written::Replaced));
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        for path in [&dangling, &circle] {
            assert!(write(path, b"x").unwrap_err().contains("leads nowhere"));
            assert!(read(path).is_err());
            assert!(fs::symlink_metadata(path).unwrap().is_symlink());
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let why = read(path).unwrap_err();
            assert!(why.ends_with("is not a regular file"), "{why}");
            assert!(write(path, b"x").unwrap_err().ends_with("is not a regular file"));
        }
        assert!(read(dir.path()).unwrap_err().contains("is a directory"));
        assert!(write(dir.path(), b"x").unwrap_err().ends_with("is a directory"));
        assert!(write(&pipe.join("below"), b"x").is_err());
    }
}
