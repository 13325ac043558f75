//! Where the beads of a repository are: where `bd` itself would look for them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::git::Git;

const NAME: &str = ".beads";

/// The directory of a repository in which `bd` keeps its things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it is in: a checkout, or a repository that has none.
    pub home: PathBuf,
    pub directory: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Nothing,
    /// The directory is there, and no database in it.
    HalfMade,
    Ready,
}

impl Place {
    /// All checkouts share what is in the main one, except for one that has a
    /// database of its own. Files that git checked out are none.
    pub fn of(repository: &Path) -> Place {
        let own = Place::in_directory(repository);
        if own.is_of_its_own() {
            return own;
        }
        let git = Git::in_dir(repository);
        let (Ok(own_dir), Ok(common)) = (git.git_dir(), git.common_dir()) else { return own };
        if own_dir == common {
            return own;
        }
        match common.file_name() {
            Some(name) if name == ".git" => common.parent().map_or(own, Place::in_directory),
            _ => Place::in_directory(&common),
        }
    }

    pub fn in_directory(home: &Path) -> Place {
        Place { home: home.to_owned(), directory: home.join(NAME) }
    }

    pub fn standing(&self) -> Standing {
        if self.directory.symlink_metadata().is_err() {
            Standing::Nothing
        } else if self.is_of_its_own() || self.has_server() {
            Standing::Ready
        } else {
            Standing::HalfMade
        }
    }

    /// Whether a database is in it, or the word that it is elsewhere.
    fn is_of_its_own(&self) -> bool {
        let is_database = |name: &str| {
            name == "embeddeddolt"
                || name == "dolt"
                || name == "redirect"
                || (Path::new(name).extension().is_some_and(|it| it == "db")
                    && !name.contains(".backup")
                    && name != "vc.db")
        };
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_database))
    }

    /// Whether its settings name a server that has the database.
    fn has_server(&self) -> bool {
        #[derive(Deserialize)]
        struct Settings {
            #[serde(default)]
            dolt_mode: String,
        }
        let text = fs::read(self.directory.join("metadata.json")).unwrap_or_default();
        serde_json::from_slice(&text).is_ok_and(|it: Settings| it.dolt_mode == "server")
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, words: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@example.com"]);
        assert!(command.args(words).current_dir(directory).status().unwrap().success());
    }

    #[test]
    fn a_directory_without_a_database_is_half_made() {
        for (file, standing) in [
            ("", Standing::Nothing),
            (".beads/config.yaml", Standing::HalfMade),
            (".beads/issues.jsonl", Standing::HalfMade),
            (".beads/metadata.json", Standing::HalfMade),
            (".beads/vc.db", Standing::HalfMade),
            (".beads/beads.backup.db", Standing::HalfMade),
            (".beads/beads.db", Standing::Ready),
            (".beads/embeddeddolt/x", Standing::Ready),
            (".beads/dolt/x", Standing::Ready),
            (".beads/redirect", Standing::Ready),
        ] {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join(file);
            if !file.is_empty() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, "{}").unwrap();
            }
            let place = Place::in_directory(home.path());
            assert_eq!(place.standing(), standing, "{file}");
            if file.ends_with("metadata.json") {
                fs::write(&path, r#"{"dolt_mode":"server"}"#).unwrap();
                assert_eq!(place.standing(), Standing::Ready, "somewhere else");
            }
        }
    }

    #[test]
    fn linked_checkouts_share_what_the_main_one_has() {
        let root = tempfile::tempdir().unwrap();
        let main = root.path().canonicalize().unwrap().join("main");
        let linked = main.with_file_name("linked");
        fs::create_dir_all(main.join(".beads")).unwrap();
        git(&main, &["init", "-q"]);
        // What is committed comes with every checkout, and is no database.
        fs::write(main.join(".beads/config.yaml"), "").unwrap();
        git(&main, &["add", "."]);
        git(&main, &["commit", "-qm", "x"]);
        git(&main, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        assert!(linked.join(".beads/config.yaml").exists());
        assert_eq!(Place::of(&main), Place::in_directory(&main));
        assert_eq!(Place::of(&linked), Place::in_directory(&main));
        fs::create_dir(linked.join(".beads/embeddeddolt")).unwrap();
        assert_eq!(Place::of(&linked), Place::in_directory(&linked));

        let bare = main.with_file_name("bare");
        git(&main, &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        let other = main.with_file_name("other");
        git(&bare, &["worktree", "add", "-q", other.to_str().unwrap()]);
        assert_eq!(Place::of(&other), Place::in_directory(&bare));
    }
}
