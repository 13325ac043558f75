//! A note as a bead: one JSON object a line, as Beads writes its issues.
//!
//! What a note says is twice in it, as metadata and in a fence at the end of the
//! description, because not every keeper of beads has metadata.

use blueflame_core::memory::wording::clipped;
use blueflame_core::memory::{Kind, Note, Standing};
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The first part of every id.
const PREFIX: &str = "bf";

/// What begins the copy of a note in a description.
const FENCE: &str = "\n\n```json blueflame\n";
const FENCE_END: &str = "\n```";

/// The longest title and label that all keepers take.
const LONGEST_TITLE: usize = 480;
const LONGEST_LABEL: usize = 50;

/// The label that all of ours have.
pub const LABEL: &str = "blueflame";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bead {
    pub id: String,
    pub title: String,
    #[serde(default, deserialize_with = "or_absent")]
    pub description: String,
    pub status: String,
    #[serde(default, deserialize_with = "or_absent")]
    pub priority: u8,
    #[serde(default, deserialize_with = "or_absent")]
    pub issue_type: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "or_absent", skip_serializing_if = "String::is_empty")]
    pub close_reason: String,
    #[serde(default, deserialize_with = "or_absent", skip_serializing_if = "String::is_empty")]
    pub closed_by_session: String,
    #[serde(default, deserialize_with = "or_absent", skip_serializing_if = "String::is_empty")]
    pub created_by: String,
    #[serde(default, deserialize_with = "or_absent", skip_serializing_if = "String::is_empty")]
    pub external_ref: String,
    #[serde(default, deserialize_with = "or_absent", skip_serializing_if = "String::is_empty")]
    pub source_system: String,
    #[serde(default, deserialize_with = "or_absent")]
    pub labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_level: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_size: Option<u64>,
    #[serde(default, deserialize_with = "or_absent")]
    pub metadata: Metadata,
}

/// What Beads keeps beside an issue, as far as it is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blueflame: Option<Note>,
}

/// Some keepers write `null` for what is not there.
pub(super) fn or_absent<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

impl Bead {
    pub fn of(note: &Note) -> Bead {
        // The text is in the description.
        let bare = Note { text: String::new(), ..note.clone() };
        let written = serde_json::to_string(&bare).unwrap_or_default();
        Bead {
            id: id(&note.key),
            title: clipped(
                &format!("{} {}: {}", note.session, note.kind.name(), note.title),
                LONGEST_TITLE,
            ),
            description: format!("{}{FENCE}{written}{FENCE_END}", note.text),
            // Closed ones are in nobody's list of what to do.
            status: "closed".to_owned(),
            priority: if note.is_unresolved() { 1 } else { 3 },
            issue_type: match note.kind {
                Kind::Failure => "bug",
                Kind::Result => "task",
                Kind::Decision | Kind::Pattern | Kind::Session | Kind::Cost => "chore",
            }
            .to_owned(),
            created_at: note.at,
            updated_at: note.at,
            closed_at: Some(note.at),
            close_reason: reason(note).to_owned(),
            closed_by_session: note.session.to_string(),
            created_by: LABEL.to_owned(),
            external_ref: note.key.clone(),
            source_system: LABEL.to_owned(),
            labels: labels(note),
            compaction_level: note.shortened_from.map(|_| 1),
            original_size: note.shortened_from,
            metadata: Metadata { blueflame: Some(bare) },
        }
    }

    /// The note that it is of; `None` if it is nobody's of ours.
    pub fn note(self) -> Option<Note> {
        let (text, fenced) = self.description.rsplit_once(FENCE).unwrap_or_default();
        let of_fence = || serde_json::from_str(fenced.strip_suffix(FENCE_END)?).ok();
        let note: Note = self.metadata.blueflame.or_else(of_fence)?;
        let is_ours = self.external_ref.is_empty() || note.key == self.external_ref;
        is_ours.then(|| Note { text: text.to_owned(), ..note })
    }
}

fn reason(note: &Note) -> &'static str {
    match (note.kind, note.standing) {
        (Kind::Failure, Some(Standing::Unresolved)) => "remembered: nobody has put it right yet",
        (Kind::Failure, _) => "remembered: the work has landed since",
        _ => "remembered",
    }
}

fn labels(note: &Note) -> Vec<String> {
    let mut labels = vec![LABEL.to_owned(), format!("bf:kind:{}", note.kind.name())];
    labels.push(format!("bf:session:{}", note.session));
    labels.extend(note.task.as_ref().map(|task| format!("bf:task:{task}")));
    labels.extend(note.group.as_ref().map(|group| format!("bf:group:{group}")));
    labels.extend(note.standing.map(|standing| match standing {
        Standing::Unresolved => "bf:unresolved".to_owned(),
        Standing::Resolved => "bf:resolved".to_owned(),
    }));
    labels.into_iter().map(label).collect()
}

/// Names are letters, digits, `-` and `_` already, and may only be too long.
fn label(text: String) -> String {
    if text.len() <= LONGEST_LABEL {
        return text;
    }
    let tail = &base36(&text)[..8];
    format!("{}-{tail}", &text[..LONGEST_LABEL - 9])
}

/// The id of the bead for a key: the same on every machine.
pub fn id(key: &str) -> String {
    format!("{PREFIX}-bf{}", &base36(key)[..10])
}

fn base36(text: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let hash = digest(&SHA256, text.as_bytes());
    let digit = |byte: &u8| char::from(DIGITS[usize::from(*byte) % DIGITS.len()]);
    hash.as_ref().iter().map(digit).collect()
}

/// Lines that are no notes of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Numbers of lines that cannot be read.
    pub unreadable: Vec<usize>,
    /// The last line was cut off while it was written.
    pub torn: bool,
    /// Beads of others.
    pub others: usize,
}

/// Reads beads, one a line. A line that cannot be read does not keep the others
/// from being read.
pub fn read_lines(bytes: &[u8]) -> (Vec<Note>, Skipped) {
    let mut skipped = Skipped::default();
    let mut notes = Vec::new();
    let whole = bytes.ends_with(b"\n");
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    for (place, line) in lines.iter().enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Bead>(line) {
            Ok(bead) => match bead.note() {
                Some(note) => notes.push(note),
                None => skipped.others += 1,
            },
            Err(_) if !whole && place + 1 == lines.len() => skipped.torn = true,
            // A line of another kind than an issue is nobody's of ours.
            Err(_) if serde_json::from_slice::<Map<String, Value>>(line).is_ok() => {
                skipped.others += 1;
            }
            Err(_) => skipped.unreadable.push(place + 1),
        }
    }
    (notes, skipped)
}

pub fn write_lines<'n>(
    notes: impl IntoIterator<Item = &'n Note>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for note in notes {
        serde_json::to_writer(&mut bytes, &Bead::of(note))?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use blueflame_core::ids::{GroupName, SessionId, TaskId};

    use super::*;

    fn note() -> Note {
        let session = SessionId::new("ses-20260206-143022").unwrap();
        let at = "2026-02-06T15:00:00.5Z".parse().unwrap();
        Note {
            task: TaskId::new("task-001").ok(),
            group: GroupName::new("a".repeat(64)).ok(),
            standing: Some(Standing::Unresolved),
            shortened_from: Some(900),
            ..Note::new(&session, "task-001", Kind::Failure, at, "task-001: Add a cache")
                .saying("failed: ran out of time\n\n```json blueflame\n{}\n```\nand more")
        }
    }

    #[test]
    fn a_note_is_a_bead_that_others_understand() {
        let bead = Bead::of(&note());
        insta::assert_snapshot!(serde_json::to_string_pretty(&bead).unwrap());
        assert!(bead.labels.iter().all(|label| label.len() <= LONGEST_LABEL));
    }

    #[test]
    fn a_note_comes_back_with_metadata_or_without() {
        let mut bead = Bead::of(&note());
        assert_eq!(bead.clone().note(), Some(note()));
        bead.metadata = Metadata::default();
        assert_eq!(bead.clone().note(), Some(note()));
        let mut others = bead.clone();
        others.description = "Somebody else's.".into();
        assert_eq!(others.note(), None);
        // And whatever a keeper has nothing for.
        let mut value = serde_json::to_value(&bead).unwrap();
        for key in ["external_ref", "close_reason", "closed_by_session", "labels", "metadata"] {
            value[key] = Value::Null;
        }
        let line = format!("{value}\n");
        assert_eq!(read_lines(line.as_bytes()), (vec![note()], Skipped::default()));
    }

    #[test]
    fn a_torn_last_line_and_lines_of_others_are_passed_over() {
        let one = write_lines([&note()]).unwrap();
        let mut bytes = one.clone();
        bytes.extend_from_slice(b"{\"_type\":\"memory\",\"key\":\"x\"}\n\nnonsense\n");
        bytes.extend_from_slice(&one[..one.len() / 2]);
        let (notes, skipped) = read_lines(&bytes);
        assert_eq!(notes, [note()]);
        assert_eq!(skipped, Skipped { unreadable: vec![4], torn: true, others: 1 });
        assert_eq!(read_lines(&one), (vec![note()], Skipped::default()));
    }
}
