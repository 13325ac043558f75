//! The copy that one agent gets: its skills and nothing else. No hooks, no
//! commands, no settings.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::Skill;

/// The directory of the copy, in that of the attempt.
pub const SET: &str = "skill-set";

/// The directory in it that has the skills, by name.
pub const FOLDER: &str = "skills";

/// What claude calls the plugin that the copy is to it: the policy knows it.
const PLUGIN: &str = "blueflame";

/// Writes the copy anew.
pub fn write(skills: &[Arc<Skill>], set: &Path) -> io::Result<()> {
    match fs::remove_dir_all(set) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if skills.is_empty() {
        return Ok(());
    }
    let about = json!({"name": PLUGIN, "version": "1.0.0", "description": "skills for this role"});
    put(&set.join(".claude-plugin/plugin.json"), about.to_string().as_bytes())?;
    for skill in skills {
        let folder = set.join(FOLDER).join(skill.name.as_str());
        for (path, content) in &skill.files {
            put(&folder.join(path), content)?;
        }
    }
    Ok(())
}

fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
    file.write_all(content)
}
