//! The files and directories a task has to itself.
//!
//! A lock names a path inside the repository. A directory covers everything
//! below it, whether or not it was written with a slash at the end, so two
//! locks overlap when one lies at or below the other.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path inside the repository in its one normal form: relative, `/` between
/// the parts, no `.` or `..`, nothing empty.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct LockPath(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLockPath {
    #[error("it is empty")]
    Empty,
    #[error("it is absolute; locks are relative to the repository")]
    Absolute,
    #[error("it climbs out with `..`")]
    Climbs,
    #[error("it contains `*`, `?` or `[`; a lock is a file or directory, not a pattern")]
    Pattern,
    #[error("it contains a backslash or control character")]
    Strange,
    #[error("it names git's own directory")]
    Git,
}

impl LockPath {
    pub fn new(text: &str) -> Result<Self, BadLockPath> {
        if text.starts_with('/') || text.starts_with('~') {
            return Err(BadLockPath::Absolute);
        }
        if text.contains(['*', '?', '[']) {
            return Err(BadLockPath::Pattern);
        }
        if text.contains('\\') || text.chars().any(char::is_control) {
            return Err(BadLockPath::Strange);
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(BadLockPath::Climbs),
                part if part.eq_ignore_ascii_case(".git") => return Err(BadLockPath::Git),
                part => parts.push(part),
            }
        }
        // `.` and `./` would lock the whole repository by what looks like an
        // oversight, so they count as empty.
        if parts.is_empty() { Err(BadLockPath::Empty) } else { Ok(Self(parts.join("/"))) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `path` is this path or lies below it.
    pub fn covers(&self, path: &LockPath) -> bool {
        path.0.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether two tasks holding these locks could touch the same file.
    pub fn overlaps(&self, other: &LockPath) -> bool {
        self.covers(other) || other.covers(self)
    }
}

impl fmt::Display for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for LockPath {
    type Error = BadLockPath;
    fn try_from(text: String) -> Result<Self, BadLockPath> {
        Self::new(&text)
    }
}

impl From<LockPath> for String {
    fn from(path: LockPath) -> String {
        path.0
    }
}

/// Whether any lock of one set overlaps any lock of the other.
pub fn any_overlap(ours: &[LockPath], theirs: &[LockPath]) -> bool {
    ours.iter().any(|our| theirs.iter().any(|their| our.overlaps(their)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> LockPath {
        LockPath::new(text).unwrap()
    }

    #[test]
    fn a_directory_covers_everything_below_it() {
        for (one, other, overlap) in [
            ("src/", "src/auth/jwt.rs", true),
            ("src", "src/auth", true),
            ("src/auth", "src", true),
            ("src/auth", "src/auth", true),
            ("src/auth", "src/authors", false),
            ("src/auth", "src/api", false),
            ("docs", "src/docs", false),
        ] {
            assert_eq!(path(one).overlaps(&path(other)), overlap, "{one} and {other}");
        }
    }

    #[test]
    fn one_path_has_one_form() {
        assert_eq!(path("./src//auth/"), path("src/auth"));
    }

    #[test]
    fn paths_that_are_no_lock_are_refused() {
        for (text, why) in [
            ("", BadLockPath::Empty),
            ("./", BadLockPath::Empty),
            ("/etc", BadLockPath::Absolute),
            ("~/x", BadLockPath::Absolute),
            ("src/../..", BadLockPath::Climbs),
            ("src/*.rs", BadLockPath::Pattern),
            ("src\\x", BadLockPath::Strange),
            ("src/a\n", BadLockPath::Strange),
            (".git/hooks", BadLockPath::Git),
            ("sub/.GIT", BadLockPath::Git),
        ] {
            assert_eq!(LockPath::new(text), Err(why), "{text:?}");
        }
    }
}
