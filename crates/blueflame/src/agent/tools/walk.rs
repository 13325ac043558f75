//! Walks through the files below a directory, as Glob and Grep do: what git
//! ignores is left out, hidden files are not, and nobody waits for ever.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;

/// How long a walk may take.
const LONGEST: Duration = Duration::from_secs(60);

/// Whether a walk came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Walked {
    All,
    /// The visitor had enough.
    Stopped,
    OutOfTime,
}

/// Shows each regular file, in the order of their names, until the visitor
/// says `false`.
pub(super) fn files(root: &Path, mut visit: impl FnMut(PathBuf) -> bool) -> Result<Walked, String> {
    if let Err(error) = std::fs::metadata(root) {
        return Err(format!("`{}` cannot be searched: {error}", root.display()));
    }
    let start = Instant::now();
    let walk = WalkBuilder::new(root)
        .hidden(false)
        // Ignore files count outside of a repository too; those of the person
        // who happens to run this do not.
        .require_git(false)
        .git_global(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    // What cannot be read is as good as not there.
    for entry in walk.flatten() {
        if start.elapsed() > LONGEST {
            return Ok(Walked::OutOfTime);
        }
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && !visit(entry.into_path()) {
            return Ok(Walked::Stopped);
        }
    }
    Ok(Walked::All)
}

/// What the model should know about a walk that was cut short.
pub(super) fn note(walked: Walked) -> &'static str {
    match walked {
        Walked::All | Walked::Stopped => "",
        Walked::OutOfTime => "\n(stopped after 60 s; search a smaller directory)",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_git_ignores_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            (".gitignore", "target\n*.log\n"),
            (".git/config", ""),
            (".github/ci.yml", ""),
            ("target/out", ""),
            ("src/a.rs", ""),
            ("src/b.log", ""),
            ("z", ""),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
        let mut seen = Vec::new();
        let walked = files(dir.path(), |path| {
            seen.push(path.strip_prefix(dir.path()).unwrap().display().to_string());
            true
        });
        assert_eq!(walked, Ok(Walked::All));
        assert_eq!(seen, [".github/ci.yml", ".gitignore", "src/a.rs", "z"]);
        assert!(files(&dir.path().join("none"), |_| true).is_err());
    }
}
