//! Finished work as facts.

use std::fmt;

use crate::ids::Oid;

/// Everything between the commit a task started from and the one it ended with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Whether the end was built on the start.
    pub descends: bool,
    /// `Name <address>`, as the agent's commits should be signed.
    pub author: String,
    pub time: Time,
    /// From the start to the end, as one.
    pub changes: Vec<FileChange>,
    /// Oldest first.
    pub commits: Vec<Commit>,
    /// All paths at the end, if anything was changed.
    pub paths: Vec<String>,
    /// What there was too much of to be looked at.
    pub too_much: Vec<TooMuch>,
}

/// Between which times the commits were made, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    pub began: Option<i64>,
    pub ended: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub name: Oid,
    pub parents: Vec<Oid>,
    /// `Name <address>`.
    pub author: String,
    /// `Name <address>`.
    pub committer: String,
    /// As its author and its committer say; `None` for what is no time.
    pub dates: Vec<Option<i64>>,
    /// Names of headers that ordinary commits do not have.
    pub unusual: Vec<String>,
    pub message: String,
    /// Against its first parent, or nothing.
    pub changes: Vec<FileChange>,
}

impl Commit {
    /// Its name as people write it.
    pub fn short(&self) -> &str {
        &self.name.as_str()[..12]
    }
}

/// Work without end; it is not taken unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TooMuch {
    Commits {
        most: usize,
    },
    /// The names of all files together.
    Paths {
        most_bytes: usize,
    },
    /// A change, as one or in this commit.
    Lines {
        commit: Option<Oid>,
        most_bytes: usize,
    },
}

/// What happened to one path. A renamed file is one that was deleted and one
/// that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the repository. Bytes that are no text are replaced, which
    /// makes the path a strange one.
    pub path: String,
    pub before: Option<Side>,
    pub after: Option<Side>,
    pub lines: Lines,
}

/// A file on one side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub kind: FileKind,
    /// The object with its content.
    pub object: Oid,
    pub size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Plain,
    Executable,
    Link,
    Submodule,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Plain => "file",
            FileKind::Executable => "executable file",
            FileKind::Link => "symbolic link",
            FileKind::Submodule => "submodule",
        })
    }
}

/// The lines that changed, read as text whatever they are. A file that was
/// deleted has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Whether there are bytes in them that no text has.
    pub binary: bool,
    /// The first bytes of the file, if they changed.
    pub head: Vec<u8>,
    pub added: Vec<Line>,
    pub removed: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its place in the file, from 1.
    pub number: u32,
    pub text: String,
}
