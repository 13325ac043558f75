//! Directories of commits, read from the bytes of their objects, listed and compared.
//!
//! What two of them have in common is never read. Agents make trees as well: a few of
//! them can stand for more directories than there is time for, so all of it is bounded.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;

use super::GitError;
use super::objects::{Bounded, Objects, strange};

/// The most that is read of directories for one question.
const MOST_BYTES: usize = 16 << 20;

/// The most directories that are compared.
const MOST_DIRECTORIES: usize = 100_000;

/// What is at one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub mode: Mode,
    pub oid: Oid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    File,
    Executable,
    Link,
    Submodule,
    Directory,
}

/// A directory, by name.
pub type Tree = BTreeMap<Vec<u8>, Entry>;

impl Objects {
    /// One directory, by the name of its object or by that of a commit with `^{tree}`.
    pub fn tree(&self, name: &str) -> Result<Bounded<Tree>, GitError> {
        let mut unread = MOST_BYTES;
        Ok(match self.trees(&[name.to_owned()], &mut unread)? {
            Bounded::Whole(mut trees) => Bounded::Whole(trees.pop().unwrap_or_default()),
            Bounded::TooMuch => Bounded::TooMuch,
        })
    }

    /// Several of them, of which so many bytes may be read: those are taken off.
    fn trees(&self, names: &[String], unread: &mut usize) -> Result<Bounded<Vec<Tree>>, GitError> {
        let Bounded::Whole(objects) = self.read(names, *unread)? else {
            return Ok(Bounded::TooMuch);
        };
        *unread -= objects.iter().map(|object| object.bytes.len()).sum::<usize>();
        let trees = objects.iter().map(|object| {
            let tree = (object.kind == "tree").then(|| read(&object.bytes, &object.oid)).flatten();
            tree.ok_or_else(|| strange(&format!("no tree: `{}`", object.oid)))
        });
        trees.collect::<Result<_, _>>().map(Bounded::Whole)
    }

    /// What is at a path of a commit or a tree, if anything is.
    pub fn at(&self, of: &str, path: &Path) -> Result<Bounded<Option<Entry>>, GitError> {
        let mut above = format!("{of}^{{tree}}");
        let mut found = None;
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            let Bounded::Whole(mut tree) = self.tree(&above)? else {
                return Ok(Bounded::TooMuch);
            };
            found = tree.remove(part.as_os_str().as_bytes());
            match &found {
                Some(Entry { mode: Mode::Directory, oid }) => above = oid.to_string(),
                _ if parts.peek().is_some() => return Ok(Bounded::Whole(None)),
                _ => {}
            }
        }
        Ok(Bounded::Whole(found))
    }

    /// The paths of all files in a commit or a tree, if they and those of directories take
    /// no more than so many bytes.
    pub fn paths(&self, of: &str, most: usize) -> Result<Bounded<Vec<PathBuf>>, GitError> {
        // What is read has the names of objects in it besides.
        let (mut found, mut left, mut unread) = (Vec::new(), most, most.saturating_mul(4));
        let mut level = vec![(PathBuf::new(), format!("{of}^{{tree}}"))];
        while !level.is_empty() {
            let names: Vec<String> = level.iter().map(|(_, name)| name.clone()).collect();
            let Bounded::Whole(trees) = self.trees(&names, &mut unread)? else {
                return Ok(Bounded::TooMuch);
            };
            let mut next = Vec::new();
            for ((directory, _), tree) in level.iter().zip(trees) {
                for (name, entry) in tree {
                    let path = directory.join(OsStr::from_bytes(&name));
                    // A directory may stand in many places: each of its paths counts.
                    let Some(rest) = left.checked_sub(path.as_os_str().len() + 1) else {
                        return Ok(Bounded::TooMuch);
                    };
                    left = rest;
                    match entry.mode {
                        Mode::Directory => next.push((path, entry.oid.to_string())),
                        _ => found.push(path),
                    }
                }
            }
            level = next;
        }
        found.sort();
        Ok(Bounded::Whole(found))
    }

    /// The paths of files in which two commits or trees differ, if they are no more than
    /// so many.
    pub fn differing(
        &self,
        one: &str,
        other: &str,
        most: usize,
    ) -> Result<Bounded<Vec<PathBuf>>, GitError> {
        let tops = self.about(&[one, other].map(|name| format!("{name}^{{tree}}")))?;
        let [Some(one), Some(other)] = &tops[..] else { return Err(strange("no tree")) };
        let (mut found, mut visited, mut unread) = (Vec::new(), 0, MOST_BYTES);
        let mut left = vec![(PathBuf::new(), [Some(one.oid.clone()), Some(other.oid.clone())])];
        while let Some((directory, sides)) = left.pop() {
            visited += 1;
            let Bounded::Whole([mut before, mut after]) = self.both(&sides, &mut unread)? else {
                return Ok(Bounded::TooMuch);
            };
            let names: Vec<Vec<u8>> = before.keys().chain(after.keys()).cloned().collect();
            for name in names {
                let sides = [before.remove(&name), after.remove(&name)];
                if sides[0] == sides[1] {
                    continue;
                }
                let path = directory.join(OsStr::from_bytes(&name));
                let is_file = |entry: &Entry| entry.mode != Mode::Directory;
                if sides.iter().flatten().any(is_file) {
                    found.push(path.clone());
                }
                let below = sides.map(|entry| entry.filter(|it| !is_file(it)).map(|it| it.oid));
                if below[0] != below[1] {
                    left.push((path, below));
                }
            }
            if found.len() > most || visited > MOST_DIRECTORIES {
                return Ok(Bounded::TooMuch);
            }
        }
        found.sort();
        Ok(Bounded::Whole(found))
    }

    /// Two directories, of which one may be missing.
    fn both(
        &self,
        sides: &[Option<Oid>; 2],
        unread: &mut usize,
    ) -> Result<Bounded<[Tree; 2]>, GitError> {
        let names: Vec<String> = sides.iter().flatten().map(Oid::to_string).collect();
        let Bounded::Whole(trees) = self.trees(&names, unread)? else {
            return Ok(Bounded::TooMuch);
        };
        let mut trees = trees.into_iter();
        let side = |oid: &Option<Oid>| oid.as_ref().and_then(|_| trees.next()).unwrap_or_default();
        Ok(Bounded::Whole(sides.each_ref().map(side)))
    }
}

/// Reads `<mode> <name>\0<oid>`, one after the other.
fn read(mut bytes: &[u8], of: &Oid) -> Option<Tree> {
    let width = of.as_str().len() / 2;
    let mut tree = Tree::new();
    while !bytes.is_empty() {
        let blank = bytes.iter().position(|byte| *byte == b' ')?;
        let end = blank + bytes[blank..].iter().position(|byte| *byte == 0)?;
        let mut oid = String::with_capacity(2 * width);
        for byte in bytes.get(end + 1..=end + width)? {
            let _ = write!(oid, "{byte:02x}");
        }
        let entry = Entry { mode: mode(&bytes[..blank])?, oid: Oid::new(oid).ok()? };
        tree.insert(bytes[blank + 1..end].to_vec(), entry);
        bytes = &bytes[end + 1 + width..];
    }
    Some(tree)
}

/// What git takes a mode for: programs have written all kinds of them.
fn mode(digits: &[u8]) -> Option<Mode> {
    let mode = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?;
    Some(match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => Mode::Executable,
        0o100_000 => Mode::File,
        0o120_000 => Mode::Link,
        0o040_000 => Mode::Directory,
        _ => Mode::Submodule,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use blueflame_testkit::{Repository, TestEnv};

    use super::*;

    fn listed<const N: usize>(repository: &Repository<'_>, arguments: [&str; N]) -> Vec<PathBuf> {
        let text = repository.git(arguments);
        let mut paths: Vec<PathBuf> =
            text.split('\0').filter(|it| !it.is_empty()).map(PathBuf::from).collect();
        paths.sort();
        paths
    }

    #[test]
    fn directories_are_listed_and_compared_as_git_does_it() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let root = repository.path().to_owned();
        for path in ["a", "b/c", "b/d/e", "b/d/f", "b.txt", "gone/x", "kind", "same/deep/er/y"] {
            repository.write(path, path);
        }
        symlink("a", root.join("link")).unwrap();
        repository.commit("one");
        repository.write("b/d/e", "other");
        repository.write("new/deep/file", "new");
        std::fs::remove_dir_all(root.join("gone")).unwrap();
        std::fs::remove_file(root.join("kind")).unwrap();
        repository.write("kind/now/a/directory", "x");
        std::fs::remove_file(root.join("link")).unwrap();
        symlink("b", root.join("link")).unwrap();
        repository.git(["update-index", "--chmod=+x", "a"]);
        repository.commit("two");
        repository.git(["update-index", "--chmod=+x", "a"]);
        repository.git(["commit", "-q", "--amend", "-m", "two"]);

        let objects = Objects::of(&root.join(".git"));
        let differing = objects.differing("HEAD~1", "HEAD", 100).unwrap();
        let expected =
            listed(&repository, ["diff-tree", "-r", "-z", "--name-only", "HEAD~1", "HEAD"]);
        assert_eq!(differing, Bounded::Whole(expected.clone()));
        assert_eq!(objects.differing("HEAD", "HEAD~1", 100).unwrap(), differing);
        assert_eq!(objects.differing("HEAD", "HEAD", 0).unwrap(), Bounded::Whole(Vec::new()));
        let few = expected.len() - 1;
        assert_eq!(objects.differing("HEAD~1", "HEAD", few).unwrap(), Bounded::TooMuch);
        for commit in ["HEAD", "HEAD~1"] {
            let all = listed(&repository, ["ls-tree", "-r", "-z", "--name-only", commit]);
            assert_eq!(objects.paths(commit, 1 << 20).unwrap(), Bounded::Whole(all));
        }
        assert_eq!(objects.paths("HEAD", 20).unwrap(), Bounded::TooMuch);
        let mode = |path: &str| match objects.at("HEAD", Path::new(path)).unwrap() {
            Bounded::Whole(found) => found.map(|entry| entry.mode),
            Bounded::TooMuch => panic!("{path}"),
        };
        for (path, expected) in [
            ("a", Some(Mode::Executable)),
            ("b/d/e", Some(Mode::File)),
            ("b/d", Some(Mode::Directory)),
            ("link", Some(Mode::Link)),
            ("gone/x", None),
            ("a/below", None),
            ("b/none", None),
        ] {
            assert_eq!(mode(path), expected, "{path}");
        }
        assert!(objects.differing("HEAD", "none", 9).is_err());
    }

    #[test]
    fn modes_are_what_git_takes_them_for() {
        for (digits, expected) in [
            ("40000", Some(Mode::Directory)),
            ("040000", Some(Mode::Directory)),
            ("40755", Some(Mode::Directory)),
            ("100644", Some(Mode::File)),
            ("100664", Some(Mode::File)),
            ("100755", Some(Mode::Executable)),
            ("100775", Some(Mode::Executable)),
            ("120777", Some(Mode::Link)),
            ("160000", Some(Mode::Submodule)),
            ("20000", Some(Mode::Submodule)),
            ("", None),
            ("8", None),
        ] {
            assert_eq!(mode(digits.as_bytes()), expected, "{digits}");
        }
    }

    /// Twenty trees that stand for a million million directories.
    #[test]
    fn directories_beyond_number_are_too_much() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("file", "x");
        repository.commit("start");
        let made_of = |lines: &str| {
            let script = format!("{lines} | git mktree");
            let made = std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(repository.path())
                .output()
                .unwrap();
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        };
        let made = |entries: &str| made_of(&format!("printf '{entries}'"));
        let mut tree = made("");
        for _ in 0..20 {
            let entries = ["a", "b", "c", "d"].map(|it| format!("040000 tree {tree}\\t{it}\\n"));
            tree = made(&entries.concat());
        }
        let objects = Objects::of(&repository.path().join(".git"));
        assert_eq!(objects.differing("HEAD", &tree, 1_000).unwrap(), Bounded::TooMuch);
        assert_eq!(objects.paths(&tree, 1 << 20).unwrap(), Bounded::TooMuch);
        // Broad instead of deep: few of them are read before it is too much.
        let mut tree = made("");
        for _ in 0..2 {
            let names = format!("seq 100000 | sed 's/.*/040000 tree {tree}\\t&/'");
            tree = made_of(&names);
        }
        assert_eq!(objects.differing("HEAD", &tree, 1_000).unwrap(), Bounded::TooMuch);
        assert_eq!(objects.paths(&tree, 1 << 20).unwrap(), Bounded::TooMuch);
    }
}
