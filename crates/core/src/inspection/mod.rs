//! The inspection of finished work: tier 1 of the validation.
//!
//! [`inspect`] judges what an agent hands over, by the same rules as the tool
//! calls that made it and by those that only the whole can break. It knows
//! [`Work`] as facts from git, never a file or a repository. What must not
//! stand is a violation; what a validator and the person should look at is a
//! remark.

mod history;
mod key_shapes;
mod lines;
mod test_strength;
mod work;

use std::fmt;

pub use work::{Commit, FileChange, FileKind, Line, Lines, Side, TooMuch, Work};

use crate::policy::{Change, ChangeKind, Policy, Rule, Verdict};

/// What an inspection found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Why the work may not stand.
    pub violations: Vec<Finding>,
    /// What is worth a look, and may be right.
    pub remarks: Vec<Finding>,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The name of the rule.
    pub rule: String,
    /// What is wrong, where, and what to do about it.
    pub details: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.details)
    }
}

impl Inspection {
    /// The violations as the journal holds them.
    pub fn violations(&self) -> Vec<String> {
        self.violations.iter().map(ToString::to_string).collect()
    }

    fn violation(&mut self, rule: Rule, details: impl Into<String>) {
        self.violations.push(Finding { rule: rule.name().to_owned(), details: details.into() });
    }

    fn remark(&mut self, rule: &str, details: impl Into<String>) {
        self.remarks.push(Finding { rule: rule.to_owned(), details: details.into() });
    }

    fn denied(&mut self, verdict: &Verdict, place: &str) {
        let details = format!("{}{place}", verdict.details);
        self.violations.push(Finding { rule: verdict.rule.clone(), details });
    }
}

/// A file that is larger is not taken at all.
const MOST_BYTES: u64 = 5 << 20;
/// A file that is larger is worth a look.
const MANY_BYTES: u64 = 512 << 10;

/// Endings of binary files that projects hold on purpose: they are shown to the
/// person; any other binary file is a violation.
const ASSETS: &[&str] = &[
    "avif", "bmp", "eot", "flac", "gif", "icns", "ico", "jpeg", "jpg", "mp3", "mp4", "ogg", "otf",
    "pdf", "png", "ttf", "wav", "webm", "webp", "woff", "woff2",
];

/// Everything there is to say about finished work.
pub fn inspect(policy: &Policy, work: &Work) -> Inspection {
    let mut found = Inspection::default();
    let denied = policy.judge_changes(&as_changes(&work.changes));
    for verdict in &denied {
        found.denied(verdict, "");
    }
    for change in &work.changes {
        files(&mut found, change);
        lines::inspect(&mut found, change, None);
    }
    test_strength::inspect(&mut found, policy, &work.changes);
    history::inspect(&mut found, policy, work, &denied);
    found
}

fn as_changes(changes: &[FileChange]) -> Vec<Change> {
    let kind = |change: &FileChange| match (&change.before, &change.after) {
        (_, None) => ChangeKind::Deleted,
        (_, Some(Side { kind: FileKind::Link, .. })) => ChangeKind::Link,
        (_, Some(Side { kind: FileKind::Submodule, .. })) => ChangeKind::Submodule,
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    changes.iter().map(|change| Change { path: change.path.clone(), kind: kind(change) }).collect()
}

/// What the files are, apart from their paths and their lines.
fn files(found: &mut Inspection, change: &FileChange) {
    let path = &change.path;
    let Some(after) = &change.after else {
        if let Some(Side { kind: kind @ (FileKind::Link | FileKind::Submodule), .. }) =
            change.before
        {
            found.remark("changes.kind", format!("`{path}`, a {kind}, was deleted."));
        }
        return;
    };
    let was_executable =
        change.before.as_ref().is_some_and(|before| before.kind == FileKind::Executable);
    if after.kind == FileKind::Executable && !was_executable {
        found.remark("changes.mode", format!("`{path}` was made executable."));
    }
    too_large(found, path, after.size, "");
    if after.size > MANY_BYTES && after.size <= MOST_BYTES {
        let size = after.size >> 10;
        found.remark("changes.size", format!("`{path}` is large: {size} KiB."));
    }
    if change.lines.binary {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
        if ASSETS.contains(&ending.as_str()) {
            found.remark("changes.binary", format!("`{path}` is a binary file."));
        } else {
            found.violation(
                Rule::ChangeBinary,
                format!("`{path}` is a binary file. Commit sources, not what is made from them."),
            );
        }
    }
}

fn too_large(found: &mut Inspection, path: &str, size: u64, place: &str) {
    if size > MOST_BYTES {
        let (size, most) = (size >> 20, MOST_BYTES >> 20);
        found.violation(
            Rule::ChangeSize,
            format!("`{path}` is too large: {size} MiB of at most {most}{place}."),
        );
    }
}

#[cfg(test)]
mod tests;
