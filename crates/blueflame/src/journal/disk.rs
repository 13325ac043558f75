//! The little that a journal asks of a disk, so that tests can put one in that
//! fails.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

/// What a writer needs of a file. Tests put failing disks here.
pub trait Disk {
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything added is on the disk.
    fn flush(&mut self) -> io::Result<()>;
    /// Drops what is beyond `len`.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    fn extent(&self) -> io::Result<Extent>;
}

/// How long a file is, and whether it still has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub len: u64,
    pub named: bool,
}

impl Disk for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn extent(&self) -> io::Result<Extent> {
        let metadata = self.metadata()?;
        Ok(Extent { len: metadata.len(), named: metadata.nlink() > 0 })
    }
}

/// A disk in memory that fails where it is told to.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Failing {
    pub bytes: Vec<u8>,
    /// Takes this much of the next write and then fails.
    pub short_write: Option<usize>,
    pub no_flush: bool,
    pub no_cut: bool,
    pub flushes: u32,
}

#[cfg(test)]
impl Disk for Failing {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.short_write {
            None => self.bytes.extend_from_slice(bytes),
            Some(taken) => {
                self.bytes.extend_from_slice(&bytes[..taken]);
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        if self.no_flush { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        if self.no_cut {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.bytes.truncate(usize::try_from(len).unwrap());
        Ok(())
    }

    fn extent(&self) -> io::Result<Extent> {
        Ok(Extent { len: self.bytes.len() as u64, named: true })
    }
}
