//! Glob: the files whose names fit a pattern.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Told, paths, walk};

/// Names that are shown; of the others only how many there are.
const MOST: usize = 200;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    pattern: String,
    path: Option<PathBuf>,
}

pub(super) fn definition() -> (String, Value, Value) {
    let description = "Lists files by name, e.g. `src/**/*.rs`; a pattern without a slash fits in every directory. What git ignores is left out.";
    let properties = json!({
        "pattern": {"type": "string"},
        "path": {"type": "string", "description": "directory to look in"},
    });
    (description.to_owned(), properties, json!(["pattern"]))
}

pub(super) fn run(input: &Input, cwd: &Path) -> Told {
    let root = input.path.as_deref().unwrap_or(cwd);
    let wanted = Pattern::new(&input.pattern, root)?;
    let (mut names, mut more) = (Vec::new(), 0);
    let walked = walk::files(root, |path| {
        if wanted.fits(path.strip_prefix(root).unwrap_or(&path)) {
            if names.len() < MOST {
                names.push(paths::shown(&path, cwd));
            } else {
                more += 1;
            }
        }
        true
    })?;
    if names.is_empty() {
        return Ok(format!("no files fit{}", walk::note(walked)));
    }
    let mut text = names.join("\n");
    if more > 0 {
        let _ = write!(text, "\n({more} more files fit; use a narrower pattern)");
    }
    text.push_str(walk::note(walked));
    Ok(text)
}

/// A pattern for paths below a directory.
#[derive(Debug)]
pub(super) struct Pattern {
    glob: GlobMatcher,
    /// Without a slash, a pattern is about the name alone.
    name_only: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str, root: &Path) -> Result<Self, String> {
        // Models like to write the whole path.
        let relative = Path::new(pattern).strip_prefix(root).ok().and_then(Path::to_str);
        let relative = relative.unwrap_or(pattern);
        let relative = relative.strip_prefix("./").unwrap_or(relative);
        if relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
            return Err(format!(
                "the pattern `{pattern}` leads out of `{}`; name another directory as path",
                root.display()
            ));
        }
        let glob = GlobBuilder::new(relative)
            .literal_separator(true)
            .build()
            .map_err(|error| format!("the pattern cannot be read: {error}"))?;
        Ok(Pattern { glob: glob.compile_matcher(), name_only: !relative.contains('/') })
    }

    /// Whether a path, seen from the directory, fits.
    pub(super) fn fits(&self, path: &Path) -> bool {
        match path.file_name() {
            Some(name) if self.name_only => self.glob.is_match(name),
            _ => self.glob.is_match(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names_or_paths() {
        for (pattern, path, fits) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/deep/main.rs", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/deep/main.rs", false),
            ("src/**/*.rs", "src/main.rs", true),
            ("**/*.rs", "a/b/c.rs", true),
            ("./src/*", "src/x", true),
            ("/w/src/*", "src/x", true),
            ("*.{js,ts}", "x.ts", true),
            ("a", "ba", false),
        ] {
            let pattern = Pattern::new(pattern, Path::new("/w")).unwrap();
            assert_eq!(pattern.fits(Path::new(path)), fits, "{pattern:?} {path}");
        }
        for bad in ["/etc/*", "../*", "a/../../b", "[", "{a"] {
            assert!(Pattern::new(bad, Path::new("/w")).is_err(), "{bad}");
        }
    }

    #[test]
    fn many_files_are_counted_and_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MOST + 5 {
            std::fs::write(dir.path().join(format!("{number:04}.txt")), "").unwrap();
        }
        let input = Input { pattern: "*.txt".to_owned(), path: None };
        let text = run(&input, dir.path()).unwrap();
        assert!(text.starts_with("0000.txt\n0001.txt\n"), "{text}");
        assert!(text.ends_with("0199.txt\n(5 more files fit; use a narrower pattern)"), "{text}");
        let none = Input { pattern: "*.rs".to_owned(), path: None };
        assert_eq!(run(&none, dir.path()).unwrap(), "no files fit");
    }
}
