//! What a landed commit says about itself.
//!
//! The subject is the worker's if it made one commit that fits the format, and
//! else follows from the task. The trailers are ours alone: nothing a worker
//! wrote gets near them.

use std::fmt::Write as _;

use blueflame_core::ids::{AgentId, ChangesetId, SessionId, TaskId};
use regex::Regex;

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
    /// `feat`, `fix` and so on.
    pub kind: &'a str,
    pub agent: Option<&'a AgentId>,
    pub cost: &'a str,
    pub validation: &'a str,
    /// The first lines of the worker's own commits, oldest first.
    pub subjects: &'a [String],
}

impl MessageStyle {
    /// The message for the one commit of a task.
    pub fn message(&self, about: &About<'_>, session: &SessionId, of: &ChangesetId) -> String {
        let own = format!("{}({}): {}", about.kind, about.task, about.title);
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
            [only] => format!("{}({}): {}", only.kind, only.task, only.title),
            [first, ..] => {
                format!("{}({}): {} (and others)", first.kind, first.task, first.title)
            }
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

    fn fits(&self, subject: &str) -> bool {
        let short = subject.chars().count() <= LONGEST_SUBJECT && !subject.trim().is_empty();
        short && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(subject))
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
