//! The notes of all sessions, each under its key.

use std::collections::{BTreeMap, BTreeSet};

use super::decay;
use super::note::{Kind, Note, Standing};
use super::pattern;
use crate::config::Decay;
use crate::ids::SessionId;
use crate::lock_path::{LockPath, any_overlap};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notebook {
    notes: BTreeMap<String, Note>,
}

/// What came of taking over the notes of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub new: usize,
    pub newer: usize,
    pub known: usize,
    /// Known by what is no key of ours.
    pub refused: usize,
    /// Forgotten here, and so left alone.
    pub forgotten: usize,
}

impl Notebook {
    pub fn new(notes: impl IntoIterator<Item = Note>) -> Notebook {
        let notes = notes.into_iter().map(|note| (note.key.clone(), note));
        Notebook { notes: notes.collect() }
    }

    /// In the order of their keys.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.values()
    }

    pub fn get(&self, key: &str) -> Option<&Note> {
        self.notes.get(key)
    }

    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub fn len(&self) -> usize {
        self.notes.len()
    }

    /// The sessions that there are notes of, oldest first: their names are made of
    /// the date and the time.
    pub fn sessions(&self) -> BTreeSet<&SessionId> {
        let dated = self.notes.values().filter(|note| note.kind != Kind::Pattern);
        dated.map(|note| &note.session).collect()
    }

    /// Puts what a session is now known to have left in place of what was known
    /// of it before.
    pub fn replace(&mut self, session: &SessionId, notes: impl IntoIterator<Item = Note>) {
        let mut resolved: BTreeMap<String, SessionId> = BTreeMap::new();
        for (key, note) in &self.notes {
            if note.session == *session
                && let Some(by) = note.resolved_by.as_ref().filter(|by| *by != session)
            {
                resolved.insert(key.clone(), by.clone());
            }
        }
        self.notes.retain(|_, note| note.session != *session || note.kind == Kind::Pattern);
        // What it landed may have been taken back since. If not, that shows again
        // when everything is settled.
        for note in self.notes.values_mut() {
            if note.resolved_by.as_ref() == Some(session) {
                note.standing = Some(Standing::Unresolved);
                note.resolved_by = None;
            }
        }
        for mut note in notes {
            // Its own journal does not know that another session did the work.
            if note.is_unresolved()
                && let Some(by) = resolved.remove(&note.key)
            {
                note.standing = Some(Standing::Resolved);
                note.resolved_by = Some(by);
            }
            self.notes.insert(note.key.clone(), note);
        }
    }

    /// Takes over notes of others. Of two that tell of the same, the newer stays.
    pub fn import(&mut self, notes: impl IntoIterator<Item = Note>) -> Imported {
        let mut imported = Imported::default();
        for note in notes {
            if !note.has_sound_key() {
                imported.refused += 1;
                continue;
            }
            let note = note.bounded();
            match self.notes.get(&note.key) {
                None => imported.new += 1,
                Some(known) if known.at < note.at => imported.newer += 1,
                Some(_) => {
                    imported.known += 1;
                    continue;
                }
            }
            self.notes.insert(note.key.clone(), note);
        }
        imported
    }

    pub fn retain(&mut self, is_kept: impl Fn(&Note) -> bool) {
        self.notes.retain(|_, note| is_kept(note));
    }

    /// Works out what follows from all notes together: which failures are
    /// resolved, what repeats itself, and what is old enough to be told shorter.
    /// Doing it again changes nothing.
    pub fn settle(&mut self, decay: Option<&Decay>) {
        self.resolve();
        self.notes.retain(|_, note| note.kind != Kind::Pattern);
        let patterns = pattern::patterns(self.notes.values());
        self.notes.extend(patterns.into_iter().map(|note| (note.key.clone(), note)));
        if let Some(policy) = decay {
            decay::decay(&mut self.notes, policy);
        }
    }

    /// A failure is resolved when a later session landed the same work.
    fn resolve(&mut self) {
        let results = self.notes.values().filter(|note| note.kind == Kind::Result);
        let landed: Vec<Work> = results.map(Work::of).collect();
        for note in self.notes.values_mut().filter(|note| note.is_unresolved()) {
            let failed = Work::of(note);
            let same = |other: &&Work| other.session > failed.session && failed.is_same_as(other);
            if let Some(by) = landed.iter().filter(same).map(|other| &other.session).min() {
                note.standing = Some(Standing::Resolved);
                note.resolved_by = Some(by.clone());
            }
        }
    }
}

/// What a note on a task is about.
struct Work {
    session: SessionId,
    words: BTreeSet<String>,
    paths: Vec<LockPath>,
}

impl Work {
    fn of(note: &Note) -> Work {
        // Plans number their tasks, so the name of one says nothing about it.
        let title = note.title.split_once(": ").map_or(note.title.as_str(), |(_, rest)| rest);
        let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        Work {
            session: note.session.clone(),
            words: words.map(str::to_lowercase).collect(),
            paths: note.paths.clone(),
        }
    }

    /// The same words, or mostly the same words on the same files. What is
    /// taken for something else stays unresolved, which does less harm than the
    /// other way round.
    fn is_same_as(&self, other: &Work) -> bool {
        if self.words == other.words {
            return !self.words.is_empty();
        }
        if !any_overlap(&self.paths, &other.paths) {
            return false;
        }
        let common = self.words.intersection(&other.words).count();
        let all = self.words.union(&other.words).count();
        2 * common >= all && all > 0
    }
}
