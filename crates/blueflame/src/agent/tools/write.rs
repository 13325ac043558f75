//! Write: a whole file, new or in the place of an old one.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Told;
use super::files::{self, Written};

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    file_path: PathBuf,
    content: String,
}

pub(super) fn definition() -> (String, Value, Value) {
    let description =
        "Writes a whole file; makes missing directories. For a change in a file, Edit costs less.";
    let properties = json!({"file_path": {"type": "string"}, "content": {"type": "string"}});
    (description.to_owned(), properties, json!(["file_path", "content"]))
}

pub(super) fn run(input: &Input) -> Told {
    let done = match files::write(&input.file_path, input.content.as_bytes())? {
        Written::Created => "created",
        Written::Replaced => "replaced",
    };
    Ok(format!("{done} {} ({} bytes)", input.file_path.display(), input.content.len()))
}
