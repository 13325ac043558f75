//! How a tree of files is known again: a mark of all that is in it, taken without
//! reading a file.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};

use crate::at_once;

/// So many directories at least are worth a thread.
const WORTH_A_THREAD: usize = 16;

/// The mark of everything below a directory: names, kinds, sizes and times, and for
/// what it was made. Whoever alters a file gives it another time of its last change,
/// which no call sets (within the grain of the clock of the file system).
pub(super) fn of(root: &Path, purpose: &[u8]) -> io::Result<String> {
    let mut mark = blake3::Hasher::new();
    mark.update(purpose);
    let mut level = vec![PathBuf::new()];
    while !level.is_empty() {
        let read = at_once::each(&level, WORTH_A_THREAD, |directory| listed(root, directory));
        level.clear();
        for directory in read {
            let directory = directory?;
            mark.update(directory.mark.as_bytes());
            level.extend(directory.below);
        }
    }
    Ok(mark.finalize().to_hex().to_string())
}

/// What is in one directory.
struct Listed {
    mark: blake3::Hash,
    below: Vec<PathBuf>,
}

/// The kernel is asked once for each entry, by its name in the open directory.
fn listed(root: &Path, directory: &Path) -> io::Result<Listed> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(root.join(directory), flags, Mode::empty())?;
    let mut names: Vec<CString> = Vec::new();
    for entry in Dir::read_from(&opened)? {
        names.push(entry?.file_name().to_owned());
    }
    names.sort_unstable();
    let mut bytes = directory.as_os_str().as_bytes().to_vec();
    let mut below = Vec::new();
    for name in names.iter().filter(|name| ![c".", c".."].contains(&name.as_c_str())) {
        let found = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)?;
        bytes.push(0);
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend(found.st_mode.to_le_bytes());
        if FileType::from_raw_mode(found.st_mode).is_dir() {
            below.push(directory.join(OsStr::from_bytes(name.as_bytes())));
        } else {
            bytes.extend(found.st_size.to_le_bytes());
            bytes.extend(found.st_mtime.to_le_bytes());
            bytes.extend(found.st_mtime_nsec.to_le_bytes());
            bytes.extend(found.st_ctime.to_le_bytes());
            bytes.extend(found.st_ctime_nsec.to_le_bytes());
        }
    }
    Ok(Listed { mark: blake3::hash(&bytes), below })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn whatever_is_done_to_a_tree_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for number in 0..100 {
            let below = root.join(format!("{number}/below"));
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join("file"), "text").unwrap();
        }
        symlink("1/below", root.join("link")).unwrap();
        let file = root.join("7/below/file");
        // Even who puts size and time back.
        let covertly = || {
            let time = fs::metadata(&file).unwrap().modified().unwrap();
            // Clocks of file systems may tick a hundred times a second only.
            thread::sleep(Duration::from_millis(30));
            fs::write(&file, "Other Text").unwrap();
            let times = FileTimes::new().set_modified(time);
            File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
        };
        let executable = || fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        let replaced = || {
            fs::remove_file(root.join("link")).unwrap();
            symlink("2/below", root.join("link")).unwrap();
        };
        let alterations: [(&str, &dyn Fn()); 7] = [
            ("written", &|| fs::write(&file, "other text").unwrap()),
            ("written covertly", &covertly),
            ("made executable", &executable),
            ("link elsewhere", &replaced),
            ("added", &|| fs::write(root.join("9/below/more"), "").unwrap()),
            ("added directory", &|| fs::create_dir(root.join("9/empty")).unwrap()),
            ("removed", &|| fs::remove_file(root.join("99/below/file")).unwrap()),
        ];
        for (what, alter) in alterations {
            let before = of(root, b"a").unwrap();
            assert_eq!(before, of(root, b"a").unwrap(), "nothing was done");
            assert_ne!(before, of(root, b"b").unwrap(), "it is for something else");
            alter();
            assert_ne!(before, of(root, b"a").unwrap(), "{what}");
        }
        assert!(of(&root.join("none"), b"a").is_err());
    }
}
