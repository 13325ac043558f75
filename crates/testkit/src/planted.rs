//! The list of bugs that the tests have to notice.
//!
//! `tests/planted-bugs.toml` holds them, the program `planted_bugs` plants one
//! after the other in a copy of the workspace and runs the tests there.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where the list is, seen from the root of the workspace.
pub const LIST: &str = "tests/planted-bugs.toml";

/// One deliberate mistake.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    pub name: String,
    /// The file it goes into, seen from the root of the workspace.
    pub file: PathBuf,
    /// Text that occurs exactly once in the file.
    pub find: String,
    pub replace: String,
    /// What would happen to someone if it went unnoticed.
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    bug: Vec<Bug>,
}

impl Bug {
    /// The file's text with the bug in it, or how often its place occurs.
    pub fn plant(&self, text: &str) -> Result<String, usize> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            places => Err(places),
        }
    }
}

/// Reads the list from the text of its file.
pub fn read(text: &str) -> Result<Vec<Bug>, toml::de::Error> {
    toml::from_str(text).map(|list: List| list.bug)
}

/// The root of the workspace that this program was built from.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
