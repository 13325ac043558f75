//! What `git diff-tree --raw --numstat -p -z` prints, read strictly.
//!
//! Files are matched with their lines by the order in which git names them in
//! each of the three parts, never by the paths in the patch. Hunks are read by
//! the counts in their headers, so that no line of a file is taken for
//! anything else. Whatever does not fit exactly is an error.

use blueflame_core::ids::Oid;
use blueflame_core::inspection::{FileKind, Line, Lines};

/// A file in the raw part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub path: String,
    pub before: Option<(FileKind, Oid)>,
    pub after: Option<(FileKind, Oid)>,
}

impl Entry {
    /// git writes a file that becomes something else as a deletion and an
    /// addition.
    fn sections(&self) -> usize {
        let class = |side: &Option<(FileKind, Oid)>| {
            side.as_ref().map(|(kind, _)| match kind {
                FileKind::Plain | FileKind::Executable => 0,
                FileKind::Link => 1,
                FileKind::Submodule => 2,
            })
        };
        match (class(&self.before), class(&self.after)) {
            (Some(before), Some(after)) if before != after => 2,
            _ => 1,
        }
    }
}

/// What could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(&'static str);

type Read<T> = Result<T, Unreadable>;

/// Reads the raw part alone.
pub(super) fn entries(bytes: &[u8]) -> Read<Vec<Entry>> {
    let mut rest = bytes;
    let entries = raw_part(&mut rest)?;
    if rest.is_empty() { Ok(entries) } else { Err(Unreadable("more than files")) }
}

/// Reads all three parts.
pub(super) fn changes(bytes: &[u8]) -> Read<Vec<(Entry, Lines)>> {
    let mut rest = bytes;
    let entries = raw_part(&mut rest)?;
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        let counts = field(&mut rest, 0)?;
        let lines = Lines { binary: counts.starts_with(b"-\t-\t"), ..Lines::default() };
        found.push((entry, lines));
    }
    if found.is_empty() {
        return if rest.is_empty() { Ok(found) } else { Err(Unreadable("lines without files")) };
    }
    if !field(&mut rest, 0)?.is_empty() {
        return Err(Unreadable("counts for more than the files"));
    }
    let mut patch = Patch { rest };
    for (entry, lines) in &mut found {
        for _ in 0..entry.sections() {
            patch.section(lines)?;
        }
    }
    if patch.rest.is_empty() { Ok(found) } else { Err(Unreadable("lines of more than the files")) }
}

fn raw_part(rest: &mut &[u8]) -> Read<Vec<Entry>> {
    let mut entries = Vec::new();
    while let Some(after) = rest.strip_prefix(b":") {
        *rest = after;
        let about = std::str::from_utf8(field(rest, 0)?).map_err(|_| Unreadable("a file"))?;
        let path = String::from_utf8_lossy(field(rest, 0)?).into_owned();
        let words: Vec<&str> = about.split(' ').collect();
        let [mode_before, mode_after, before, after, _status] = words[..] else {
            return Err(Unreadable("a file without its five words"));
        };
        let before = side(mode_before, before)?;
        let after = side(mode_after, after)?;
        entries.push(Entry { path, before, after });
    }
    Ok(entries)
}

fn side(mode: &str, object: &str) -> Read<Option<(FileKind, Oid)>> {
    let kind = match mode {
        "000000" => return Ok(None),
        "120000" => FileKind::Link,
        "160000" => FileKind::Submodule,
        "100755" => FileKind::Executable,
        // Old repositories hold files that the group may write.
        "100644" | "100664" => FileKind::Plain,
        _ => return Err(Unreadable("a mode")),
    };
    let object = Oid::new(object).map_err(|_| Unreadable("an object name"))?;
    Ok(Some((kind, object)))
}

/// What comes before the next `end`, which is skipped.
fn field<'b>(rest: &mut &'b [u8], end: u8) -> Read<&'b [u8]> {
    let at = rest.iter().position(|byte| *byte == end).ok_or(Unreadable("a part without end"))?;
    let (field, after) = rest.split_at(at);
    *rest = &after[1..];
    Ok(field)
}

/// How much of a file tells what it is.
const HEAD: usize = 64;

struct Patch<'b> {
    rest: &'b [u8],
}

impl<'b> Patch<'b> {
    /// A line with its end, which the last one of a file always has here.
    fn line(&mut self) -> Read<&'b [u8]> {
        field(&mut self.rest, b'\n')
    }

    fn section(&mut self, lines: &mut Lines) -> Read<()> {
        if !self.line()?.starts_with(b"diff --git ") {
            return Err(Unreadable("a section without a head"));
        }
        while !self.rest.is_empty() && !self.rest.starts_with(b"diff --git ") {
            let line = self.line()?;
            if line.starts_with(b"@@ ") {
                self.hunk(line, lines)?;
            }
        }
        Ok(())
    }

    fn hunk(&mut self, head: &[u8], lines: &mut Lines) -> Read<()> {
        let [removed, added] = ranges(head).ok_or(Unreadable("the head of a hunk"))?;
        for (range, sign) in [(removed, b'-'), (added, b'+')] {
            for place in 0..range.count {
                let Some((first, text)) = self.line()?.split_first() else {
                    return Err(Unreadable("a line without a sign"));
                };
                if *first != sign {
                    return Err(Unreadable("a line with another sign"));
                }
                lines.binary |= text.contains(&0);
                let number = range.start.saturating_add(place);
                if sign == b'+' && range.start == 1 && lines.head.len() < HEAD {
                    lines.head.extend(text.iter().take(HEAD));
                    lines.head.push(b'\n');
                }
                let text = String::from_utf8_lossy(text).trim_end_matches('\r').to_owned();
                let line = Line { number, text };
                if sign == b'+' { lines.added.push(line) } else { lines.removed.push(line) }
            }
            if range.count > 0 && self.rest.starts_with(b"\\ ") {
                self.line()?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Range {
    start: u32,
    count: u32,
}

/// `@@ -12,3 +14 @@`: what was removed where, and what was added where.
fn ranges(head: &[u8]) -> Option<[Range; 2]> {
    let mut words = head.split(|byte| *byte == b' ').skip(1);
    let mut range = |sign: &str| {
        let word = std::str::from_utf8(words.next()?).ok()?.strip_prefix(sign)?;
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some(Range { start: start.parse().ok()?, count: count.parse().ok()? })
    };
    Some([range("-")?, range("+")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    fn printed(name: &str, patch: &str) -> Vec<u8> {
        let raw = format!(":100644 100644 {A} {B} M\0{name}\0");
        format!("{raw}1\t1\t{name}\0\0{patch}").into_bytes()
    }

    fn numbered(lines: &[Line]) -> Vec<(u32, &str)> {
        lines.iter().map(|line| (line.number, line.text.as_str())).collect()
    }

    #[test]
    fn lines_come_with_their_numbers_and_never_end_a_hunk_early() {
        let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n\
                     @@ -3 +3,4 @@ fn main\n-old\n+diff --git a/y b/y\n++++ b/y\n+@@ -1 +1 @@\n+\\ no\n\
                     \\ No newline at end of file\n@@ -9,2 +12,0 @@\n-- a\n---\n";
        let found = changes(&printed("x", patch)).unwrap();
        let [(entry, lines)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(entry.path, "x");
        let added = [(3, "diff --git a/y b/y"), (4, "+++ b/y"), (5, "@@ -1 +1 @@"), (6, "\\ no")];
        assert_eq!(numbered(&lines.added), added);
        assert_eq!(numbered(&lines.removed), [(3, "old"), (9, "- a"), (10, "--")]);
        assert!(!lines.binary);
        assert!(lines.head.is_empty(), "the first line is as it was");
    }

    #[test]
    fn the_first_bytes_come_as_they_are() {
        let mut bytes = printed("x", "diff --git a/x b/x\n@@ -0,0 +1,2 @@\n");
        bytes.extend(b"+\x89PNG\r\n+\x1a\0\xff\n");
        let found = changes(&bytes).unwrap();
        assert_eq!(found[0].1.head, b"\x89PNG\r\n\x1a\0\xff\n");
        assert!(found[0].1.binary);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let head = "diff --git a/x b/x\n";
        for patch in [
            "",
            "nothing\n",
            "diff --git a/x b/x",
            &format!("{head}@@ -1 +1 @@\n-a\n"),
            &format!("{head}@@ -1 +1 @@\n+a\n-b\n"),
            &format!("{head}@@ -1 +1,9 @@\n-a\n+b\n"),
            &format!("{head}@@ nonsense @@\n-a\n+b\n"),
            &format!("{head}{head}"),
        ] {
            assert!(changes(&printed("x", patch)).is_err(), "{patch}");
        }
        for bytes in ["x", ":100644\0x\0", &format!(":100000 100644 {A} {B} M\0x\0")] {
            assert!(changes(bytes.as_bytes()).is_err(), "{bytes}");
            assert!(entries(bytes.as_bytes()).is_err(), "{bytes}");
        }
        assert_eq!(changes(b""), Ok(Vec::new()));
    }
}
