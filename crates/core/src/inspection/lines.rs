//! What is in the lines that were added: keys, leftovers of a merge, and text
//! that is not what it seems.

use crate::policy::Rule;

use super::key_shapes::{self, Certainty, Key};
use super::literals;
use super::readings;
use super::windows::{beginning, windows};
use super::wording::{entropy, has_words};
use super::{Commit, FileChange, Inspection, Line, Lines};

/// Looks at the added lines of a change, or of one commit of it.
pub(super) fn inspect(found: &mut Inspection, change: &FileChange, commit: Option<&Commit>) {
    let path = &change.path;
    let Lines { added, removed, .. } = &change.lines;
    if change.before.is_none() && change.after.is_some() {
        keys(found, path, &[], &format!("the name of `{path}`"), commit);
    }
    across(found, change, commit);
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
    for piece in windows(text) {
        let keys = key_shapes::in_line(piece);
        if keys.is_empty() {
            for reading in readings::others(piece) {
                for key in key_shapes::in_line(&reading) {
                    tell(found, key, replaced, place, commit);
                }
            }
        }
        for key in keys {
            tell(found, key, replaced, place, commit);
        }
    }
}

/// The most lines that one text is put together from.
const MOST_JOINED: usize = 40;

/// Looks for keys of which a part stands in each of several lines.
fn across(found: &mut Inspection, change: &FileChange, commit: Option<&Commit>) {
    let Lines { added, removed, .. } = &change.lines;
    let mut rest = &added[..];
    while !rest.is_empty() {
        let joints = rest.windows(2).take(MOST_JOINED);
        let more = joints.take_while(|two| literals::goes_on(&two[0], &two[1])).count();
        let (lines, after) = rest.split_at(more + 1);
        rest = after;
        let Some(text) = (more > 0).then(|| literals::continued(lines)).flatten() else { continue };
        let place = format!("`{}` line {}", change.path, lines[0].number);
        for key in windows(&text).flat_map(key_shapes::in_line) {
            if !lines.iter().any(|line| line.text.contains(key.text)) {
                tell(found, key, removed, &place, commit);
            }
        }
    }
}

fn tell(
    found: &mut Inspection,
    key: Key<'_>,
    replaced: &[Line],
    place: &str,
    commit: Option<&Commit>,
) {
    if stood_in(replaced, key.text) {
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

/// Whether a text stood in these lines, in one piece or in several.
fn stood_in(lines: &[Line], text: &str) -> bool {
    let whole = || lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
    lines.iter().any(|line| line.text.contains(text))
        || literals::joined(&whole()).is_some_and(|joined| joined.contains(text))
}

/// How far behind its head the body of a key goes on being looked for: there may
/// be headers, and short lines.
const NEAR: u32 = 24;

/// How much of a body there has to be.
const BODY: usize = 40;

/// A shorter piece of it could be anything.
const LEAST_PIECE: usize = 12;

/// The beginning of the private key whose head is in the first of these lines.
/// Code that reads keys names the head alone.
fn private_key(lines: &[Line]) -> Option<&str> {
    let (first, rest) = lines.split_first()?;
    let near = |line: &&Line| line.number.saturating_sub(first.number) <= NEAR;
    windows(&first.text).find_map(|piece| {
        let head = key_shapes::key_head(piece)?;
        let behind = std::iter::once(&piece[head.end()..])
            .chain(rest.iter().take_while(near).map(|line| beginning(&line.text)));
        key_body(behind)
    })
}

/// The first piece of the base 64 that these lines hold, if it is much. They may
/// be texts in quotes, or one text with signs for the ends of its lines.
fn key_body<'t>(lines: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let mut body = String::new();
    let mut first = None;
    for part in lines.flat_map(|text| text.split("\\n")) {
        let part = part.trim_matches(|c: char| c.is_whitespace() || "\"'`,;+.#>|*\\".contains(c));
        // What is long enough by itself may have anything around it.
        let runs = part.split(|c| !is_base_64(c));
        for run in runs.filter(|run| run.len() >= BODY || run.len() == part.len()) {
            body.push_str(run);
            first = first.or((run.len() >= LEAST_PIECE).then_some(run));
        }
    }
    let much = body.len() >= BODY && entropy(&body) >= 3.5 && !has_words(&body);
    first.filter(|_| much)
}

fn is_base_64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", ">>>>>>>"].iter().any(|marker| {
        line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
