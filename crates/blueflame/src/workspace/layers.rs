//! A workspace in two layers: a checkout that many share and nobody writes, and
//! what is different in this one.
//!
//! The kernel lays one over the other, in the mount namespace of whoever works
//! there ([`enter`](super::enter)). From outside, the place of the workspace has
//! a link to the checkout and a directory with what was touched.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::XattrFlags;
use tempfile::TempDir;

/// In the place of a workspace: a link to the checkout beneath it.
pub(super) const BASE: &str = "base";

/// In the place of a workspace: what was touched.
pub(super) const CHANGES: &str = "changes";

/// Says of a directory that nothing is seen through it.
const OPAQUE: &str = "user.overlay.opaque";

/// More links than any honest file is behind.
const MOST_LINKS: usize = 20;

/// The layers of a workspace, as they are seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    place: PathBuf,
}

impl Layers {
    /// Those in the place of a workspace; `None` if it is a plain one, or if it is
    /// seen from inside.
    pub fn of(place: &Path) -> Option<Layers> {
        let there = |name: &str| fs::symlink_metadata(place.join(name));
        let layered = there(".git").is_err()
            && there(&format!("{CHANGES}/.git")).is_ok_and(|found| found.is_dir())
            && there(BASE).is_ok_and(|found| found.is_symlink());
        layered.then(|| Layers { place: place.to_owned() })
    }

    pub(super) fn planned(place: &Path) -> Layers {
        Layers { place: place.to_owned() }
    }

    pub fn place(&self) -> &Path {
        &self.place
    }

    pub fn base(&self) -> PathBuf {
        self.place.join(BASE)
    }

    pub fn changes(&self) -> PathBuf {
        self.place.join(CHANGES)
    }

    /// Where a file of the workspace is, if it is there.
    pub fn find(&self, path: &Path) -> Option<PathBuf> {
        let changed = self.changes().join(path);
        if self.touched(path) {
            return fs::symlink_metadata(&changed).is_ok_and(|it| !is_gone(&it)).then_some(changed);
        }
        let beneath = self.base().join(path);
        fs::symlink_metadata(&beneath).is_ok().then_some(beneath)
    }

    /// Every path at which the checkout beneath has no say, except for those of git
    /// and for what is below one of them: files, notes that something is gone, and
    /// directories that nothing is seen through. One that cannot be looked into
    /// counts: an agent may have seen to that.
    pub fn all_touched(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            let Ok(entries) = fs::read_dir(self.changes().join(&directory)) else {
                found.insert(directory);
                continue;
            };
            for entry in entries.flatten() {
                let path = directory.join(entry.file_name());
                if path == Path::new(".git") {
                    continue;
                }
                let is_directory = |found: fs::Metadata| found.is_dir();
                let both = entry.metadata().is_ok_and(is_directory)
                    && fs::symlink_metadata(self.base().join(&path)).is_ok_and(is_directory);
                if both && !is_opaque(&entry.path()) {
                    directories.push(path);
                } else {
                    found.insert(path);
                }
            }
        }
        found
    }

    /// A directory with these files of the workspace's root as they are seen from
    /// inside, and with what they are links to. `None` if none of them is there.
    pub fn copy_of(&self, files: &[&str]) -> io::Result<Option<TempDir>> {
        if files.iter().all(|file| self.find(Path::new(file)).is_none()) {
            return Ok(None);
        }
        let copy = tempfile::tempdir()?;
        let mut left: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let mut steps = 0;
        while let Some(path) = left.pop().filter(|_| steps < MOST_LINKS) {
            steps += 1;
            let Some(found) = self.find(&path) else { continue };
            let to = copy.path().join(&path);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            let kind = fs::symlink_metadata(&found)?.file_type();
            if kind.is_symlink() {
                let target = fs::read_link(&found)?;
                let next = path.parent().unwrap_or(Path::new("")).join(&target);
                std::os::unix::fs::symlink(target, &to)?;
                let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
                if next.components().all(plain) {
                    left.push(next);
                }
            } else if kind.is_file() {
                fs::copy(&found, &to)?;
            } else {
                fs::create_dir_all(&to)?;
            }
        }
        Ok(Some(copy))
    }

    /// Whether the checkout beneath has no say in what is at a path.
    pub fn touched(&self, path: &Path) -> bool {
        let mut at = self.changes();
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            at.push(part);
            match fs::symlink_metadata(&at) {
                Err(_) => return false,
                Ok(found) if found.is_dir() && parts.peek().is_some() => {
                    if is_opaque(&at) {
                        return true;
                    }
                }
                // A directory on both sides shows what is in either.
                Ok(found) => return !found.is_dir() || is_opaque(&at),
            }
        }
        false
    }
}

/// How the kernel notes that something beneath is gone.
pub(super) fn is_gone(found: &fs::Metadata) -> bool {
    found.file_type().is_char_device() && found.rdev() == 0
}

fn is_opaque(directory: &Path) -> bool {
    let mut value = [0; 8];
    match rustix::fs::lgetxattr(directory, OPAQUE, &mut value[..]) {
        Ok(length) => value[..length] == *b"y",
        Err(_) => false,
    }
}

/// Has nothing seen through a directory.
pub(super) fn make_opaque(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::lsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())?)
}

/// Makes the directories of a layered workspace over a checkout, which is named as
/// seen from its place.
pub(super) fn lay_out(place: &Path, base: &Path) -> io::Result<Layers> {
    fs::create_dir_all(place.join(CHANGES))?;
    std::os::unix::fs::symlink(base, place.join(BASE))?;
    Ok(Layers::planned(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beneath_is_found_until_it_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let (base, place) = (dir.path().join("base"), dir.path().join("place"));
        fs::create_dir_all(base.join("src/deep")).unwrap();
        for file in ["a", "b", "src/c", "src/deep/d"] {
            fs::write(base.join(file), "beneath").unwrap();
        }
        let layers = lay_out(&place, Path::new("../base")).unwrap();
        assert_eq!(Layers::of(&place), None, "without a repository it is not finished");
        fs::create_dir(layers.changes().join(".git")).unwrap();
        assert_eq!(Layers::of(&place).as_ref(), Some(&layers));

        fs::write(layers.changes().join("a"), "changed").unwrap();
        fs::create_dir_all(layers.changes().join("src/deep")).unwrap();
        fs::write(layers.changes().join("src/new"), "new").unwrap();
        let read = |path: &str| {
            layers.find(Path::new(path)).map(|found| fs::read_to_string(found).unwrap())
        };
        assert_eq!(read("a").as_deref(), Some("changed"));
        assert_eq!(read("b").as_deref(), Some("beneath"));
        assert_eq!(read("src/c").as_deref(), Some("beneath"));
        assert_eq!(read("src/deep/d").as_deref(), Some("beneath"));
        assert_eq!(read("src/new").as_deref(), Some("new"));
        assert_eq!(read("none"), None);
        assert!(!layers.touched(Path::new("b")) && !layers.touched(Path::new("src/c")));

        let opaque = layers.changes().join("src/deep");
        make_opaque(&opaque).unwrap();
        assert!(layers.touched(Path::new("src/deep/d")));
        assert_eq!(read("src/deep/d"), None);
    }
}
