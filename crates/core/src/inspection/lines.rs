//! What is in the lines that were added: keys, leftovers of a merge, and text
//! that is not what it seems.

use crate::policy::Rule;

use super::key_shapes::{self, Certainty};
use super::{Commit, FileChange, Inspection, Line};

/// Looks at the added lines of a change, or of one commit of it.
pub(super) fn inspect(found: &mut Inspection, change: &FileChange, commit: Option<&Commit>) {
    let path = &change.path;
    for line in &change.lines.added {
        let place = format!("`{path}` line {}", line.number);
        keys(found, &line.text, &change.lines.removed, &place, commit);
        // A line that is gone again by the end misleads nobody.
        if commit.is_some() {
            continue;
        }
        if is_conflict_marker(&line.text) {
            found.violation(
                Rule::ChangeConflict,
                format!("{place} is left over from a merge. Resolve the conflict."),
            );
        }
        if line.text.contains(turns_direction) {
            found.remark(
                "changes.direction",
                format!("{place} contains characters that change the reading direction."),
            );
        }
    }
}

/// Looks for keys; they are told by their kind and place, never by their text.
/// One that stood in the lines that were `replaced` is not new.
pub(super) fn keys(
    found: &mut Inspection,
    text: &str,
    replaced: &[Line],
    place: &str,
    commit: Option<&Commit>,
) {
    for (shape, key) in key_shapes::in_line(text) {
        if replaced.iter().any(|line| line.text.contains(key)) {
            continue;
        }
        let what = shape.name;
        match (shape.certainty, commit) {
            (Certainty::Sure, None) => found.violation(
                Rule::ChangeSecret,
                format!("{place} holds {what}. Take it out, and read it from the environment."),
            ),
            (Certainty::Sure, Some(commit)) => found.violation(
                Rule::ChangeSecret,
                format!(
                    "{place} holds {what} in commit {}. Take it out of the history as well.",
                    commit.short()
                ),
            ),
            (Certainty::Likely, None) => {
                found.remark(Rule::ChangeSecret.name(), format!("{place} may hold {what}."));
            }
            (Certainty::Likely, Some(_)) => {}
        }
    }
}

fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", ">>>>>>>"].iter().any(|marker| {
        line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
