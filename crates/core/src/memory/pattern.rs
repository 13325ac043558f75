//! What goes wrong again and again: failures with the same cause, in one session
//! or in many.

use std::collections::BTreeMap;

use super::note::{Kind, Note};
use super::wording;
use crate::inspection::without_keys;

/// How many failures make a pattern.
const ENOUGH: usize = 2;

/// The longest cause, in bytes.
const LONGEST: usize = 160;

/// How many failures and files a pattern names.
const NAMED: usize = 8;

/// What went wrong, in words that are the same whenever it is the same: the first
/// line, without the numbers and names that differ from one time to the next.
pub(super) fn cause(result: &str, notes: &str) -> String {
    let said: String = without_keys(wording::first_line(notes))
        .split_whitespace()
        .map(|word| if is_of_the_day(word) { "#" } else { word })
        .collect::<Vec<_>>()
        .join(" ");
    wording::clipped(&format!("{result}: {said}"), LONGEST)
}

/// Numbers, object names, times.
fn is_of_the_day(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
    !word.is_empty()
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | ',' | 's' | 'm'))
}

/// The patterns in some failures.
pub(super) fn patterns<'n>(notes: impl Iterator<Item = &'n Note>) -> Vec<Note> {
    let mut by_cause: BTreeMap<&str, Vec<&Note>> = BTreeMap::new();
    for note in notes.filter(|note| note.kind == Kind::Failure) {
        for cause in &note.causes {
            by_cause.entry(cause).or_default().push(note);
        }
    }
    let repeated = by_cause.into_iter().filter(|(_, failures)| failures.len() >= ENOUGH);
    repeated.filter_map(|(cause, failures)| pattern(cause, &failures)).collect()
}

fn pattern(cause: &str, failures: &[&Note]) -> Option<Note> {
    let mut newest: Vec<&Note> = failures.to_vec();
    newest.sort_by(|one, other| (&other.session, &other.key).cmp(&(&one.session, &one.key)));
    let last = newest.first()?;
    let mut sessions: Vec<&str> = newest.iter().map(|note| note.session.as_str()).collect();
    sessions.dedup();
    let (times, sessions) = (failures.len(), wording::count(sessions.len(), "session"));
    let title = format!("{times} times in {sessions}: {cause}");
    let named: Vec<String> =
        newest.iter().take(NAMED).map(|note| format!("{} {}", note.session, note.title)).collect();
    let mut paths = Vec::new();
    for path in newest.iter().flat_map(|note| &note.paths) {
        if paths.len() < NAMED && !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    let subject = format!("pattern-{:016x}", fingerprint(cause));
    let note = Note::new(&last.session, &subject, Kind::Pattern, last.at, &title);
    Some(Note {
        // It is not of one session.
        key: super::key("all", &subject, Kind::Pattern),
        paths,
        times: u32::try_from(failures.len()).unwrap_or(u32::MAX),
        causes: vec![cause.to_owned()],
        ..note.saying(&named.join("\n"))
    })
}

/// FNV-1a: the same on every machine and in every version, which is all that is
/// asked of it.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_the_same_whenever_it_is_the_same() {
        let one = cause("did not finish", "crashed: exit status: 101 after 12.5s\nmore");
        let other = cause("did not finish", "crashed: exit status: 7 after 3s");
        assert_eq!(one, other);
        assert_eq!(one, "did not finish: crashed: exit status: # after #");
        assert_ne!(one, cause("was rejected by the person", "crashed: exit status: 7 after 3s"));
        assert_eq!(cause("x", "see src/a1.rs, task-001"), "x: see src/a1.rs, task-001");
    }
}
