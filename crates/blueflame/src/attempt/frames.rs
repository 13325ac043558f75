//! An agent's output, cut into pieces of bounded size and kept.
//!
//! Whatever the agent writes, one line of any length and any bytes, memory
//! stays bounded: a line is kept in pieces, and one that is too long to be
//! understood is only counted.

use std::fs::File;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// The largest piece that is kept as one record.
const PIECE: usize = 256 << 10;

/// The longest line that is put together again.
pub const LONGEST_LINE: usize = 32 << 20;

/// A line of output, as whole as it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Whole(Vec<u8>),
    /// It was longer than [`LONGEST_LINE`]: this many bytes.
    TooLong(u64),
}

/// Puts lines together from what arrives.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
    /// Bytes of the line so far, held or not.
    length: u64,
}

impl Lines {
    /// The lines that end in these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.hold(part);
            if parts.peek().is_some() {
                lines.extend(self.end());
            }
        }
        lines
    }

    /// What is left when nothing more comes.
    pub fn end(&mut self) -> Option<Line> {
        let length = std::mem::take(&mut self.length);
        let held = std::mem::take(&mut self.held);
        match length {
            0 => None,
            _ if length > LONGEST_LINE as u64 => Some(Line::TooLong(length)),
            _ => Some(Line::Whole(held)),
        }
    }

    fn hold(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        if self.length > LONGEST_LINE as u64 {
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(part);
        }
    }
}

/// Which of the two streams something came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    Out,
    Err,
}

/// One record of the output file.
#[derive(Serialize)]
struct Record<'r> {
    /// Milliseconds since the start.
    ms: u64,
    from: From,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    /// In place of `text` when the bytes are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Whether the line goes on in the next record of this stream.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// The file that output is kept in.
#[derive(Debug)]
pub struct Kept {
    file: File,
    /// What may still be written.
    room: u64,
    dropped: u64,
}

impl Kept {
    pub fn new(file: File, room: u64) -> Self {
        Kept { file, room, dropped: 0 }
    }

    /// Keeps bytes as they arrived, a record for each line or piece of one.
    pub fn add(&mut self, ms: u64, from: From, bytes: &[u8]) -> io::Result<()> {
        let mut records = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (line, ended) = match line.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (line, false),
            };
            let mut pieces = pieces(line).peekable();
            if pieces.peek().is_none() && ended {
                self.record(&mut records, ms, from, b"", false)?;
            }
            while let Some(piece) = pieces.next() {
                let more = pieces.peek().is_some() || !ended;
                self.record(&mut records, ms, from, piece, more)?;
            }
        }
        self.file.write_all(&records)
    }

    fn record(
        &mut self,
        records: &mut Vec<u8>,
        ms: u64,
        from: From,
        piece: &[u8],
        more: bool,
    ) -> io::Result<()> {
        let text = std::str::from_utf8(piece).ok();
        let base64 = text.is_none().then(|| STANDARD.encode(piece));
        let before = records.len();
        serde_json::to_writer(&mut *records, &Record { ms, from, text, base64, more })?;
        records.push(b'\n');
        let size = (records.len() - before) as u64;
        if self.dropped > 0 || size > self.room {
            records.truncate(before);
            self.dropped += piece.len() as u64;
        } else {
            self.room -= size;
        }
        Ok(())
    }

    /// Bytes that there was no room for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Says in the file itself that it is not complete.
    pub fn close(mut self) -> io::Result<()> {
        if self.dropped > 0 {
            writeln!(self.file, "{{\"dropped_bytes\":{}}}", self.dropped)?;
        }
        self.file.flush()
    }
}

/// Parts of a line that are not too large. A character is not cut in two, so
/// that text stays text.
fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut at = rest.len().min(PIECE);
        if at < rest.len() {
            let continues = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
            let back = (1..=4).find(|back| !continues(rest[at + 1 - back]));
            at = back.map_or(at, |back| at + 1 - back);
        }
        let (piece, after) = rest.split_at(at);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_out_however_they_arrive() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"a"), []);
        assert_eq!(lines.push(b"b\nc\n\nd"), [whole("ab"), whole("c")]);
        assert_eq!(lines.end(), Some(whole("d")));
        assert_eq!(lines.end(), None);
    }

    #[test]
    fn a_line_without_end_costs_no_memory() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            assert_eq!(lines.push(&chunk), []);
        }
        assert!(lines.held.capacity() <= LONGEST_LINE + chunk.len());
        assert_eq!(lines.push(b"\nnext\n"), [Line::TooLong(40 << 20), whole("next")]);
    }

    fn kept(room: u64, parts: &[&[u8]]) -> (Vec<Value>, u64) {
        let mut file = tempfile::tempfile().unwrap();
        let mut kept = Kept::new(file.try_clone().unwrap(), room);
        for part in parts {
            kept.add(5, From::Out, part).unwrap();
        }
        let dropped = kept.dropped();
        kept.close().unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), dropped)
    }

    /// The bytes that a file of records stands for.
    fn told(records: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            match (record.get("text"), record.get("base64")) {
                (Some(text), _) => bytes.extend(text.as_str().unwrap().as_bytes()),
                (_, Some(base64)) => {
                    bytes.extend(STANDARD.decode(base64.as_str().unwrap()).unwrap());
                }
                _ => panic!("{record}"),
            }
            if record.get("more").is_none() {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let (records, _) = kept(1 << 20, &[b"good\n\xff\xfe\n"]);
        assert_eq!(records[0]["text"], "good");
        assert_eq!(records[1]["base64"], "//4=");
    }

    #[test]
    fn a_long_line_is_kept_in_pieces_between_characters() {
        let line = format!("x{}\n", "é".repeat(PIECE));
        let (records, _) = kept(8 << 20, &[line.as_bytes()]);
        assert!(records.len() >= 2);
        assert!(records.iter().all(|record| record.get("text").is_some()));
        assert_eq!(told(&records), line.as_bytes());
    }

    #[test]
    fn a_full_file_says_how_much_is_missing() {
        let (records, dropped) = kept(100, &[b"a\n", &[b'x'; 500], b"\n", b"b\n"]);
        assert_eq!(records[0]["text"], "a");
        assert_eq!(records.len(), 2);
        assert_eq!(records[1]["dropped_bytes"], dropped);
        assert!(dropped >= 501);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made_up(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let (records, _) = kept(1 << 20, &slices);
            let mut all = slices.concat();
            // A line that was not ended is told as one that goes on.
            let told = told(&records);
            prop_assert_eq!(&told, &all);

            let mut lines = Lines::default();
            let mut joined = Vec::new();
            for part in &slices {
                for line in lines.push(part) {
                    let Line::Whole(line) = line else { panic!() };
                    joined.push(line);
                }
            }
            if let Some(Line::Whole(line)) = lines.end() {
                joined.push(line);
            }
            all.push(b'\n');
            let expected: Vec<Vec<u8>> =
                all.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(joined, expected);
        }
    }
}
