//! What a proof that was killed has left in the home and among temporary files.
//!
//! Whoever uses such a thing holds a lock on it, and the kernel lets go of that
//! with the process: what nobody holds belongs to nobody any more.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// How the names begin.
pub const PLACE: &str = "blueflame-proof-";
pub const SECRET: &str = ".blueflame-proof-";

/// Takes hold of something for as long as the answer lives.
pub fn hold(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes what nobody holds. What cannot be removed is in nobody's way.
pub fn sweep() {
    sweep_in(&std::env::temp_dir(), PLACE);
    if let Some(home) = std::env::var_os("HOME") {
        sweep_in(&PathBuf::from(home), SECRET);
    }
}

fn sweep_in(directory: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let ours = entry.file_name().to_string_lossy().starts_with(prefix)
            && found.uid() == rustix::process::geteuid().as_raw();
        if !ours || !(found.is_dir() || found.is_file()) || hold(&path).is_err() {
            continue;
        }
        let _ = if found.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_holds_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["blueflame-proof-used", "blueflame-proof-left", "something-else"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "x").unwrap();
        }
        fs::write(at("blueflame-proof-file"), "x").unwrap();
        std::os::unix::fs::symlink(at("something-else"), at("blueflame-proof-link")).unwrap();
        let held = hold(&at("blueflame-proof-used")).unwrap();
        sweep_in(place.path(), PLACE);
        let names = || {
            let entries = fs::read_dir(place.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["blueflame-proof-link", "blueflame-proof-used", "something-else"]);
        assert!(at("something-else/file").exists());
        drop(held);
        sweep_in(place.path(), PLACE);
        assert_eq!(names(), ["blueflame-proof-link", "something-else"]);
    }
}
