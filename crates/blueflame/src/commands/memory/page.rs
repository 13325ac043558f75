//! Notes as pages and documents.

use std::fmt::Write as _;
use std::path::Path;

use blueflame_core::lock_path::LockPath;
use blueflame_core::memory::context::{BYTES_PER_TOKEN, Context};
use blueflame_core::memory::{Note, Notebook, Standing};
use serde_json::{Value, json};

use crate::columns::{Side, Table, clip};
use crate::memory::bead_id;
use crate::memory::mirror::Pending;
use crate::narrate::plain;
use crate::people::sheet::count;

const WIDEST_TITLE: usize = 70;

pub fn list(notes: &[&Note], notebook: &Notebook, pending: Option<&Pending>) -> String {
    let mut page = String::new();
    if notes.is_empty() {
        page.push_str(if notebook.is_empty() {
            "Nothing is remembered yet: notes are made when a session ends.\n"
        } else {
            "No such notes.\n"
        });
    } else {
        let mut table = Table::new([
            ("note", Side::Left),
            ("session", Side::Left),
            ("kind", Side::Left),
            ("", Side::Left),
            ("what", Side::Left),
        ]);
        for note in notes {
            table.row([
                bead_id(&note.key),
                note.session.to_string(),
                note.kind.name().to_owned(),
                standing(note).to_owned(),
                clip(&plain(&note.title), WIDEST_TITLE),
            ]);
        }
        for line in table.lines() {
            page.push_str(&line);
            page.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "\n{} of {}",
            count(notebook.len(), "note"),
            count(notebook.sessions().len(), "session")
        );
    }
    if let Some(Pending { since, why }) = pending {
        let _ = writeln!(page, "`bd` is behind since {since}: {}", plain(why));
    }
    page
}

pub fn document(file: &Path, notes: &[&Note], pending: Option<&Pending>) -> String {
    let notes: Vec<Value> = notes.iter().map(|note| value(note)).collect();
    let document = json!({ "file": file.display().to_string(), "notes": notes, "behind": pending });
    format!("{document}\n")
}

pub fn note(note: &Note) -> String {
    let mut page = format!("{}  {}\n", bead_id(&note.key), plain(&note.title));
    let mut field = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(page, "{name:<9} {}", plain(text));
        }
    };
    field("kind", note.kind.name());
    field("standing", standing(note));
    field("session", note.session.as_str());
    field("resolved", note.resolved_by.as_ref().map_or("", |it| it.as_str()));
    field("at", &note.at.to_string());
    let paths: Vec<&str> = note.paths.iter().map(LockPath::as_str).collect();
    field("files", &paths.join(" "));
    field("key", &note.key);
    if let Some(size) = note.shortened_from {
        field("shortened", &format!("from {size} bytes"));
    }
    if !note.text.is_empty() {
        page.push('\n');
        for line in note.text.lines() {
            let _ = writeln!(page, "  {}", plain(line));
        }
    }
    page
}

pub fn note_document(note: &Note) -> String {
    format!("{}\n", value(note))
}

pub fn context(context: &Context) -> String {
    let mut page = String::new();
    for line in context.text.lines() {
        let _ = writeln!(page, "{}", plain(line));
    }
    let tokens = count(context.text.len().div_ceil(BYTES_PER_TOKEN), "token");
    let _ = writeln!(page, "\n(about {tokens}, {})", count(context.told, "note"));
    page
}

pub fn context_document(context: Option<&Context>) -> String {
    let document = match context {
        Some(Context { text, told, left_out }) => {
            let tokens = text.len().div_ceil(BYTES_PER_TOKEN);
            json!({ "text": text, "tokens": tokens, "told": told, "left_out": left_out })
        }
        None => Value::Null,
    };
    format!("{document}\n")
}

fn value(note: &Note) -> Value {
    let mut value = serde_json::to_value(note).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("id".to_owned(), bead_id(&note.key).into());
    }
    value
}

fn standing(note: &Note) -> &'static str {
    match note.standing {
        Some(Standing::Unresolved) => "unresolved",
        Some(Standing::Resolved) => "resolved",
        None => "",
    }
}
