//! Which file systems keep the promises that the lock and the journal rest on.
//!
//! On a network file system a lock may hold on one machine only, and a flush may
//! return before the bytes are anywhere safe. So we do not write there unless the
//! person says so.

use std::fmt;
use std::io;
use std::path::Path;

/// A file system as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    Local,
    /// Shared between machines, or served by another program; with its name.
    Remote(&'static str),
}

/// What the person said about file systems we do not trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    Refuse,
    Accept,
}

/// The numbers by which Linux knows them (statfs(2)).
const REMOTE: [(u32, &str); 12] = [
    (0x0000_6969, "NFS"),
    (0x0000_517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0000_564c, "NetWare"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
];

impl FileSystem {
    /// Asks the system about an existing file or directory.
    pub fn of(path: &Path) -> io::Result<FileSystem> {
        let kind = rustix::fs::statfs(path)?.f_type;
        // The type of this field differs between machines; its 32 bits do not.
        let number = u32::try_from(kind & 0xffff_ffff).unwrap_or_default();
        Ok(FileSystem::numbered(number))
    }

    fn numbered(number: u32) -> FileSystem {
        match REMOTE.iter().find(|(known, _)| *known == number) {
            Some((_, name)) => FileSystem::Remote(name),
            None => FileSystem::Local,
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FileSystem::Local => "local",
            FileSystem::Remote(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_disks_are_local_and_shared_ones_are_not() {
        // ext4, btrfs, xfs, tmpfs, overlayfs, zfs
        for number in [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1] {
            assert_eq!(FileSystem::numbered(number), FileSystem::Local, "{number:x}");
        }
        assert_eq!(FileSystem::numbered(0x6969), FileSystem::Remote("NFS"));
        assert_eq!(FileSystem::numbered(0xff53_4d42), FileSystem::Remote("SMB"));
        assert_eq!(FileSystem::numbered(0x6573_5546), FileSystem::Remote("FUSE"));
    }

    #[test]
    fn the_system_answers_for_a_real_path() {
        assert_eq!(FileSystem::of(Path::new("/proc")).unwrap(), FileSystem::Local);
        assert!(FileSystem::of(Path::new("/no/such/path")).is_err());
    }
}
