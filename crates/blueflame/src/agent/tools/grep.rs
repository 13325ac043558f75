//! Grep: lines that fit a regular expression.

use std::path::{Path, PathBuf};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::glob::Pattern;
use super::{Told, files, paths, walk};

/// Lines of the answer unless told otherwise.
const LINES: usize = 200;
/// Of a longer line only this much is shown.
const LONGEST_LINE: usize = 500;
/// All that is shown at once, about.
const LONGEST: usize = 60_000;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    pattern: String,
    path: Option<PathBuf>,
    glob: Option<String>,
    #[serde(default)]
    output_mode: Mode,
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    #[serde(default = "yes", rename = "-n")]
    numbers: bool,
    head_limit: Option<usize>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

pub(super) fn definition() -> (String, Value, Value) {
    let description = format!(
        "Searches files line by line with a regular expression (Rust syntax). What git ignores is left out. Shows the first {LINES} lines unless head_limit says otherwise."
    );
    let properties = json!({
        "pattern": {"type": "string"},
        "path": {"type": "string", "description": "file or directory"},
        "glob": {"type": "string", "description": "only files that fit, e.g. *.rs"},
        "output_mode": {"type": "string", "enum": ["files_with_matches", "content", "count"]},
        "-i": {"type": "boolean", "description": "ignore case"},
        "-n": {"type": "boolean", "description": "line numbers (default true)"},
        "head_limit": {"type": "integer"},
    });
    (description, properties, json!(["pattern"]))
}

pub(super) fn run(input: &Input, cwd: &Path) -> Told {
    let root = input.path.as_deref().unwrap_or(cwd);
    let regex = RegexBuilder::new(&input.pattern)
        .case_insensitive(input.ignore_case)
        .build()
        .map_err(|error| format!("the pattern cannot be read: {error}"))?;
    let wanted = input.glob.as_deref().map(|glob| Pattern::new(glob, root)).transpose()?;
    let most = input.head_limit.unwrap_or(LINES).max(1);
    let mut found = Found { lines: Vec::new(), bytes: 0, most, full: false };
    let walked = walk::files(root, |path| {
        // Seen from itself, a single file has no name.
        let below = path.strip_prefix(root).ok().filter(|below| *below != Path::new(""));
        let below = below.unwrap_or(&path);
        if wanted.as_ref().is_some_and(|wanted| !wanted.fits(below)) {
            return true;
        }
        // What cannot be read, or is no text, holds no lines.
        if let Ok(bytes) = files::read(&path)
            && !files::is_binary(&bytes)
        {
            search(&bytes, &regex, &paths::shown(&path, cwd), input, &mut found);
        }
        !found.full
    })?;
    if found.lines.is_empty() {
        return Ok(format!("nothing was found{}", walk::note(walked)));
    }
    let mut text = found.lines.join("\n");
    if found.full {
        text.push_str("\n(there is more; narrow the search, or raise head_limit)");
    }
    text.push_str(walk::note(walked));
    Ok(text)
}

/// The lines of the answer, as many as are wanted.
struct Found {
    lines: Vec<String>,
    bytes: usize,
    most: usize,
    /// There was a line more than is wanted.
    full: bool,
}

impl Found {
    fn add(&mut self, line: String) {
        if self.lines.len() >= self.most || self.bytes > LONGEST {
            self.full = true;
        } else {
            self.bytes += line.len();
            self.lines.push(line);
        }
    }
}

fn search(bytes: &[u8], regex: &Regex, name: &str, input: &Input, found: &mut Found) {
    if bytes.is_empty() {
        return;
    }
    // After the last line break there is no line.
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = text.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut fitting = lines.enumerate().filter(|(_, line)| regex.is_match(line));
    match input.output_mode {
        Mode::FilesWithMatches => {
            if fitting.next().is_some() {
                found.add(name.to_owned());
            }
        }
        Mode::Count => match fitting.count() {
            0 => {}
            count => found.add(format!("{name}:{count}")),
        },
        Mode::Content => {
            for (at, line) in fitting {
                let text = shortened(&String::from_utf8_lossy(line));
                found.add(if input.numbers {
                    format!("{name}:{}:{text}", at + 1)
                } else {
                    format!("{name}:{text}")
                });
                if found.full {
                    return;
                }
            }
        }
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn grep(dir: &Path, input: Value) -> Told {
        run(&Input::deserialize(input).unwrap(), dir)
    }

    #[test]
    fn lines_files_and_counts_are_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("a.rs"), "fn one() {}\r\nfn two() {}\n").unwrap();
        fs::write(dir.path().join("sub/b.txt"), "FN three\n").unwrap();
        fs::write(dir.path().join("bin"), "fn\0").unwrap();
        fs::write(dir.path().join("empty"), "").unwrap();
        fs::write(dir.path().join("long"), "x".repeat(900)).unwrap();
        for (input, expected) in [
            (json!({"pattern": "fn"}), "a.rs"),
            (json!({"pattern": "fn", "-i": true}), "a.rs\nsub/b.txt"),
            (json!({"pattern": "fn", "-i": true, "output_mode": "count"}), "a.rs:2\nsub/b.txt:1"),
            (
                json!({"pattern": r"\{\}$", "output_mode": "content"}),
                "a.rs:1:fn one() {}\na.rs:2:fn two() {}",
            ),
            (
                json!({"pattern": "t", "output_mode": "content", "-n": false, "glob": "*.txt"}),
                "sub/b.txt:FN three",
            ),
            (
                json!({"pattern": "fn", "output_mode": "content", "head_limit": 1}),
                "a.rs:1:fn one() {}\n(there is more; narrow the search, or raise head_limit)",
            ),
            (json!({"pattern": "^$"}), "nothing was found"),
            (json!({"pattern": "two", "path": dir.path().join("a.rs")}), "a.rs"),
        ] {
            assert_eq!(grep(dir.path(), input.clone()).as_deref(), Ok(expected), "{input}");
        }
        let long = grep(dir.path(), json!({"pattern": "xxx", "output_mode": "content"})).unwrap();
        assert!(long.ends_with("x…") && long.len() < 600, "{long}");
        assert!(
            grep(dir.path(), json!({"pattern": "("}))
                .unwrap_err()
                .starts_with("the pattern cannot be read")
        );
    }
}
