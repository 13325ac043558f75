//! What the person wanted forgotten. It stays on the list, because the journals
//! that it comes from stay too.

use std::collections::BTreeSet;

use blueflame_core::ids::SessionId;
use blueflame_core::memory::{self, Kind, Note};

/// One entry a line: the key of a note, or `blueflame:<session>:` for all that a
/// session left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    entries: BTreeSet<String>,
}

impl Forgotten {
    pub fn read(text: &str) -> Forgotten {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Forgotten { entries: lines.map(str::to_owned).collect() }
    }

    pub fn text(&self) -> String {
        self.entries.iter().flat_map(|entry| [entry.as_str(), "\n"]).collect()
    }

    pub fn note(&mut self, note: &Note) {
        self.entries.insert(note.key.clone());
    }

    pub fn session(&mut self, session: &SessionId) {
        self.entries.insert(format!("blueflame:{session}:"));
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

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
