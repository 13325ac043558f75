//! What a landed commit says about itself.
//!
//! The subject is the worker's if it made one commit that fits the format, and
//! else follows from the task. The trailers are ours alone: nothing a worker
//! wrote gets near them.

use std::fmt::Write as _;

use blueflame_core::ids::{AgentId, ChangesetId, SessionId, TaskId};
use regex::Regex;

use super::Merger;
use crate::narrate::plain;

pub const SESSION: &str = "Blueflame-Session";
pub const TASK: &str = "Blueflame-Task";
pub const CHANGESET: &str = "Blueflame-Changeset";
pub const REVERTS: &str = "Blueflame-Reverts";
const AGENT: &str = "Blueflame-Agent";
const COST: &str = "Blueflame-Cost";
const VALIDATION: &str = "Blueflame-Validation";

/// Longer subjects are cut.
const LONGEST_SUBJECT: usize = 100;

/// What a change can be called, and first what it is taken for.
const KINDS: [&str; 11] =
    ["feat", "fix", "docs", "style", "refactor", "perf", "test", "build", "ci", "chore", "revert"];

/// What subjects have to look like.
#[derive(Clone, Debug, Default)]
pub struct MessageStyle {
    pub pattern: Option<Regex>,
}

/// What is known of one task when its commit is made.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub task: &'a TaskId,
    pub title: &'a str,
    pub agent: Option<&'a AgentId>,
    pub cost: &'a str,
    pub validation: &'a str,
    /// The first lines of the worker's own commits, oldest first.
    pub subjects: &'a [String],
}

impl MessageStyle {
    /// The message for the one commit of a task.
    pub fn message(&self, about: &About<'_>, session: &SessionId, of: &ChangesetId) -> String {
        let own = self.own(about);
        let (subject, body) = match about.subjects {
            [only] if self.fits(only) => (line(only), None),
            [only] => (line(&own), Some(format!("- {}\n", line(only)))),
            many => (line(&own), list(many)),
        };
        let mut message = format!("{subject}\n\n");
        if let Some(body) = body {
            message += &body;
            message.push('\n');
        }
        message + &trailers(std::slice::from_ref(about), session, of)
    }

    /// The message for one commit that holds a whole resolved changeset.
    pub fn resolved(&self, abouts: &[About<'_>], session: &SessionId, of: &ChangesetId) -> String {
        let subject = match abouts {
            [only] => self.own(only),
            [first, ..] => format!("{} (and others)", self.own(first)),
            [] => format!("chore: {of}"),
        };
        let mut message = format!("{}\n\n", line(&subject));
        message += "Its tasks conflicted with what had landed, or with each other; a merger\n";
        message += "brought them together:\n\n";
        for about in abouts {
            let _ = writeln!(message, "- {}: {}", about.task, line(about.title));
        }
        message.push('\n');
        message + &trailers(abouts, session, of)
    }

    /// A subject for a task: what kind of change it is says the worker, as far as
    /// the format allows.
    fn own(&self, about: &About<'_>) -> String {
        let subject = |kind: &str| format!("{kind}({}): {}", about.task, about.title);
        let named = about.subjects.iter().find_map(|it| kind_of(it)).map(subject);
        named.filter(|it| self.is_allowed(it)).unwrap_or_else(|| subject(KINDS[0]))
    }

    fn fits(&self, subject: &str) -> bool {
        let short = subject.chars().count() <= LONGEST_SUBJECT && !subject.trim().is_empty();
        short && self.is_allowed(subject)
    }

    fn is_allowed(&self, subject: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(subject))
    }
}

/// The message for the commit that takes a changeset back.
pub fn revert(undone: &str, session: &SessionId, as_changeset: &ChangesetId) -> String {
    format!(
        "revert: {undone}\n\nTakes back what `{undone}` had landed.\n\n\
         {SESSION}: {session}\n{CHANGESET}: {as_changeset}\n{REVERTS}: {undone}\n"
    )
}

/// The message for the commit that joins landed work and a base that moved.
pub fn joint(branch: &str, session: &SessionId) -> String {
    format!("merge: `{}` with what landed in {session}\n\n{SESSION}: {session}\n", line(branch))
}

fn trailers(abouts: &[About<'_>], session: &SessionId, of: &ChangesetId) -> String {
    let mut text = format!("{SESSION}: {session}\n");
    for about in abouts {
        let _ = writeln!(text, "{TASK}: {}", about.task);
    }
    let _ = writeln!(text, "{CHANGESET}: {of}");
    for about in abouts {
        if let Some(agent) = about.agent {
            let _ = writeln!(text, "{AGENT}: {agent}");
        }
        for (key, value) in [(COST, about.cost), (VALIDATION, about.validation)] {
            if !value.trim().is_empty() {
                let _ = writeln!(text, "{key}: {}", line(value));
            }
        }
    }
    text
}

/// The trailers for whoever brought a changeset together, after those of its tasks.
pub fn merger(merger: &Merger) -> String {
    format!("{AGENT}: {}\n{COST}: {}\n", merger.agent, line(&merger.cost))
}

/// `fix` of `fix(parser)!: a crash`, if it is a kind that there is.
fn kind_of(subject: &str) -> Option<&'static str> {
    let name = subject.split(['(', '!', ':']).next().filter(|it| it.len() < subject.len())?;
    KINDS.into_iter().find(|kind| *kind == name)
}

fn list(subjects: &[String]) -> Option<String> {
    let mut lines = String::new();
    for subject in subjects {
        let _ = writeln!(lines, "- {}", line(subject));
    }
    (!lines.is_empty()).then_some(lines)
}

/// Text of others as one line of a bearable length.
fn line(text: &str) -> String {
    let text = plain(text.trim());
    if text.chars().count() <= LONGEST_SUBJECT {
        return text.into_owned();
    }
    let mut cut: String = text.chars().take(LONGEST_SUBJECT - 1).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}
