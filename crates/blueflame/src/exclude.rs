//! `info/exclude`: what git ignores in one repository without a word about it
//! in the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blueflame_core::lock_path::LockPath;

use crate::atomic_file::{self, AtomicError, Durability};

#[derive(Debug, thiserror::Error)]
pub enum ExcludeError {
    #[error(transparent)]
    Replace(#[from] AtomicError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
}

/// Has git ignore these patterns too, once. What is there stays.
pub fn add<'a>(
    git_dir: &Path,
    patterns: impl IntoIterator<Item = &'a str>,
) -> Result<(), ExcludeError> {
    let path = git_dir.join("info/exclude");
    let mut text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(ExcludeError::Io { step: "read", path, source }),
    };
    let known = |pattern: &&str| text.split(|byte| *byte == b'\n').any(|l| l == pattern.as_bytes());
    let missing: Vec<&str> = patterns.into_iter().filter(|pattern| !known(pattern)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    for pattern in missing {
        text.extend_from_slice(pattern.as_bytes());
        text.push(b'\n');
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|source| ExcludeError::Io {
            step: "make",
            path: parent.into(),
            source,
        })?;
    }
    atomic_file::replace(&path, &text, Durability::Process)?;
    Ok(())
}

/// The pattern for this path and everything below it.
pub fn pattern(path: &LockPath) -> String {
    let path = path.as_str();
    // Git takes blanks at the end for an oversight.
    let bare = path.trim_end_matches(' ');
    format!("/{bare}{}", "\\ ".repeat(path.len() - bare.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_once_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let read = || fs::read(dir.path().join("info/exclude")).unwrap();
        add(dir.path(), ["/a", "/b/"]).unwrap();
        assert_eq!(read(), b"/a\n/b/\n");
        fs::write(dir.path().join("info/exclude"), b"\xff\n/a").unwrap();
        add(dir.path(), ["/a", "/b/"]).unwrap();
        assert_eq!(read(), b"\xff\n/a\n/b/\n");
        add(dir.path(), ["/b/"]).unwrap();
        assert_eq!(read(), b"\xff\n/a\n/b/\n");
    }

    #[test]
    fn a_blank_at_the_end_is_part_of_the_name() {
        assert_eq!(pattern(&LockPath::new("a b ").unwrap()), "/a b\\ ");
    }
}
