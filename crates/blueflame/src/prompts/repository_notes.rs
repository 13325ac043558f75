//! What the repository tells agents: `CLAUDE.md` and `AGENTS.md`.
//!
//! Agents run with their own settings switched off, so these files reach them
//! through the prompt. Only regular files at the root of the workspace are
//! read; a symbolic link has to end at a Markdown file inside the workspace, so
//! that a repository cannot send other files of the machine to a model.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The files, in the order in which agents see them.
pub const NOTE_FILES: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];

/// More than is ever shown; a longer file is read up to here.
const MOST_READ: u64 = 1 << 20;

/// What the repository wants agents to know.
#[derive(Clone, Debug, Default)]
pub struct RepositoryNotes {
    pub notes: Vec<Note>,
    /// Files that are there and were not read, for the person to know.
    pub unread: Vec<(&'static str, Unread)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The name of the file.
    pub file: &'static str,
    pub text: String,
}

/// Why a file was left alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("it is a link out of the workspace")]
    LeavesTheWorkspace,
    #[error("it is a link to something that is no Markdown file")]
    NotMarkdown,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it could not be read: {0}")]
    Failed(String),
}

impl RepositoryNotes {
    /// Reads the files at the root of a workspace. What one of them says in
    /// full is not said again by the other.
    pub fn read(root: &Path) -> Self {
        let mut found = RepositoryNotes::default();
        for file in NOTE_FILES {
            match read(root, file) {
                Ok(Some(text)) => found.notes.push(Note { file, text }),
                Ok(None) => {}
                Err(why) => found.unread.push((file, why)),
            }
        }
        found.notes = without_repetition(found.notes);
        found
    }
}

/// The text of one file; `None` if there is none.
fn read(root: &Path, file: &str) -> Result<Option<String>, Unread> {
    let failed = |error: io::Error| Unread::Failed(error.to_string());
    let root = root.canonicalize().map_err(failed)?;
    let Some(inside) = resolve(&root, file)? else { return Ok(None) };
    let file = open(&root, &inside).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Unread::NotAFile);
    }
    bounded(file, metadata.len()).map(Some).map_err(failed)
}

/// Where the file really is below the root, if it may be read.
fn resolve(root: &Path, file: &str) -> Result<Option<PathBuf>, Unread> {
    let failed = |error: io::Error| Unread::Failed(error.to_string());
    let written = root.join(file);
    match written.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.is_file() => return Ok(Some(file.into())),
        Ok(found) if !found.is_symlink() => return Err(Unread::NotAFile),
        Ok(_) => {}
    }
    let path = written.canonicalize().map_err(failed)?;
    let Ok(inside) = path.strip_prefix(root) else { return Err(Unread::LeavesTheWorkspace) };
    let in_git = inside.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    let markdown = inside.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    if markdown && !in_git { Ok(Some(inside.to_owned())) } else { Err(Unread::NotMarkdown) }
}

/// Opens name by name and never through a link, so that nobody can put one
/// there after the look at it. A pipe does not keep us waiting.
fn open(root: &Path, inside: &Path) -> io::Result<File> {
    let plain = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(root, plain | OFlags::DIRECTORY, Mode::empty())?;
    let mut names = inside.iter().peekable();
    while let Some(name) = names.next() {
        let kind = if names.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() };
        at = rustix::fs::openat(&at, name, plain | kind, Mode::empty())?;
    }
    Ok(File::from(at))
}

fn bounded(file: File, length: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST_READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match length.checked_sub(MOST_READ) {
        None | Some(0) => text.into_owned(),
        Some(rest) => format!("{text}\n[{rest} bytes left out here]"),
    })
}

/// Drops a file that only repeats, or only includes, the other one.
fn without_repetition(notes: Vec<Note>) -> Vec<Note> {
    let [one, other] = notes.as_slice() else { return notes };
    if repeats(one, other) {
        vec![other.clone()]
    } else if repeats(other, one) {
        vec![one.clone()]
    } else {
        notes
    }
}

/// Whether a note says nothing that is not in the other one.
fn repeats(note: &Note, other: &Note) -> bool {
    let include = format!("@{}", other.file);
    let is_include =
        |line: &str| line.trim().trim_start_matches("@./") == other.file || line.trim() == include;
    let own: Vec<&str> = note.text.lines().filter(|line| !is_include(line)).collect();
    let own = own.join("\n");
    let said: Vec<&str> = other.text.lines().collect();
    said.join("\n").contains(own.trim())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn files(texts: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in texts {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        dir
    }

    fn names(notes: &RepositoryNotes) -> Vec<&'static str> {
        notes.notes.iter().map(|note| note.file).collect()
    }

    #[test]
    fn both_files_are_read_and_what_is_said_twice_is_said_once() {
        for (claude, agents, expected) in [
            ("use tabs", "use spaces", vec!["CLAUDE.md", "AGENTS.md"]),
            ("use tabs\n", "use tabs", vec!["AGENTS.md"]),
            ("@AGENTS.md\n", "use tabs", vec!["AGENTS.md"]),
            ("@./AGENTS.md\n", "use tabs", vec!["AGENTS.md"]),
            ("@AGENTS.md\nuse spaces\n", "use tabs", vec!["CLAUDE.md", "AGENTS.md"]),
            ("a\r\nb\r\nc\r\n", "b\nc", vec!["CLAUDE.md"]),
            ("", "use tabs", vec!["AGENTS.md"]),
        ] {
            let dir = files(&[("CLAUDE.md", claude), ("AGENTS.md", agents)]);
            let notes = RepositoryNotes::read(dir.path());
            assert_eq!(names(&notes), expected, "{claude:?} and {agents:?}");
            assert_eq!(notes.unread, []);
        }
        let none = RepositoryNotes::read(files(&[]).path());
        assert!(none.notes.is_empty() && none.unread.is_empty());
    }

    #[test]
    fn a_link_stays_inside_and_ends_at_markdown() {
        let outside = files(&[("secret.md", "key")]);
        let root = |target: &Path| {
            let dir = files(&[("real.md", "rules"), (".env", "SECRET=1")]);
            std::fs::create_dir(dir.path().join(".git")).unwrap();
            std::fs::write(dir.path().join(".git/x.md"), "x").unwrap();
            symlink(target, dir.path().join("AGENTS.md")).unwrap();
            dir
        };
        for (target, why) in [
            (outside.path().join("secret.md"), Unread::LeavesTheWorkspace),
            (PathBuf::from("/etc/passwd"), Unread::LeavesTheWorkspace),
            (PathBuf::from(".env"), Unread::NotMarkdown),
            (PathBuf::from(".git/x.md"), Unread::NotMarkdown),
        ] {
            let dir = root(&target);
            let notes = RepositoryNotes::read(dir.path());
            assert_eq!(notes.unread, [("AGENTS.md", why)], "{}", target.display());
            assert!(notes.notes.is_empty());
        }
        let dir = root(Path::new("real.md"));
        let notes = RepositoryNotes::read(dir.path());
        assert_eq!(notes.notes, [Note { file: "AGENTS.md", text: "rules".into() }]);
        let dir = root(Path::new("docs/real.md"));
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("docs/real.md"), "deeper").unwrap();
        let notes = RepositoryNotes::read(dir.path());
        assert_eq!(notes.notes, [Note { file: "AGENTS.md", text: "deeper".into() }]);
        // What was put in the way between the look and the opening.
        assert!(open(dir.path(), Path::new("AGENTS.md")).is_err());
        symlink("docs", dir.path().join("other")).unwrap();
        assert!(open(dir.path(), Path::new("other/real.md")).is_err());
        let dir = root(Path::new("gone.md"));
        let notes = RepositoryNotes::read(dir.path());
        assert!(matches!(notes.unread[..], [("AGENTS.md", Unread::Failed(_))]));
    }

    #[test]
    fn a_pipe_does_not_keep_us_waiting() {
        let dir = files(&[]);
        let status =
            std::process::Command::new("mkfifo").arg(dir.path().join("CLAUDE.md")).status();
        assert!(status.unwrap().success());
        let notes = RepositoryNotes::read(dir.path());
        assert_eq!(notes.unread, [("CLAUDE.md", Unread::NotAFile)]);
        open(dir.path(), Path::new("CLAUDE.md")).unwrap();
    }

    #[test]
    fn what_is_no_file_is_left_alone_and_what_is_no_text_is_read_all_the_same() {
        let dir = files(&[]);
        std::fs::create_dir(dir.path().join("CLAUDE.md")).unwrap();
        std::fs::write(dir.path().join("AGENTS.md"), b"a\xffb").unwrap();
        let notes = RepositoryNotes::read(dir.path());
        assert_eq!(notes.unread, [("CLAUDE.md", Unread::NotAFile)]);
        assert_eq!(notes.notes, [Note { file: "AGENTS.md", text: "a\u{fffd}b".into() }]);
    }

    #[test]
    fn a_huge_file_is_read_up_to_a_limit() {
        let dir = files(&[("CLAUDE.md", &"x".repeat(3 << 20))]);
        let notes = RepositoryNotes::read(dir.path());
        assert!(notes.notes[0].text.ends_with("x\n[2097152 bytes left out here]"));
    }
}
