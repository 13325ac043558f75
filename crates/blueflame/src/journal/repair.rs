//! Taking a torn tail off a journal.
//!
//! The bytes are kept in a file beside it before they are cut off, so nothing is
//! ever thrown away. If they cannot be kept, because the disk is full for
//! instance, the journal stays as it is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::writer::{OpenError, disk};
use crate::atomic_file::{self, AtomicError};

/// A torn tail that was taken off, so that it can be told and journaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Where it began: the journal's length from now on.
    pub at: u64,
    pub bytes: u64,
    /// The file that has those bytes.
    pub kept_in: PathBuf,
}

/// Moves the last `bytes` of the file, from `at` on, to a file beside it. The
/// caller flushes.
pub(super) fn take_off(
    path: &Path,
    file: &mut File,
    at: u64,
    bytes: u64,
) -> Result<Repair, OpenError> {
    let kept_in = keep_aside(path, file, at, bytes).map_err(|source| {
        let path = path.to_owned();
        OpenError::KeepAside { path, bytes, source }
    })?;
    file.set_len(at).map_err(disk(path, "shorten"))?;
    Ok(Repair { at, bytes, kept_in })
}

/// Copies the tail to the first free name of `journal.jsonl.torn-<at>[-<n>]`.
fn keep_aside(path: &Path, file: &mut File, at: u64, bytes: u64) -> Result<PathBuf, AtomicError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".torn-{at}"));
    let mut number = 1_u32;
    loop {
        let mut aside = name.clone();
        if number > 1 {
            aside.push(format!("-{number}"));
        }
        let aside = PathBuf::from(aside);
        let copied = atomic_file::create(&aside, |copy| {
            file.seek(SeekFrom::Start(at))?;
            io::copy(&mut file.take(bytes), copy).map(drop)
        });
        match copied {
            Ok(()) => return Ok(aside),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
