//! Whether a layered workspace holds exactly what was committed, which is how most
//! agents leave theirs.
//!
//! It is answered from what was touched, without git and without the rest of the tree.
//! Whatever is not certain is a no: then git is asked, which knows about files that are
//! ignored, and which names are to be told.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::layers::{Layers, is_gone};
use super::{Workspace, bases, left_file};
use crate::git::GitError;
use crate::git::objects::{Bounded, Objects};
use crate::git::tree_object::{Entry, Mode};

/// Work with more files than this, or with larger ones, is for git.
const MOST_FILES: usize = 200;
const MOST_BYTES: u64 = 16 << 20;

/// Whether nothing in the workspace differs from `head`, for certain.
pub(super) fn holds(objects: &Objects, workspace: &Workspace, head: &Oid) -> bool {
    // What the checkout beneath is of may be gone, which is none of the agent's doing.
    looked(objects, workspace, head).unwrap_or(false)
}

fn looked(objects: &Objects, workspace: &Workspace, head: &Oid) -> Result<bool, GitError> {
    let Some(layers) = Layers::of(&workspace.path) else { return Ok(false) };
    let Some(beneath) = bases::beneath(&layers) else { return Ok(false) };
    let touched = layers.all_touched();
    let expected = objects.differing(beneath.as_str(), head.as_str(), MOST_FILES)?;
    let Bounded::Whole(expected) = expected else { return Ok(false) };
    let is_touched = |path: &PathBuf| path.ancestors().any(|above| touched.contains(above));
    // Where nothing was touched, the checkout beneath is seen.
    if !expected.iter().all(is_touched) {
        return Ok(false);
    }
    let is_hidden = |path: &Path| workspace.hidden.iter().any(|it| path.starts_with(it.as_str()));
    let mut looking = Looking { objects, changes: layers.changes(), files: MOST_FILES };
    for path in &touched {
        let Bounded::Whole(committed) = objects.at(head.as_str(), path)? else { return Ok(false) };
        if committed.is_none() && is_hidden(path) {
            continue;
        }
        if !looking.is(path, committed.as_ref())? {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Looking<'a> {
    objects: &'a Objects,
    changes: PathBuf,
    /// How many may still be looked at.
    files: usize,
}

impl Looking<'_> {
    /// Whether what is at a path is what was committed there.
    fn is(&mut self, path: &Path, committed: Option<&Entry>) -> Result<bool, GitError> {
        let Some(left) = self.files.checked_sub(1) else { return Ok(false) };
        self.files = left;
        let place = self.changes.join(path);
        let Ok(found) = fs::symlink_metadata(&place) else { return Ok(false) };
        let Some(Entry { mode, oid }) = committed else { return Ok(is_gone(&found)) };
        let kind = found.file_type();
        Ok(match mode {
            Mode::Directory if kind.is_dir() => return self.is_directory(path, oid),
            Mode::File | Mode::Executable if kind.is_file() => {
                let executable = found.mode() & 0o100 != 0;
                executable == (*mode == Mode::Executable)
                    && left_file::read(&place, MOST_BYTES)
                        .is_some_and(|left| name(&left.bytes, oid) == oid.as_str())
            }
            Mode::Link if kind.is_symlink() => fs::read_link(&place)
                .is_ok_and(|target| name(target.as_os_str().as_bytes(), oid) == oid.as_str()),
            _ => false,
        })
    }

    /// The same for a directory through which nothing is seen.
    fn is_directory(&mut self, path: &Path, oid: &Oid) -> Result<bool, GitError> {
        let Bounded::Whole(mut tree) = self.objects.tree(oid.as_str())? else { return Ok(false) };
        let Ok(entries) = fs::read_dir(self.changes.join(path)) else { return Ok(false) };
        for entry in entries {
            let Ok(entry) = entry else { return Ok(false) };
            let committed = tree.remove(entry.file_name().as_bytes());
            if !self.is(&path.join(entry.file_name()), committed.as_ref())? {
                return Ok(false);
            }
        }
        Ok(tree.is_empty())
    }
}

/// What git calls a file with this content, in a repository with names like this one.
fn name(content: &[u8], like: &Oid) -> String {
    let how = if like.as_str().len() == 64 { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY };
    let mut digest = Context::new(how);
    digest.update(format!("blob {}\0", content.len()).as_bytes());
    digest.update(content);
    digest.finish().as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_what_git_calls_them() {
        let like = |width: usize| Oid::new("1".repeat(width)).unwrap();
        assert_eq!(name(b"hello\n", &like(40)), "ce013625030ba8dba906f756967f9e9ca394464a");
        let longer = "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4";
        assert_eq!(name(b"hello\n", &like(64)), longer);
    }
}
