//! Where people have skills.

use std::env;
use std::path::{Path, PathBuf};

use blueflame_core::config::Config;

use super::superpowers;

/// Where a person's own things are.
#[derive(Clone, Debug)]
pub struct Person {
    pub home: PathBuf,
    /// Settings of claude.
    pub claude: PathBuf,
    /// Settings of codex.
    pub codex: PathBuf,
}

impl Person {
    /// The one who runs this program.
    pub fn here() -> Person {
        let home = env::home_dir().unwrap_or_default();
        let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty());
        let place = |variable: &str, usual: &str| {
            named(variable).map_or_else(|| home.join(usual), PathBuf::from)
        };
        Person {
            claude: place("CLAUDE_CONFIG_DIR", ".claude"),
            codex: place("CODEX_HOME", ".codex"),
            home,
        }
    }
}

/// A directory with skills in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// In words.
    pub name: String,
    pub path: PathBuf,
    /// What nothing in it may lead out of; `None` where links are the person's own.
    pub within: Option<PathBuf>,
}

/// Where a repository may bring skills along.
const IN_REPOSITORY: [&str; 4] =
    [".claude/skills", ".agents/skills", ".codex/skills", ".opencode/skills"];

/// All places that exist, those that come first first.
pub fn all(config: &Config, repository: &Path, person: &Person) -> Vec<Place> {
    let own = |name: String, path: PathBuf| Place { name, path, within: None };
    let named = config.skills.folders.iter().map(|folder| {
        let path = match folder.strip_prefix("~/") {
            Some(rest) => person.home.join(rest),
            None => PathBuf::from(folder),
        };
        own(folder.clone(), path)
    });
    let shown = |path: PathBuf| {
        let below = path.strip_prefix(&person.home).map(|rest| format!("~/{}", rest.display()));
        own(below.unwrap_or_else(|_| path.display().to_string()), path)
    };
    let usual = [
        person.claude.join("skills"),
        person.home.join(".agents/skills"),
        person.codex.join("skills"),
    ];
    let plugin =
        superpowers::find(&person.claude).map(|found| own(found.name, found.path.join("skills")));
    let brought = IN_REPOSITORY.iter().filter(|_| config.skills.trust_repository).map(|folder| {
        let (name, path) = (format!("the repository's {folder}"), repository.join(folder));
        Place { name, path, within: Some(repository.to_owned()) }
    });
    let all = named.chain(usual.map(shown)).chain(plugin).chain(brought);
    all.filter(|place| place.path.is_dir()).collect()
}
