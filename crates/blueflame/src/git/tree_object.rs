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

/// The most that is read of directories at a time.
const MOST_BYTES: usize = 64 << 20;

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
    /// The directories that commits or trees are.
    pub fn trees(&self, of: &[&str]) -> Result<Bounded<Vec<Tree>>, GitError> {
        let names: Vec<String> = of.iter().map(|name| format!("{name}^{{tree}}")).collect();
        self.read_trees(&names, MOST_BYTES)
    }

    fn read_trees(&self, names: &[String], most: usize) -> Result<Bounded<Vec<Tree>>, GitError> {
        let Bounded::Whole(objects) = self.read(names, most)? else { return Ok(Bounded::TooMuch) };
        let trees = objects.iter().map(|object| {
            let tree = (object.kind == "tree").then(|| read(&object.bytes, &object.oid)).flatten();
            tree.ok_or_else(|| strange(&format!("no tree: `{}`", object.oid)))
        });
        trees.collect::<Result<_, _>>().map(Bounded::Whole)
    }

    /// What is at a path of a commit or a tree, if anything is.
    pub fn at(&self, of: &str, path: &Path) -> Result<Bounded<Option<Entry>>, GitError> {
        let mut above = of.to_owned();
        let mut found = None;
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            let Bounded::Whole(mut trees) = self.trees(&[&above])? else {
                return Ok(Bounded::TooMuch);
            };
            found = trees.pop().and_then(|mut tree| tree.remove(part.as_os_str().as_bytes()));
            match &found {
                Some(Entry { mode: Mode::Directory, oid }) => above = oid.to_string(),
                _ if parts.peek().is_some() => return Ok(Bounded::Whole(None)),
                _ => {}
            }
        }
        Ok(Bounded::Whole(found))
    }

    /// The paths of all files in a commit or a tree, if they and the directories take no
    /// more than so many bytes.
    pub fn paths(&self, of: &str, most: usize) -> Result<Bounded<Vec<PathBuf>>, GitError> {
        let (mut found, mut left) = (Vec::new(), most);
        let mut level = vec![(PathBuf::new(), format!("{of}^{{tree}}"))];
        while !level.is_empty() {
            let names: Vec<String> = level.iter().map(|(_, name)| name.clone()).collect();
            let Bounded::Whole(trees) = self.read_trees(&names, left)? else {
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
        let (mut found, mut visited) = (Vec::new(), 0);
        let mut left = vec![(PathBuf::new(), Some(one.oid.clone()), Some(other.oid.clone()))];
        while let Some((directory, one, other)) = left.pop() {
            if one == other {
                continue;
            }
            visited += 1;
            let Bounded::Whole((mut before, mut after)) =
                self.both(one.as_ref(), other.as_ref())?
            else {
                return Ok(Bounded::TooMuch);
            };
            let names: Vec<Vec<u8>> = before.keys().chain(after.keys()).cloned().collect();
            for name in names {
                let (one, other) = (before.remove(&name), after.remove(&name));
                if one == other {
                    continue;
                }
                let path = directory.join(OsStr::from_bytes(&name));
                let is_file =
                    |it: &Option<Entry>| it.as_ref().is_some_and(|it| it.mode != Mode::Directory);
                let directory =
                    |it: Option<Entry>| it.filter(|it| it.mode == Mode::Directory).map(|it| it.oid);
                if is_file(&one) || is_file(&other) {
                    found.push(path.clone());
                }
                let (one, other) = (directory(one), directory(other));
                if one != other {
                    left.push((path, one, other));
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
        one: Option<&Oid>,
        other: Option<&Oid>,
    ) -> Result<Bounded<(Tree, Tree)>, GitError> {
        let names: Vec<&str> = one.into_iter().chain(other).map(Oid::as_str).collect();
        let Bounded::Whole(mut trees) = self.trees(&names)? else { return Ok(Bounded::TooMuch) };
        let mut last = |is_there: bool| is_there.then(|| trees.pop()).flatten().unwrap_or_default();
        let after = last(other.is_some());
        Ok(Bounded::Whole((last(one.is_some()), after)))
    }
}

/// Reads `<mode> <name>\0<oid>`, one after the other.
fn read(mut bytes: &[u8], of: &Oid) -> Option<Tree> {
    let width = of.as_str().len() / 2;
    let mut tree = Tree::new();
    while !bytes.is_empty() {
        let blank = bytes.iter().position(|byte| *byte == b' ')?;
        let end = blank + bytes[blank..].iter().position(|byte| *byte == 0)?;
        let mode = match &bytes[..blank] {
            b"40000" => Mode::Directory,
            b"120000" => Mode::Link,
            b"160000" => Mode::Submodule,
            b"100755" => Mode::Executable,
            // Old repositories hold files that the group may write.
            mode if mode.starts_with(b"100") => Mode::File,
            _ => return None,
        };
        let mut oid = String::with_capacity(2 * width);
        for byte in bytes.get(end + 1..=end + width)? {
            let _ = write!(oid, "{byte:02x}");
        }
        let entry = Entry { mode, oid: Oid::new(oid).ok()? };
        tree.insert(bytes[blank + 1..end].to_vec(), entry);
        bytes = &bytes[end + 1 + width..];
    }
    Some(tree)
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

    /// Twenty trees that stand for a million million directories.
    #[test]
    fn directories_beyond_number_are_too_much() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("file", "x");
        repository.commit("start");
        let made = |entries: &str| {
            let script = format!("printf '{entries}' | git mktree");
            let made = std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(repository.path())
                .output()
                .unwrap();
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        };
        let mut tree = made("");
        for _ in 0..20 {
            let entries = ["a", "b", "c", "d"].map(|it| format!("040000 tree {tree}\\t{it}\\n"));
            tree = made(&entries.concat());
        }
        let objects = Objects::of(&repository.path().join(".git"));
        assert_eq!(objects.differing("HEAD", &tree, 1_000).unwrap(), Bounded::TooMuch);
        assert_eq!(objects.paths(&tree, 1 << 20).unwrap(), Bounded::TooMuch);
    }
}
