//! The `git` program, asked from one place.
//!
//! Every call has a fixed locale, no standard input, takes no optional locks
//! and ignores the variables by which a surrounding git would redirect it. An
//! answer is a typed value or a typed error, never a string to be searched.

mod call;
mod ended;
mod object_format;
mod resident;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use blueflame_core::ids::Oid;

pub use call::{Answer, Call};
pub use object_format::ObjectFormat;

pub mod commit_object;
pub mod isolated;
pub mod objects;
pub mod own_refs;
pub mod plumbing;
pub mod refs;
pub mod tree_object;
pub mod trees;
pub mod worktrees;

use crate::search_path;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed, or not in PATH")]
    NotInstalled,
    #[error("`git {command}` could not be started in `{dir}`: {source}", dir = dir.display())]
    NotStarted { command: String, dir: PathBuf, source: io::Error },
    #[error("`{dir}` is not a git repository", dir = dir.display())]
    NotARepository { dir: PathBuf },
    #[error("`git {command}` failed with {status}: {message}")]
    Failed { command: String, status: String, message: String },
    #[error("cannot keep what git prints: {0}")]
    Memory(io::Error),
    #[error("`git {command}` took longer than {seconds} s and was ended")]
    TooSlow { command: String, seconds: u64 },
    #[error("`git {command}` answered what we do not understand: `{answer}`")]
    Strange { command: String, answer: String },
}

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// The root of the work tree.
    pub work_tree: PathBuf,
    /// The directory that all work trees of the repository share.
    pub common: PathBuf,
}

/// git, run in one directory.
#[derive(Clone, Debug)]
pub struct Git {
    dir: PathBuf,
}

/// Variables that would make git look at another repository.
const REDIRECTS: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

impl Git {
    pub fn in_dir(dir: impl Into<PathBuf>) -> Self {
        Git { dir: dir.into() }
    }

    /// What git says about its version. It is asked outside of any repository.
    pub fn version() -> Result<String, GitError> {
        let git = Git::in_dir("/");
        Ok(git.answer(&["version"])?.trim().to_owned())
    }

    /// The root of the work tree that the directory belongs to.
    pub fn top_level(&self) -> Result<PathBuf, GitError> {
        self.path(&["rev-parse", "--show-toplevel"])
    }

    /// The root of the work tree that the directory belongs to, and the directory that
    /// all work trees of the repository share.
    pub fn roots(&self) -> Result<Roots, GitError> {
        let words = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"];
        let answer = self.bytes(&words)?;
        let lines: Vec<&[u8]> = answer.split(|byte| *byte == b'\n').collect();
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        match lines[..] {
            [work_tree, common, b""] => {
                Ok(Roots { work_tree: path(work_tree), common: path(common) })
            }
            // One of them has a line break in its name.
            _ => Ok(Roots { work_tree: self.top_level()?, common: self.common_dir()? }),
        }
    }

    /// The directory that all work trees of the repository share.
    pub fn common_dir(&self) -> Result<PathBuf, GitError> {
        self.path(&["rev-parse", "--path-format=absolute", "--git-common-dir"])
    }

    /// The directory of the work tree's own state; that of the repository itself for
    /// the main one.
    pub fn git_dir(&self) -> Result<PathBuf, GitError> {
        self.path(&["rev-parse", "--path-format=absolute", "--git-dir"])
    }

    /// The commit that a local branch points at; `None` if there is no such branch.
    pub fn branch(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let commit = format!("refs/heads/{name}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let Some(answer) = self.run(&words)?.if_any()? else { return Ok(None) };
        let said = String::from_utf8_lossy(&answer);
        match Oid::new(said.trim()) {
            Ok(commit) => Ok(Some(commit)),
            Err(_) => Err(GitError::Strange {
                command: "rev-parse".to_owned(),
                answer: said.trim().to_owned(),
            }),
        }
    }

    /// The names of all local branches, most recently used first.
    pub fn branches(&self) -> Result<Vec<String>, GitError> {
        let answer = self.answer(&[
            "for-each-ref",
            "--sort=-committerdate",
            "--format=%(refname:lstrip=2)",
            "refs/heads",
        ])?;
        Ok(answer.lines().map(str::to_owned).collect())
    }

    /// The branch that is checked out; `None` if none is.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        let name = self.run(&["symbolic-ref", "--quiet", "--short", "HEAD"])?.if_any()?;
        let name = name.map(|name| String::from_utf8_lossy(&name).trim().to_owned());
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// Whether there is a commit to start from.
    pub fn has_commit(&self) -> Result<bool, GitError> {
        let output = self.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        Ok(output.if_any()?.is_some())
    }

    /// Whether the repository has no work tree at all.
    pub fn is_bare(&self) -> Result<bool, GitError> {
        Ok(self.answer(&["rev-parse", "--is-bare-repository"])?.trim() == "true")
    }

    /// The files that git keeps, from the root of the work tree. Names that are
    /// no text are left out.
    pub fn tracked_files(&self) -> Result<Vec<String>, GitError> {
        let answer = self.bytes(&["ls-files", "-z", "--full-name"])?;
        let names = answer.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| std::str::from_utf8(name).ok().map(str::to_owned)).collect())
    }

    /// Whether git keeps a file, or anything in a directory.
    pub fn is_tracked(&self, path: &str) -> Result<bool, GitError> {
        Ok(!self.bytes(&["ls-files", "-z", "--", path])?.is_empty())
    }

    /// Whether git would ignore a path.
    pub fn is_ignored(&self, path: &str) -> Result<bool, GitError> {
        Ok(self.run(&["check-ignore", "--quiet", "--", path])?.status.success())
    }

    /// An answer that is one path, which need not be text.
    fn path(&self, arguments: &[&str]) -> Result<PathBuf, GitError> {
        let mut answer = self.bytes(arguments)?;
        if answer.last() == Some(&b'\n') {
            answer.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(answer)))
    }

    fn answer(&self, arguments: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.bytes(arguments)?).into_owned())
    }

    fn bytes(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        self.run(arguments)?.success()
    }

    fn run(&self, arguments: &[&str]) -> Result<Answer, GitError> {
        Call::in_dir(&self.dir).words(arguments).run()
    }
}

/// The git program with its usual surroundings.
pub(crate) fn command(dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    prepared(Command::new(program()), dir, arguments)
}

/// Where git is. It is looked up once: otherwise every call would try to run it in
/// each directory of `PATH` in turn.
fn program() -> &'static OsStr {
    static PROGRAM: OnceLock<OsString> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let found = env::var_os("PATH").and_then(|path| search_path::find("git", &path));
        // One that depends on where we are is left to each call.
        found.filter(|path| path.is_absolute()).map_or_else(|| "git".into(), PathBuf::into)
    })
}

/// The same, by our own program, which goes into a workspace first.
fn command_within(
    blueflame: &Path,
    workspace: &Path,
    dir: &Path,
    arguments: &[impl AsRef<OsStr>],
) -> Command {
    let mut command = Command::new(blueflame);
    command.arg("__within").arg(workspace).arg(program());
    prepared(command, dir, arguments)
}

fn prepared(mut command: Command, dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    command
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0");
    for name in REDIRECTS {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_told_from_a_plain_directory() {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::in_dir(dir.path());
        assert!(matches!(git.top_level(), Err(GitError::NotARepository { .. })));
        assert!(git.run(&["init", "-q", "-b", "trunk"]).unwrap().status.success());
        let below = dir.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let top = Git::in_dir(&below).top_level().unwrap();
        assert_eq!(top.canonicalize().unwrap(), dir.path().canonicalize().unwrap());
        // A branch without a commit does not exist yet.
        assert_eq!(git.branch("trunk").unwrap(), None);
        let commit = [
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ];
        assert!(git.run(&commit).unwrap().status.success());
        let head = git.answer(&["rev-parse", "HEAD"]).unwrap();
        assert_eq!(git.branch("trunk").unwrap().unwrap().as_str(), head.trim());
        assert_eq!(git.branch("main").unwrap(), None);
        assert_eq!(git.branches().unwrap(), ["trunk"]);
    }

    #[test]
    fn both_roots_are_found_at_once_whatever_their_names() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["plain", "with a\nline break", "ends with one\n"] {
            let root = dir.path().canonicalize().unwrap().join(name);
            std::fs::create_dir_all(root.join("below")).unwrap();
            let git = Git::in_dir(&root);
            assert!(git.run(&["init", "-q"]).unwrap().status.success());
            let roots = Git::in_dir(root.join("below")).roots().unwrap();
            assert_eq!(roots, Roots { common: root.join(".git"), work_tree: root });
        }
        let nowhere = Git::in_dir(dir.path()).roots();
        assert!(matches!(nowhere, Err(GitError::NotARepository { .. })), "{nowhere:?}");
    }

    #[test]
    fn a_directory_that_is_not_there_is_not_a_missing_git() {
        let gone = Git::in_dir("/nonexistent/dir");
        assert!(matches!(gone.top_level(), Err(GitError::NotStarted { .. })));
    }
}
