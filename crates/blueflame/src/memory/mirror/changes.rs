//! What has to be done for `bd` to say what the notes say: worked out from what
//! it lists, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::memory::Notebook;

use super::super::Forgotten;
use super::super::bead::{Bead, LABEL, Metadata};
use super::answer::Row;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Create(Box<Bead>),
    Update { id: String, bead: Box<Bead> },
    Close { id: String, reason: String },
}

/// In an order that does not depend on that of the rows: what nobody should read any
/// more comes first, because a later one may fail or be out of time.
pub fn changes(rows: &[Row], notebook: &Notebook, forgotten: &Forgotten) -> Vec<Change> {
    // Should there be two of one key, the one that came first is ours.
    let mut known: BTreeMap<&str, &Row> = BTreeMap::new();
    for row in rows {
        let first = known.entry(row.external_ref.as_str()).or_insert(row);
        if row.id < first.id {
            *first = row;
        }
    }
    let mut changes = Vec::new();
    let mut gone: Vec<&Row> = rows.iter().filter(|row| !row.is_deleted()).collect();
    gone.retain(|row| {
        forgotten.was_taken_away(&row.external_ref) && notebook.get(&row.external_ref).is_none()
    });
    gone.sort_by_key(|row| (&row.external_ref, &row.id));
    for row in gone {
        bring(row, Box::new(emptied(&row.external_ref)), &mut changes);
    }
    // One that it cannot take would keep all others from it. What was taken over
    // from others in earlier versions was not looked at.
    for note in notebook.notes().filter(|note| note.has_sound_key()) {
        let bead = Box::new(Bead::of(&note.clone().bounded()));
        match known.get(note.key.as_str()) {
            None => changes.push(Change::Create(bead)),
            // The person deleted it there.
            Some(row) if row.is_deleted() => {}
            Some(row) => bring(row, bead, &mut changes),
        }
    }
    changes
}

fn bring(row: &Row, bead: Box<Bead>, changes: &mut Vec<Change>) {
    let labels = |labels: &[String]| labels.iter().cloned().collect::<BTreeSet<String>>();
    let same = row.title == bead.title
        // Not every list has descriptions in it.
        && row.description.as_ref().is_none_or(|it| it.trim_end() == bead.description.trim_end())
        && row.labels.as_ref().is_none_or(|it| labels(it) == labels(&bead.labels));
    let reason = bead.close_reason.clone();
    if !same {
        changes.push(Change::Update { id: row.id.clone(), bead });
    }
    if !row.is_closed() {
        changes.push(Change::Close { id: row.id.clone(), reason });
    }
}

/// What is left of a note that was forgotten: that there was one.
fn emptied(key: &str) -> Bead {
    let at = jiff::Timestamp::UNIX_EPOCH;
    Bead {
        id: String::new(),
        title: "forgotten".to_owned(),
        description: "The person wanted this forgotten.".to_owned(),
        status: "closed".to_owned(),
        priority: 4,
        issue_type: "chore".to_owned(),
        created_at: at,
        updated_at: at,
        closed_at: Some(at),
        close_reason: "forgotten".to_owned(),
        closed_by_session: String::new(),
        created_by: LABEL.to_owned(),
        external_ref: key.to_owned(),
        source_system: LABEL.to_owned(),
        labels: vec![LABEL.to_owned()],
        compaction_level: None,
        original_size: None,
        metadata: Metadata::default(),
    }
}
