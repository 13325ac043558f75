//! Room on the disk, asked for before it is used.

use std::path::Path;

use blueflame_core::ids::Oid;

use super::error::WorkspaceError;
use super::plain::PlainRepository;
use crate::git::GitError;

/// Files take whole blocks.
const BLOCK: u64 = 4096;

/// What a checkout of a commit comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    pub files: usize,
    pub bytes: u64,
    pub submodules: Vec<String>,
}

pub(super) fn survey(plain: &PlainRepository, start: &Oid) -> Result<Survey, GitError> {
    let call = plain.git().words(&["ls-tree", "-r", "-l", "-z", "--full-tree", start.as_str()]);
    let answer = call.run()?;
    if !answer.status.success() {
        return Err(answer.failure());
    }
    let mut survey = Survey { files: 0, bytes: 0, submodules: Vec::new() };
    for entry in answer.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let text = String::from_utf8_lossy(entry);
        let Some((about, path)) = text.split_once('\t') else {
            return Err(answer.strange(entry));
        };
        match about.split_whitespace().collect::<Vec<_>>()[..] {
            [_, "commit", _, _] => survey.submodules.push(path.to_owned()),
            [_, _, _, size] => {
                let size: u64 = size.parse().map_err(|_| answer.strange(entry))?;
                survey.files += 1;
                survey.bytes += on_disk(size);
            }
            _ => return Err(answer.strange(entry)),
        }
    }
    Ok(survey)
}

/// What a file of this size takes, with its entry in a directory and the index.
pub(super) fn on_disk(size: u64) -> u64 {
    size.next_multiple_of(BLOCK) + 512
}

/// Refuses when less than `spare` bytes would stay free.
pub(super) fn check(directory: &Path, need: u64, spare: u64) -> Result<(), WorkspaceError> {
    let disk = rustix::fs::statvfs(directory)
        .map_err(|error| WorkspaceError::io("look at", directory, error.into()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= need.saturating_add(spare) {
        return Ok(());
    }
    let mb = |bytes: u64| bytes.div_ceil(1_000_000);
    Err(WorkspaceError::NoSpace {
        path: directory.to_owned(),
        need_mb: mb(need),
        spare_mb: mb(spare),
        free_mb: free / 1_000_000,
    })
}
