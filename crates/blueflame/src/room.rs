//! Whether the disk was to blame, looked at after something failed on it.
//!
//! What a command says proves nothing: work that is checked could say so as well.
//! Only a disk that really is short counts, and the words only where it is not
//! clear whether it was short enough.

use std::path::Path;

use rustix::fs::StatVfs;

/// With less than this, nobody gets anything done.
const FULL: u64 = 8 << 20;

/// With less than this, somebody who complains of a full disk is believed: what
/// did not fit may have been removed since.
const SHORT: u64 = 512 << 20;

/// How programs complain.
const COMPLAINTS: [&str; 3] = ["No space left on device", "ENOSPC", "Disk quota exceeded"];

/// The first of these places whose disk has too little room for somebody who
/// failed there with these words. The answer says so, for the person.
pub fn lacking(places: &[&Path], said: &str) -> Option<String> {
    let complains = COMPLAINTS.iter().any(|complaint| said.contains(complaint));
    places.iter().find_map(|place| {
        let disk = rustix::fs::statvfs(*place).ok()?;
        let left = left(&disk, complains)?;
        Some(format!("the disk of `{}` is full: {left} left", place.display()))
    })
}

/// What is left of a disk that has too little.
fn left(disk: &StatVfs, complains: bool) -> Option<String> {
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    // Some file systems have no fixed number of files, and say 0.
    if disk.f_files > 0 && disk.f_favail == 0 {
        return Some("no room for another file is".to_owned());
    }
    let enough = if complains { SHORT } else { FULL };
    (free < enough).then(|| format!("{} MB are", free / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_to_blame_only_if_it_is_short() {
        let mut disk = rustix::fs::statvfs("/").unwrap();
        disk.f_frsize = 1;
        (disk.f_files, disk.f_favail) = (100, 50);
        for (free, complains, expected) in [
            (FULL - 1, false, Some("8 MB are")),
            (FULL, false, None),
            (SHORT - 1, true, Some("536 MB are")),
            (SHORT, true, None),
        ] {
            disk.f_bavail = free;
            assert_eq!(left(&disk, complains).as_deref(), expected, "{free} {complains}");
        }
        disk.f_favail = 0;
        assert_eq!(left(&disk, false).as_deref(), Some("no room for another file is"));
        disk.f_files = 0;
        assert_eq!(left(&disk, false), None);
    }

    #[test]
    fn words_alone_prove_nothing() {
        let mut disk = rustix::fs::statvfs("/").unwrap();
        (disk.f_frsize, disk.f_bavail) = (1, SHORT * 2);
        (disk.f_files, disk.f_favail) = (100, 50);
        assert_eq!(left(&disk, true), None);
        assert_eq!(lacking(&[Path::new("/does/not/exist")], "No space left on device"), None);
    }
}
