//! Strict YAML: read it and report every problem at once, or write it.
//!
//! Reading goes in two steps. [`Document::parse`] turns bytes into a tree that
//! knows where each piece stands in the text; [`Document::read`] fills a serde
//! type from that tree and keeps going after a mistake, so that one run shows
//! them all. JSON is accepted by the same door.
//!
//! What makes YAML surprising is refused: anchors, aliases, merge keys, tags,
//! several documents in one file and keys written twice.

mod access;
mod json;
mod number;
mod path;
mod problem;
mod read;
mod spanned;
mod suggest;
mod syntax;
mod text;
mod tree;
mod values;
mod write;

#[cfg(test)]
mod tests;

pub use path::path_below;
pub use problem::{Problem, Problems, Severity, Span};
pub use spanned::{DurationText, Spanned};
pub use suggest::{closest, one_of};
pub use text::Limits;
pub use tree::{Entry, Kind, Node};
pub use write::to_string;

use serde::de::DeserializeOwned;

/// A file that was read into a tree; what it means is not known yet.
#[derive(Debug)]
pub struct Document {
    root: Node,
    problems: Problems,
}

impl Document {
    /// Reads the text. What is refused in it is remembered and comes out of
    /// [`read`](Self::read) together with everything else; only a text without
    /// any structure ends here.
    pub fn parse(bytes: &[u8], limits: Limits) -> Result<Self, Vec<Problem>> {
        let problems = Problems::default();
        let root = text::decode(bytes, limits).and_then(|text| {
            json::parse(text, limits, &problems)
                .unwrap_or_else(|| tree::parse(text, limits, &problems))
        });
        match root {
            Ok(root) => Ok(Document { root, problems }),
            Err(problem) => {
                problems.push(*problem);
                Err(problems.into_sorted())
            }
        }
    }

    /// Fills a type from the tree. The second part is empty exactly when the
    /// value can be trusted; `None` means that not even a placeholder exists.
    pub fn read<T: DeserializeOwned>(self) -> (Option<T>, Problems) {
        let value = read::read(&self.root, &self.problems);
        (value, self.problems)
    }

    /// The whole file as a tree, for what no serde type can describe.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The value of a key at the top of the file, as it stands there.
    pub fn value(&self, key: &str) -> Option<&Node> {
        let Kind::Mapping(entries) = &self.root.kind else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Whether the file consists of `key: value` lines.
    pub fn is_mapping(&self) -> bool {
        matches!(self.root.kind, Kind::Mapping(_))
    }

    /// The place of a key, if the file has it: `["sandbox", "mode"]`.
    pub fn key(&self, path: &[&str]) -> Option<Span> {
        self.root.key(path)
    }
}
