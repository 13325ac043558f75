//! Skills in the instructions of those that have no tool for them, or one that
//! would list others as well. Reading a file is all that they need.

use std::fmt::Write as _;
use std::path::Path;

use super::{Ground, Order};
use crate::skills::Offered;

/// The instructions with a list of the skills, if there are some.
pub fn with_skills(text: &str, order: &Order, ground: &Ground<'_>, reader: &str) -> String {
    match ground.skills(order) {
        Some(folder) => format!("{}\n\n{}", text.trim_end(), list(order, &folder, reader)),
        None => text.to_owned(),
    }
}

fn list(order: &Order, folder: &Path, reader: &str) -> String {
    let mut text = format!(
        "Skills are ways of working that others wrote down. Before you do what one of these is \
         for, read its file with {reader} and follow it, as far as it does not contradict your \
         other instructions:\n"
    );
    for Offered { name, description, .. } in &order.skills {
        let path = folder.join(name.as_str()).join("SKILL.md");
        let _ = writeln!(text, "- {name}: {description} ({})", path.display());
    }
    text
}
