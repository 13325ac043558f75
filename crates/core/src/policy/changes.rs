//! A finished change, judged as a whole: by the same rules as the calls that
//! made it, and by those that only the whole can break.

use super::Policy;
use super::paths::some_of;
use super::verdict::{Judged, Rule, Verdict, deny};

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the repository, as git names it.
    pub path: String,
    pub kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    /// A symbolic link was added or changed.
    Link,
    /// A submodule was added or changed.
    Submodule,
}

impl Policy {
    /// Everything that is wrong with a change; nothing if it may stand.
    pub fn judge_changes(&self, changes: &[Change]) -> Vec<Verdict> {
        let mut found: Vec<Verdict> = changes
            .iter()
            .map(|change| Verdict::of(self.judge_one(change), &change.path))
            .filter(|verdict| !verdict.is_allowed())
            .collect();
        if let Err(denial) = self.judge_tests(changes) {
            found.push(Verdict::denied(denial.rule, "the change as a whole", denial.details));
        }
        found
    }

    /// Whether a change to the file at this path may be a part of a commit.
    pub fn may_commit(&self, path: &str) -> bool {
        let change = Change { path: path.to_owned(), kind: ChangeKind::Modified };
        self.judge_one(&change).is_ok()
    }

    /// Whether a file is a test, as far as the configuration says.
    pub(crate) fn is_test(&self, path: &str) -> bool {
        self.compiled.tests.iter().any(|pattern| pattern.matches(path))
    }

    fn judge_one(&self, change: &Change) -> Judged {
        let path = &change.path;
        let normal = !path.is_empty()
            && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
            && !path.chars().any(super::paths::is_strange);
        if !normal {
            return deny(Rule::PathStrange, "the path is not plain. Use plain names.");
        }
        if let ChangeKind::Link | ChangeKind::Submodule = change.kind {
            return deny(
                Rule::ChangeKind,
                format!("`{path}` is a symbolic link or submodule. Commit plain files."),
            );
        }
        // Scratch directories may be written, but are no part of a change.
        let scratch = &self.compiled.rules.scratch;
        if scratch.iter().any(|lock| super::paths::lies_in(path, lock.as_str())) {
            return deny(
                Rule::PathNotAllowed,
                format!("`{path}` is build output. Take it out of the commit."),
            );
        }
        self.judge_change(path)?;
        if change.kind == ChangeKind::Added {
            self.judge_name(path)?;
        }
        Ok(Rule::PathWrite)
    }

    fn judge_tests(&self, changes: &[Change]) -> Judged {
        let compiled = &self.compiled;
        let is_source = |path: &str| {
            compiled.sources.iter().any(|pattern| pattern.matches(path)) && !self.is_test(path)
        };
        let written = |change: &&Change| change.kind != ChangeKind::Deleted;
        let source = changes.iter().filter(written).find(|change| is_source(&change.path));
        let tested = changes.iter().filter(written).any(|change| self.is_test(&change.path));
        match (source, &compiled.rules.tests) {
            (Some(source), Some(rule)) if !tested => deny(
                Rule::ChangeTests,
                format!(
                    "`{}` was changed without a test. Add or change a test that matches {}.",
                    source.path,
                    some_of(&rule.tests)
                ),
            ),
            _ => Ok(Rule::PathWrite),
        }
    }
}
