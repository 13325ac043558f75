//! The objects of one repository, read as they are.
//!
//! A git that stays is asked for them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use blueflame_core::ids::Oid;

use super::GitError;
use super::resident::{Process, Resident};

/// The most that is asked before the answers are read: less than a pipe holds.
const MOST_ASKED: usize = 4 << 10;

/// What git answers about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub oid: Oid,
    /// `commit`, `tree`, `blob` or `tag`.
    pub kind: String,
    pub size: usize,
}

/// An object as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub oid: Oid,
    pub kind: String,
    pub bytes: Vec<u8>,
}

/// An answer that is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounded<T> {
    Whole(T),
    TooMuch,
}

/// Reads the objects of a repository. Whoever has a copy of it shares what answers.
#[derive(Clone, Debug)]
pub struct Objects {
    git: Arc<Resident>,
    /// The trees of commits, which never change: those of a base are asked for by
    /// everybody who starts from it.
    trees: Arc<Mutex<HashMap<Oid, Oid>>>,
}

impl Objects {
    /// Those of a git directory. Nothing is started before something is asked.
    pub fn of(git_dir: &Path) -> Objects {
        Objects { git: Arc::new(Resident::of(git_dir, &COMMAND)), trees: Arc::default() }
    }

    pub fn git_dir(&self) -> &Path {
        self.git.git_dir()
    }

    /// What is known of each of these, which are names as git understands them; `None`
    /// for what is not there. A reference that cannot be read is an error.
    pub fn about(&self, names: &[String]) -> Result<Vec<Option<About>>, GitError> {
        let (answers, complaints) = self.ask("info", names, |_, about| Ok(about))?;
        if complaints.contains("ignoring broken ref") {
            return Err(strange(&complaints));
        }
        Ok(answers)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        let [tree] = self.trees_of([commit])?;
        Ok(tree)
    }

    /// The trees of commits.
    pub fn trees_of<const N: usize>(&self, commits: [&Oid; N]) -> Result<[Oid; N], GitError> {
        let known = || self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<&Oid> = {
            let known = known();
            commits.into_iter().filter(|commit| !known.contains_key(*commit)).collect()
        };
        let names: Vec<String> = new.iter().map(|commit| format!("{commit}^{{tree}}")).collect();
        let about = self.about(&names)?;
        let mut known = known();
        for (commit, tree) in new.into_iter().zip(about) {
            let tree = tree.ok_or_else(|| strange("a commit without a tree"))?;
            known.insert(commit.clone(), tree.oid);
        }
        Ok(commits.map(|commit| known[commit].clone()))
    }

    /// Each of these as it is; all of them together no more than so many bytes.
    pub fn read(&self, names: &[String], most: usize) -> Result<Bounded<Vec<Object>>, GitError> {
        let mut left = most;
        let read = self.ask("contents", names, |git, about| {
            let Some(About { oid, kind, size }) = about else {
                return Err(Unread::Failed(strange("an object is missing")));
            };
            left = left.checked_sub(size).ok_or(Unread::TooMuch)?;
            let mut bytes = git.bytes(size + 1).map_err(Unread::Failed)?;
            match bytes.pop() {
                Some(b'\n') => Ok(Object { oid, kind, bytes }),
                _ => Err(Unread::Failed(git.strange("an object of another size"))),
            }
        });
        match read {
            Ok((objects, _)) => Ok(Bounded::Whole(objects)),
            Err(Unread::TooMuch) => Ok(Bounded::TooMuch),
            Err(Unread::Failed(error)) => Err(error),
        }
    }

    /// Asks about names in turn, and for what is complained about.
    fn ask<T, E: From<GitError>>(
        &self,
        what: &str,
        names: &[String],
        mut answer: impl FnMut(&mut Process, Option<About>) -> Result<T, E>,
    ) -> Result<(Vec<T>, String), E> {
        if names.is_empty() {
            return Ok((Vec::new(), String::new()));
        }
        self.git.ask(|git| {
            let mut answers = Vec::with_capacity(names.len());
            let mut left = names;
            while !left.is_empty() {
                let mut asked = String::new();
                let mut count = 0;
                for name in left {
                    if count > 0 && asked.len() + name.len() > MOST_ASKED {
                        break;
                    }
                    if name.contains('\n') {
                        return Err(strange(&format!("no name: `{name}`")).into());
                    }
                    asked.extend([what, " ", name, "\n"]);
                    count += 1;
                }
                git.tell(asked.as_bytes())?;
                for name in &left[..count] {
                    let line = git.line()?;
                    let about = if line.strip_suffix(" missing") == Some(name) {
                        None
                    } else {
                        Some(about(&line).ok_or_else(|| git.strange(&line))?)
                    };
                    answers.push(answer(git, about)?);
                }
                left = &left[count..];
            }
            Ok((answers, git.complaints()?))
        })
    }
}

const COMMAND: [&str; 2] = ["cat-file", "--batch-command"];

/// Why objects could not be read.
enum Unread {
    TooMuch,
    Failed(GitError),
}

impl From<GitError> for Unread {
    fn from(error: GitError) -> Unread {
        Unread::Failed(error)
    }
}

pub(super) fn strange(answer: &str) -> GitError {
    GitError::Strange { command: COMMAND.join(" "), answer: answer.to_owned() }
}

/// Reads `<oid> <kind> <size>`.
fn about(line: &str) -> Option<About> {
    let [oid, kind, size] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some(About { oid: Oid::new(oid).ok()?, kind: kind.to_owned(), size: size.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use blueflame_testkit::TestEnv;

    use super::*;

    #[test]
    fn what_is_there_is_told_from_what_is_not_also_after_it_has_changed() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let objects = Objects::of(&repository.path().join(".git"));
        let main = ["refs/heads/main".to_owned(), "refs/heads/none".to_owned()];
        for text in ["one\n", "two\n"] {
            repository.write("file", text);
            let commit = repository.commit(text).trim().to_owned();
            let [Some(found), None] = &objects.about(&main).unwrap()[..] else { panic!("{text}") };
            assert_eq!((found.oid.as_str(), found.kind.as_str()), (commit.as_str(), "commit"));
            let blob = objects.read(&[format!("{commit}:file")], 100).unwrap();
            let Bounded::Whole(blob) = blob else { panic!("{text}") };
            assert_eq!(
                (blob[0].kind.as_str(), blob[0].bytes.as_slice()),
                ("blob", text.as_bytes())
            );
            // The next one is made by git alone: what is packed is seen as well.
            repository.git(["repack", "-adq"]);
            repository.git(["pack-refs", "--all"]);
        }
    }

    #[test]
    fn the_tree_of_a_commit_is_asked_for_once_and_of_what_is_none_each_time() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("file", "x");
        let commit = Oid::new(repository.commit("start").trim()).unwrap();
        let git_dir = repository.path().join(".git");
        let objects = Objects::of(&git_dir);
        let none = Oid::new("1".repeat(40)).unwrap();
        assert!(objects.trees_of([&commit, &none]).is_err());
        let tree = Oid::new(repository.git(["rev-parse", "HEAD^{tree}"]).trim()).unwrap();
        assert_eq!(objects.trees_of([&commit, &commit]).unwrap(), [tree.clone(), tree.clone()]);
        // Nobody is left to ask.
        std::fs::rename(&git_dir, env.path("gone")).unwrap();
        assert_eq!(objects.clone().tree_of(&commit).unwrap(), tree);
        assert!(objects.tree_of(&none).is_err());
    }

    #[test]
    fn more_than_was_asked_for_is_not_read_and_the_next_one_is_answered() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("file", "1234567890");
        repository.commit("start");
        let objects = Objects::of(&repository.path().join(".git"));
        let name = ["HEAD:file".to_owned()];
        assert_eq!(objects.read(&name, 9).unwrap(), Bounded::TooMuch);
        assert!(matches!(objects.read(&name, 10).unwrap(), Bounded::Whole(_)));
        assert!(objects.read(&["HEAD:none".to_owned()], 10).is_err());
        assert!(objects.about(&["HEAD\nHEAD".to_owned()]).is_err(), "two names in one");
        let many = vec!["HEAD:file".to_owned(); 2_000];
        let Bounded::Whole(all) = objects.read(&many, 1 << 20).unwrap() else { panic!() };
        assert!(all.len() == 2_000 && all.iter().all(|it| it.bytes == b"1234567890"));
    }

    #[test]
    fn a_reference_that_cannot_be_read_is_an_error_and_not_missing() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("file", "x");
        repository.commit("start");
        std::fs::write(repository.path().join(".git/refs/heads/broken"), "nonsense").unwrap();
        let objects = Objects::of(&repository.path().join(".git"));
        let name = ["refs/heads/broken^{commit}".to_owned()];
        let error = objects.about(&name).unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
        assert!(objects.about(&["HEAD".to_owned()]).unwrap()[0].is_some());
    }

    #[test]
    fn a_repository_that_is_not_there_is_an_error_with_what_git_says() {
        let directory = tempfile::tempdir().unwrap();
        let objects = Objects::of(directory.path());
        let error = objects.about(&["HEAD".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("not a git repository"), "{error}");
    }
}
