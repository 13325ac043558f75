//! How a tree of files is known again: a mark of all that is in it, taken without
//! reading a file.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::at_once;

/// So many directories at least are worth a thread.
const WORTH_A_THREAD: usize = 16;

/// The mark of everything below a directory: names, kinds, sizes and times, and for
/// what it was made. Whoever alters a file gives it another time of its last change,
/// which no call sets (within the grain of the clock of the file system).
pub(super) fn of(root: &Path, purpose: &str) -> io::Result<String> {
    let mut mark = blake3::Hasher::new();
    mark.update(purpose.as_bytes());
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

fn listed(root: &Path, directory: &Path) -> io::Result<Listed> {
    let mut entries: Vec<(OsString, fs::Metadata)> = Vec::new();
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        entries.push((entry.file_name(), entry.metadata()?));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut bytes = directory.as_os_str().as_bytes().to_vec();
    let mut below = Vec::new();
    for (name, found) in entries {
        bytes.push(0);
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend(found.mode().to_le_bytes());
        if found.is_dir() {
            below.push(directory.join(name));
        } else {
            let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
            bytes.extend(found.size().to_le_bytes());
            bytes.extend(times.into_iter().flat_map(i64::to_le_bytes));
        }
    }
    Ok(Listed { mark: blake3::hash(&bytes), below })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes, Permissions};
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
            let before = of(root, "a").unwrap();
            assert_eq!(before, of(root, "a").unwrap(), "nothing was done");
            assert_ne!(before, of(root, "b").unwrap(), "it is for something else");
            alter();
            assert_ne!(before, of(root, "a").unwrap(), "{what}");
        }
        assert!(of(&root.join("none"), "a").is_err());
    }
}
