//! What changed between two commits, file by file.

use blueflame_core::ids::Oid;
use blueflame_core::policy::{Change, ChangeKind};

use super::{HarvestedCommit, Workspaces};
use crate::git::{Answer, GitError};

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path and what became of it. Bytes that are no text stand in the path
    /// as `U+FFFD`, which no rule lets pass.
    pub change: Change,
    /// As git writes it: `0o100644`, or 0 for a file that was not there.
    pub old_mode: u32,
    /// As git writes it, or 0 for a file that is gone.
    pub new_mode: u32,
    pub lines: Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    Text { inserted: u64, deleted: u64 },
    Binary,
}

impl Workspaces {
    /// The difference between two commits. A file that was renamed is gone in
    /// one place and new in another.
    pub fn changes(&self, start: &Oid, head: &Oid) -> Result<Vec<ChangedFile>, GitError> {
        self.diff(&[start.as_str(), head.as_str()])
    }

    /// What one commit changes of its first parent; all of it if it has none.
    pub fn changes_of(&self, commit: &HarvestedCommit) -> Result<Vec<ChangedFile>, GitError> {
        match commit.parents.first() {
            Some(parent) => self.changes(parent, &commit.oid),
            None => self.diff(&["--root", commit.oid.as_str()]),
        }
    }

    fn diff(&self, what: &[&str]) -> Result<Vec<ChangedFile>, GitError> {
        let answer = self
            .plain
            .git()
            .words(&["diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames"])
            .words(&["--no-commit-id", "--no-ext-diff", "--no-textconv"])
            .words(what)
            .run()?;
        if answer.status.success() { read(&answer) } else { Err(answer.failure()) }
    }
}

/// Reads `:<modes> <oids> <status>\0<path>\0` for each file, then
/// `<inserted>\t<deleted>\t<path>\0` for each file, in the same order.
fn read(answer: &Answer) -> Result<Vec<ChangedFile>, GitError> {
    let mut parts = answer.stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let mut files = Vec::new();
    let mut lines = Vec::new();
    while let Some(part) = parts.next() {
        if part.starts_with(b":") {
            let path = parts.next().unwrap_or_default();
            files.push(file(part, path).ok_or_else(|| answer.strange(part))?);
        } else {
            lines.push(count(part).ok_or_else(|| answer.strange(part))?);
        }
    }
    if files.len() != lines.len() {
        return Err(answer.strange(b"lists that do not fit"));
    }
    for (file, lines) in files.iter_mut().zip(lines) {
        file.lines = lines;
    }
    Ok(files)
}

fn file(about: &[u8], path: &[u8]) -> Option<ChangedFile> {
    let about = std::str::from_utf8(about).ok()?.strip_prefix(':')?;
    let [old, new, _, _, status] = about.split(' ').collect::<Vec<_>>()[..] else { return None };
    let mode = |text| u32::from_str_radix(text, 8).ok();
    let (old_mode, new_mode) = (mode(old)?, mode(new)?);
    let kind = match (new_mode & 0o170_000, status) {
        (0o120_000, _) => ChangeKind::Link,
        (0o160_000, _) => ChangeKind::Submodule,
        (_, "A") => ChangeKind::Added,
        (_, "D") => ChangeKind::Deleted,
        (_, "M" | "T") => ChangeKind::Modified,
        _ => return None,
    };
    let path = String::from_utf8_lossy(path).into_owned();
    Some(ChangedFile { change: Change { path, kind }, old_mode, new_mode, lines: Lines::Binary })
}

fn count(part: &[u8]) -> Option<Lines> {
    let mut fields = part.splitn(3, |byte| *byte == b'\t');
    let mut number = || std::str::from_utf8(fields.next()?).ok();
    let (inserted, deleted) = (number()?, number()?);
    if inserted == "-" {
        return Some(Lines::Binary);
    }
    Some(Lines::Text { inserted: inserted.parse().ok()?, deleted: deleted.parse().ok()? })
}
