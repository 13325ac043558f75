//! What is in the lines that were added: keys, leftovers of a merge, and text
//! that is not what it seems.

use std::sync::LazyLock;

use regex::Regex;

use crate::policy::Rule;

use super::key_shapes::{self, Certainty, Key};
use super::key_values::entropy;
use super::{Commit, FileChange, Inspection, Line, Lines};

/// Looks at the added lines of a change, or of one commit of it.
pub(super) fn inspect(found: &mut Inspection, change: &FileChange, commit: Option<&Commit>) {
    let path = &change.path;
    let Lines { added, removed, .. } = &change.lines;
    for (at, line) in added.iter().enumerate() {
        let place = format!("`{path}` line {}", line.number);
        keys(found, &line.text, removed, &place, commit);
        if let Some(text) = private_key(&added[at..]) {
            let key = Key { name: "a private key", certainty: Certainty::Sure, text };
            tell(found, key, removed, &place, commit);
        }
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
    for key in key_shapes::in_line(text) {
        tell(found, key, replaced, place, commit);
    }
}

fn tell(
    found: &mut Inspection,
    key: Key<'_>,
    replaced: &[Line],
    place: &str,
    commit: Option<&Commit>,
) {
    if replaced.iter().any(|line| line.text.contains(key.text)) {
        return;
    }
    let what = key.name;
    match (key.certainty, commit) {
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

static KEY_HEAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----|^PuTTY-User-Key-File-\d:")
        .expect("the pattern is tested")
});

/// Part of a key as it is written: much base 64 in one piece.
static KEY_BODY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z0-9+/]{40,}").expect("the pattern is tested"));

/// How far behind its head the body of a key begins: there may be headers.
const NEAR: u32 = 8;

/// The head of a private key in the first of these lines, if the key follows.
/// Code that reads keys names the head alone.
fn private_key(lines: &[Line]) -> Option<&str> {
    let first = lines.first()?;
    let head = KEY_HEAD.find(&first.text)?;
    let near = |line: &&Line| line.number.saturating_sub(first.number) <= NEAR;
    let behind = std::iter::once(&first.text[head.end()..])
        .chain(lines[1..].iter().take_while(near).map(|line| line.text.as_str()));
    let mut bodies = behind.filter_map(|text| KEY_BODY.find(text));
    bodies.any(|body| entropy(body.as_str()) >= 3.5).then_some(head.as_str())
}

fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", ">>>>>>>"].iter().any(|marker| {
        line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
