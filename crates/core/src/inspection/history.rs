//! The commits of finished work. What one of them brings lands in the history,
//! even if the next one takes it away again.

use crate::policy::{Policy, Rule, Verdict};

use super::{FileChange, Finding, Inspection, TooMuch, Work, as_changes, fresh, lines, too_large};

/// Rules about what must not be anywhere in the history. The others are about
/// what stands at the end: an agent may repair its own mistakes.
const LASTING: [Rule; 4] =
    [Rule::PathBlocked, Rule::PathProtected, Rule::PathStrange, Rule::ChangeKind];

/// Adds what the commits are to be blamed for, apart from what was already
/// `denied` of the whole.
pub(super) fn inspect(found: &mut Inspection, policy: &Policy, work: &Work, denied: &[Verdict]) {
    if !work.descends {
        found.violation(
            Rule::ChangeHistory,
            "the commits are not built on the one that the task started from. Leave the history \
             as it is and add to it.",
        );
    }
    for limit in &work.too_much {
        let what = match limit {
            TooMuch::Commits { most } => format!("there are more than {most} commits"),
            TooMuch::Lines { commit: None, most_bytes } => {
                format!("the change is larger than {} MiB", most_bytes >> 20)
            }
            TooMuch::Lines { commit: Some(commit), most_bytes } => {
                format!("commit {commit} is larger than {} MiB", most_bytes >> 20)
            }
        };
        found.violation(
            Rule::ChangeSize,
            format!("{what}, too much to be looked over. Hand over less at once."),
        );
    }
    for commit in &work.commits {
        let name = commit.short();
        let place = format!(" (in commit {name})");
        let verdict = policy.judge_message(&commit.message);
        if !verdict.is_allowed() {
            let details = format!("{}{place}", verdict.details);
            found.violations.push(Finding::new(&verdict.rule, &details));
        }
        for (at, line) in commit.message.lines().enumerate() {
            let place = format!("line {} of the message", at + 1);
            lines::keys(found, line, &[], &place, Some(commit));
        }
        if commit.author != work.author {
            found.remark(
                "commit.author",
                format!("commit {name} is signed by `{}`, not by the agent.", commit.author),
            );
        }
        if commit.parents.len() > 1 {
            found.remark("commit.merge", format!("commit {name} is a merge."));
        }
        let brought = commit.changes.iter().filter(|change| change.after.is_some());
        for verdict in policy.judge_changes(&as_changes(brought)) {
            let lasting = LASTING.iter().any(|rule| rule.name() == verdict.rule);
            if lasting && !denied.contains(&verdict) {
                found.denied(&verdict, &place);
            }
        }
        let fresh = fresh(&commit.changes).filter(|change| !stands(work, change));
        for change in fresh {
            if let Some(after) = &change.after {
                too_large(found, &change.path, after.size, &place);
            }
            lines::inspect(found, change, Some(commit));
        }
    }
}

/// Whether a file stands at the end as a commit made it, so that it has been
/// looked at.
fn stands(work: &Work, change: &FileChange) -> bool {
    work.changes.iter().any(|last| last.path == change.path && last.after == change.after)
}
