//! What the person wanted forgotten. It stays on the list, because the journals
//! that it comes from stay too.

use std::collections::BTreeSet;

use blueflame_core::ids::SessionId;
use blueflame_core::memory::{self, Kind, Note, Notebook};

/// What stands before the key of a note that only followed from forgotten ones.
const FOLLOWED: &str = "followed ";

/// One entry a line: the key of a note, or `blueflame:<session>:` for all that a
/// session left, or what followed from these and may follow from others again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    entries: BTreeSet<String>,
    followed: BTreeSet<String>,
}

impl Forgotten {
    pub fn read(text: &str) -> Forgotten {
        let mut forgotten = Forgotten::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_prefix(FOLLOWED) {
                Some(key) => forgotten.followed.insert(key.to_owned()),
                None => forgotten.entries.insert(line.to_owned()),
            };
        }
        forgotten
    }

    pub fn text(&self) -> String {
        let followed = self.followed.iter().map(|key| format!("{FOLLOWED}{key}\n"));
        self.entries.iter().map(|entry| format!("{entry}\n")).chain(followed).collect()
    }

    pub fn note(&mut self, note: &Note) {
        self.entries.insert(note.key.clone());
    }

    pub fn session(&mut self, session: &SessionId) {
        self.entries.insert(format!("blueflame:{session}:"));
    }

    /// Remembers which notes are not there any more only because these are forgotten:
    /// a copy of them has to go as well.
    pub fn followed(&mut self, before: &Notebook) {
        let mut after = before.clone();
        after.retain(|note| !self.has(note));
        after.settle(None);
        let is_lost = |note: &&Note| !self.has(note) && after.get(&note.key).is_none();
        let lost: Vec<&Note> = before.notes().filter(is_lost).collect();
        self.followed.extend(lost.into_iter().map(|note| note.key.clone()));
    }

    /// Whether a copy of the note of a key must not say anything any more, unless it
    /// is among the notes again.
    pub fn was_taken_away(&self, key: &str) -> bool {
        self.has_key(key) || self.followed.contains(key)
    }

    pub fn has(&self, note: &Note) -> bool {
        self.has_key(&note.key)
    }

    /// Whether the note of a key is forgotten. Finished tasks become part of their
    /// session's note in time, so they are forgotten with it.
    pub fn has_key(&self, key: &str) -> bool {
        let parts: Vec<&str> = key.split(':').collect();
        let [_, session, _, kind] = parts[..] else { return self.entries.contains(key) };
        let of_session = || memory::key(session, "session", Kind::Session);
        self.entries.contains(key)
            || self.entries.contains(&format!("blueflame:{session}:"))
            || (kind == Kind::Result.name() && self.entries.contains(&of_session()))
    }
}
