//! The commits of finished work. What one of them brings lands in the history,
//! even if the next one takes it away again.

use crate::policy::{Policy, Rule, Verdict};

use super::{
    Commit, FileChange, Finding, Inspection, TooMuch, Work, as_changes, binary, executable, fresh,
    lines, too_large,
};

/// Rules about what must not be anywhere in the history. The others are about
/// what stands at the end: an agent may repair its own mistakes.
const LASTING: [Rule; 6] = [
    Rule::PathBlocked,
    Rule::PathProtected,
    Rule::PathNotAllowed,
    Rule::PathScope,
    Rule::PathStrange,
    Rule::ChangeKind,
];

/// More than anybody reads, or writes.
const LONGEST_MESSAGE: usize = 64 << 10;

/// How far clocks may be apart, in seconds.
const CLOCKS: i64 = 3600;

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
            TooMuch::Paths { most_bytes } => {
                format!("the names of all files take more than {} MiB", most_bytes >> 20)
            }
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
        let place = format!(" (in commit {})", commit.short());
        message(found, policy, commit, &place);
        makers(found, work, commit);
        if commit.parents.is_empty() {
            found.violation(
                Rule::ChangeHistory,
                format!(
                    "commit {} has no parent: it brings a history of its own. Build on the \
                     commit that the task started from.",
                    commit.short()
                ),
            );
        }
        if commit.parents.len() > 1 {
            found.remark("commit.merge", format!("commit {} is a merge.", commit.short()));
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
                binary(found, change, &place);
                executable(found, change, &place);
            }
            lines::inspect(found, change, Some(commit));
        }
    }
}

/// What a commit says about itself.
fn message(found: &mut Inspection, policy: &Policy, commit: &Commit, place: &str) {
    let verdict = policy.judge_message(&commit.message);
    if !verdict.is_allowed() {
        let details = format!("{}{place}", verdict.details);
        found.violations.push(Finding::new(&verdict.rule, &details));
    }
    if commit.message.len() > LONGEST_MESSAGE {
        let (size, most) = (commit.message.len() >> 10, LONGEST_MESSAGE >> 10);
        found.violation(
            Rule::ChangeSize,
            format!("the message is too long: {size} KiB of at most {most}.{place}"),
        );
    }
    for (at, line) in commit.message.lines().enumerate() {
        let place = format!("line {} of the message", at + 1);
        lines::keys(found, line, &[], &place, Some(commit));
    }
    if !commit.unusual.is_empty() {
        found.violation(
            Rule::CommitHeaders,
            format!(
                "the commit has more than git gives an agent's commits: `{}`. Commit with `git \
                 commit -m \"...\"`.{place}",
                commit.unusual.join("`, `")
            ),
        );
    }
}

/// Who says to have made a commit, and when.
fn makers(found: &mut Inspection, work: &Work, commit: &Commit) {
    let name = commit.short();
    for (who, person) in [("author", &commit.author), ("committer", &commit.committer)] {
        if *person != work.author {
            found.violation(
                Rule::CommitAuthor,
                format!(
                    "commit {name} names `{person}` as its {who}, not `{}`. Commit as you are \
                     configured to.",
                    work.author
                ),
            );
        }
    }
    let earliest = work.time.began.unwrap_or(i64::MIN).saturating_sub(CLOCKS);
    let latest = work.time.ended.saturating_add(CLOCKS);
    let in_time = |date: &Option<i64>| date.is_some_and(|date| (earliest..=latest).contains(&date));
    if !commit.dates.iter().all(in_time) {
        found.remark("commit.date", format!("commit {name} bears a date at which nobody worked."));
    }
}

/// Whether a file stands at the end as a commit made it, so that it has been
/// looked at.
fn stands(work: &Work, change: &FileChange) -> bool {
    work.changes.iter().any(|last| last.path == change.path && last.after == change.after)
}
