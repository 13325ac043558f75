//! Old notes get shorter, by the number of sessions since and by nothing else:
//! no clock, no model, and the same for everyone.

use std::collections::{BTreeMap, BTreeSet};

use super::note::{self, Kind, Note};
use crate::config::Decay;
use crate::ids::SessionId;

/// Lines of finished tasks in the note of their session.
const MOST_LINES: usize = 40;

/// What stands before the finished tasks in the note of their session.
const LANDED: &str = "\nlanded:";

/// Shortens what is old. Doing it again changes nothing.
pub(super) fn decay(notes: &mut BTreeMap<String, Note>, policy: &Decay) {
    let ages = ages(notes);
    let age = |note: &Note| ages.get(&note.session).copied().unwrap_or(0);
    let summarized = |note: &Note| age(note) >= policy.summarize_after_sessions;
    let preserved =
        |note: &Note| note.is_unresolved() && age(note) < policy.preserve_failures_sessions;

    let old: Vec<String> = notes
        .values()
        .filter(|note| note.kind == Kind::Result && summarized(note))
        .map(|note| note.key.clone())
        .collect();
    for key in old {
        fold_into_session(notes, &key);
    }
    for note in notes.values_mut() {
        if note.kind == Kind::Failure && !preserved(note) {
            note.shorten();
        }
    }
}

/// The text of a session's note without the finished tasks in it, and those.
pub(super) fn without_landed(text: &str) -> (&str, Option<&str>) {
    match text.split_once(LANDED) {
        Some((text, landed)) => (text, Some(landed)),
        None => (text, None),
    }
}

/// How many sessions came after each.
fn ages(notes: &BTreeMap<String, Note>) -> BTreeMap<SessionId, u32> {
    let dated = notes.values().filter(|note| note.kind != Kind::Pattern);
    let sessions: BTreeSet<&SessionId> = dated.map(|note| &note.session).collect();
    let newest_first = sessions.into_iter().rev();
    newest_first.zip(0..).map(|(session, age)| (session.clone(), age)).collect()
}

/// A finished task becomes a line in the note of its session; without such a
/// note, a line of its own.
fn fold_into_session(notes: &mut BTreeMap<String, Note>, key: &str) {
    let Some(mut result) = notes.remove(key) else { return };
    let session = super::key(result.session.as_str(), "session", Kind::Session);
    let Some(session) = notes.get_mut(&session) else {
        result.shorten();
        notes.insert(key.to_owned(), result);
        return;
    };
    let folded = note::size(&result.title) + note::size(&result.text);
    session.shortened_from = Some(session.shortened_from.unwrap_or(0) + folded);
    if !session.text.contains(LANDED) {
        session.text.push_str(LANDED);
    }
    let lines = without_landed(&session.text).1.map_or(0, |landed| landed.matches('\n').count());
    if lines <= MOST_LINES {
        session.text.push('\n');
        session.text.push_str(if lines == MOST_LINES { "and more" } else { &result.title });
    }
}
