//! Which diagnostics fit a commit: evidence for validators, that decides nothing
//! by itself. One whose program is not installed, or that works on a file that
//! is not there, would only be noise.

use std::ffi::OsStr;

use blueflame_core::ids::Oid;

use crate::git::objects::{Bounded, Objects};
use crate::git::{GitError, isolated};
use crate::search_path;

/// Programs that need one of these files beside them.
const NEEDS: [(&str, &[&str]); 10] = [
    ("cargo", &["Cargo.toml"]),
    ("go", &["go.mod", "go.work"]),
    ("golangci-lint", &["go.mod", "go.work"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("yarn", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("bun", &["package.json"]),
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("mvn", &["pom.xml"]),
];

/// What `sh` does itself.
const BUILT_IN: [&str; 10] = ["!", ".", ":", "[", "cd", "command", "exec", "export", "set", "test"];

/// The commands that can say something about a commit with these names at its
/// root, but for those that were run already.
pub fn fitting(
    commands: &[String],
    already_run: &[String],
    names: &[String],
    path: &OsStr,
) -> Vec<String> {
    let fits = |command: &&String| {
        let mut words = command.split_whitespace().filter(|word| !word.contains('='));
        let Some(program) = words.next() else { return false };
        let needs = NEEDS.iter().find(|(name, _)| *name == program);
        let has = |file: &&str| names.iter().any(|name| name == file);
        let installed = || {
            program.contains('/')
                || BUILT_IN.contains(&program)
                || search_path::find(program, path).is_some()
        };
        needs.is_none_or(|(_, files)| files.iter().any(has)) && installed()
    };
    let fresh = commands.iter().filter(|command| !already_run.contains(command));
    fresh.filter(fits).cloned().collect()
}

/// The names at the root of a commit.
pub async fn names_of(objects: &Objects, commit: &Oid) -> Result<Vec<String>, GitError> {
    let root = format!("{commit}^{{tree}}");
    let Bounded::Whole(tree) = isolated::read(objects, move |it| it.tree(&root)).await? else {
        // No program would find its file among so many.
        return Ok(Vec::new());
    };
    Ok(tree.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_what_can_say_something_is_run() {
        let bin = tempfile::tempdir().unwrap();
        for name in ["npm", "make", "lint"] {
            fs::write(bin.path().join(name), "").unwrap();
            fs::set_permissions(bin.path().join(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(bin.path().join("notes"), "no program").unwrap();
        for (command, fits) in [
            ("npm test", false),
            ("make test", true),
            ("FAST=1 make lint", true),
            ("go vet ./...", false),
            ("lint --all", true),
            ("notes", false),
            ("missing", false),
            ("./check.sh", true),
            ("! grep -r BROKEN src", true),
            ("make all", false),
            ("A=1", false),
        ] {
            let names = ["GNUmakefile".to_owned(), "src".to_owned()];
            let already = ["make all".to_owned()];
            let commands = [command.to_owned()];
            let found = fitting(&commands, &already, &names, bin.path().as_os_str());
            assert_eq!(!found.is_empty(), fits, "{command}");
        }
    }
}
