//! The inspection of finished work: tier 1 of the validation.
//!
//! [`inspect`] judges what an agent hands over, by the same rules as the tool
//! calls that made it and by those that only the whole can break. It knows
//! [`Work`] as facts from git, never a file or a repository. What must not
//! stand is a violation; what a validator and the person should look at is a
//! remark.

mod assets;
mod encoded;
mod hiding;
mod history;
mod key_shapes;
mod key_values;
mod lines;
mod literals;
mod names;
mod readings;
mod test_strength;
mod windows;
mod wording;
mod work;

use std::collections::BTreeSet;
use std::fmt;

pub use hiding::without_keys;
pub use work::{Commit, FileChange, FileKind, Line, Lines, Side, Time, TooMuch, Work};

use crate::ids::Oid;
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

impl Finding {
    /// Paths may hold anything; a finding stays on its line.
    fn new(rule: &str, details: &str) -> Self {
        let mut shown = String::with_capacity(details.len());
        for c in details.chars() {
            if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
        }
        Finding { rule: rule.to_owned(), details: shown }
    }
}

impl Inspection {
    /// The violations as the journal holds them.
    pub fn violations(&self) -> Vec<String> {
        told(&self.violations)
    }

    /// The remarks as validators and people are told them.
    pub fn remarks(&self) -> Vec<String> {
        told(&self.remarks)
    }

    fn violation(&mut self, rule: Rule, details: impl AsRef<str>) {
        let finding = Finding::new(rule.name(), details.as_ref());
        // What lies in two pieces of a line is found in both.
        if self.violations.last() != Some(&finding) {
            self.violations.push(finding);
        }
    }

    fn remark(&mut self, rule: &str, details: impl AsRef<str>) {
        self.remarks.push(Finding::new(rule, details.as_ref()));
    }

    /// A file that the policy does not accept, `place` being where.
    fn denied(&mut self, verdict: &Verdict, place: &str) {
        let (target, details) = (&verdict.target, &verdict.details);
        let named = details.contains(target.as_str());
        let whose = if named { String::new() } else { format!("{target}: ") };
        self.violations.push(Finding::new(&verdict.rule, &format!("{whose}{details}{place}")));
    }
}

/// Findings as texts, and how many more there are.
fn told(findings: &[Finding]) -> Vec<String> {
    let mut texts: Vec<String> = findings.iter().take(MOST_TOLD).map(ToString::to_string).collect();
    if let more @ 1.. = findings.len().saturating_sub(MOST_TOLD) {
        texts.push(format!("and {more} more"));
    }
    texts
}

/// What does not fit into this is only counted.
const MOST_TOLD: usize = 50;

/// A file that is larger is not taken at all.
const MOST_BYTES: u64 = 5 << 20;
/// A file that is larger is worth a look.
const MANY_BYTES: u64 = 512 << 10;

/// Everything there is to say about finished work.
pub fn inspect(policy: &Policy, work: &Work) -> Inspection {
    let mut found = Inspection::default();
    let denied = policy.judge_changes(&as_changes(&work.changes));
    for verdict in &denied {
        found.denied(verdict, "");
    }
    for change in &work.changes {
        modes(&mut found, change);
        executable(&mut found, change, "");
    }
    for change in fresh(&work.changes) {
        sizes(&mut found, change);
        binary(&mut found, change, "");
        lines::inspect(&mut found, change, None);
    }
    names::inspect(&mut found, work);
    test_strength::inspect(&mut found, policy, &work.changes);
    history::inspect(&mut found, policy, work, &denied);
    found
}

/// What there is to say about the files at the end, however they came about. For
/// work whose paths and history others vouch for.
pub fn inspect_files(policy: &Policy, work: &Work) -> Inspection {
    const ABOUT_FILES: [Rule; 6] = [
        Rule::PathBlocked,
        Rule::PathProtected,
        Rule::ChangeKind,
        Rule::ChangeBinary,
        Rule::ChangeSize,
        Rule::ChangeSecret,
    ];
    let mut found = inspect(policy, &Work { commits: Vec::new(), ..work.clone() });
    found.violations.retain(|it| ABOUT_FILES.iter().any(|rule| rule.name() == it.rule));
    found
}

fn as_changes<'c>(changes: impl IntoIterator<Item = &'c FileChange>) -> Vec<Change> {
    let kind = |change: &FileChange| match (&change.before, &change.after) {
        (_, None) => ChangeKind::Deleted,
        (_, Some(Side { kind: FileKind::Link, .. })) => ChangeKind::Link,
        (_, Some(Side { kind: FileKind::Submodule, .. })) => ChangeKind::Submodule,
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    changes
        .into_iter()
        .map(|change| Change { path: change.path.clone(), kind: kind(change) })
        .collect()
}

/// The files with new content: not those that only moved.
fn fresh(changes: &[FileChange]) -> impl Iterator<Item = &FileChange> {
    let object = |side: &Option<Side>| side.as_ref().map(|side| side.object.clone());
    let old: BTreeSet<Oid> = changes.iter().filter_map(|change| object(&change.before)).collect();
    changes
        .iter()
        .filter(move |change| object(&change.after).is_none_or(|object| !old.contains(&object)))
}

/// What kinds of files they are.
fn modes(found: &mut Inspection, change: &FileChange) {
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
    match (&change.before, after.kind) {
        (_, FileKind::Executable) if !was_executable => {
            found.remark("changes.mode", format!("`{path}` was made executable."));
        }
        (Some(before), FileKind::Plain) if before.kind != FileKind::Plain => {
            let was = before.kind;
            found.remark("changes.mode", format!("`{path}` was a {was} and is a plain file now."));
        }
        _ => {}
    }
}

/// How much content there is, and of what sort.
fn sizes(found: &mut Inspection, change: &FileChange) {
    let path = &change.path;
    let Some(after) = &change.after else { return };
    too_large(found, path, after.size, "");
    if after.size > MANY_BYTES && after.size <= MOST_BYTES {
        let size = after.size >> 10;
        found.remark("changes.size", format!("`{path}` is large: {size} KiB."));
    }
    if change.lines.binary && assets::is_asset(path) {
        found.remark("changes.binary", format!("`{path}` is a binary file."));
    }
}

/// What looks like a picture, and is to be run.
fn executable(found: &mut Inspection, change: &FileChange, place: &str) {
    if assets::made_executable(change) {
        found.violation(
            Rule::ChangeBinary,
            format!(
                "`{}` is executable, and such files never are. Take the mode back.{place}",
                change.path
            ),
        );
    }
}

/// What was compiled, packed or encrypted, and nobody can look over.
fn binary(found: &mut Inspection, change: &FileChange, place: &str) {
    if let Some(why) = assets::objection(change) {
        found.violation(Rule::ChangeBinary, format!("`{}` {why}.{place}", change.path));
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
