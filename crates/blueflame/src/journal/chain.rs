//! The chain that ties each line to everything before it.
//!
//! This file knows the two ends of a line, the sequence number and the hash, and
//! nothing of what is between them.

use std::fmt;

/// What stands between the part of a line that is hashed and its hash.
const MARK: &[u8] = b",\"h\":\"";
const END: &[u8] = b"\"}";
const DIGITS: usize = 32;
const TRAILER: usize = MARK.len() + DIGITS + END.len();

/// 128 bits of BLAKE3, kept as the 32 hexadecimal digits that stand in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; DIGITS]);

impl Hash {
    fn of(before: &Hash, body: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&before.0);
        hasher.update(body);
        let mut digits = [0; DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(hasher.finalize().as_bytes()) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        Hash(digits)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only hexadecimal digits are ever stored")
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("the hash differs: this record, or one before it, was changed")]
    HashDiffers,
    #[error("the sequence jumps to {found}")]
    SequenceJumps { found: u64 },
    #[error("the line is not JSON")]
    NotJson,
    #[error("the line is JSON, but not a journal record")]
    NotARecord,
    #[error("the line is longer than a record may be")]
    TooLong,
    #[error("two records run together")]
    RunTogether,
}

/// Where the chain stands: after which record, and where that record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: u64,
    pub hash: Hash,
    /// The byte after the record's newline.
    pub end: u64,
}

impl Head {
    pub const START: Head = Head { seq: 0, hash: Hash([b'0'; DIGITS]), end: 0 };

    /// Finishes the line whose body starts at `start` in `out`, and moves on.
    pub(super) fn seal(&mut self, out: &mut Vec<u8>, start: usize) {
        let hash = Hash::of(&self.hash, &out[start..]);
        out.extend_from_slice(MARK);
        out.extend_from_slice(&hash.0);
        out.extend_from_slice(END);
        out.push(b'\n');
        self.advance(hash, out.len() - start);
    }

    /// Moves on over a line that belongs here, or says why it does not. The line
    /// comes without its newline.
    pub(super) fn accept(&mut self, line: &[u8]) -> Result<(), Flaw> {
        let Some((seq, body, stated)) = parts(line) else { return Err(diagnose(line)) };
        let hash = Hash::of(&self.hash, body);
        if seq == self.seq + 1 && hash.0 == stated {
            self.advance(hash, line.len() + 1);
            Ok(())
        } else {
            Err(match diagnose(line) {
                Flaw::NotARecord if seq == self.seq + 1 => Flaw::HashDiffers,
                Flaw::NotARecord => Flaw::SequenceJumps { found: seq },
                flaw => flaw,
            })
        }
    }

    fn advance(&mut self, hash: Hash, bytes: usize) {
        *self = Head { seq: self.seq + 1, hash, end: self.end + bytes as u64 };
    }
}

/// The part of a sealed line that says what happened.
pub(super) fn body(line: &[u8]) -> Option<&[u8]> {
    parts(line).map(|(_, body, _)| body)
}

/// Whether a line has both ends of a record; what it says is not checked.
pub(super) fn looks_intact(line: &[u8]) -> bool {
    parts(line).is_some()
}

/// Whether a second record begins inside a line. Quotes in strings are escaped,
/// so nothing that an event says can look like that.
pub(super) fn runs_together(line: &[u8]) -> bool {
    let later = line.get(1..).unwrap_or_default();
    later
        .windows(5)
        .enumerate()
        .any(|(at, start)| start == b"{\"q\":" && seq(&later[at..]).is_some())
}

fn parts(line: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let seq = seq(line)?;
    let (body, trailer) = line.split_at(line.len().checked_sub(TRAILER)?);
    let digits = trailer.strip_prefix(MARK)?.strip_suffix(END)?;
    let hex = digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits.len() == DIGITS && hex).then_some((seq, body, digits))
}

fn seq(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"q\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].starts_with(b",\"ts\":\"").then_some(())?;
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

fn diagnose(line: &[u8]) -> Flaw {
    if runs_together(line) {
        Flaw::RunTogether
    } else if serde_json::from_slice::<serde_json::Value>(line).is_err() {
        Flaw::NotJson
    } else {
        Flaw::NotARecord
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(head: &mut Head, body: &str) -> Vec<u8> {
        let mut out = b"before".to_vec();
        out.extend_from_slice(body.as_bytes());
        head.seal(&mut out, 6);
        assert_eq!(out.pop(), Some(b'\n'));
        out.split_off(6)
    }

    /// The rule of the file format, spelled out as somebody with `b3sum` would
    /// follow it.
    #[test]
    fn the_hash_covers_the_digits_before_it_and_the_body() {
        let body = r#"{"q":1,"ts":"t","d":"ä""#;
        let line = sealed(&mut Head::START.clone(), body);
        let whole = blake3::hash(format!("{}{body}", "0".repeat(32)).as_bytes()).to_hex();
        assert_eq!(line, format!(r#"{body},"h":"{}"}}"#, &whole[..32]).into_bytes());
    }

    #[test]
    fn each_way_a_line_can_be_wrong_has_its_own_name() {
        let mut writing = Head::START;
        let first = sealed(&mut writing, r#"{"q":1,"ts":"a""#);
        let second = sealed(&mut writing, r#"{"q":2,"ts":"b""#);
        let mut head = Head::START;
        head.accept(&first).unwrap();

        let text = String::from_utf8(second.clone()).unwrap();
        let both = [first.as_slice(), b" ", &second].concat();
        let changed = |from, to| text.replace(from, to).into_bytes();
        let rows = [
            (first.clone(), Flaw::SequenceJumps { found: 1 }),
            (changed("\"q\":2", "\"q\":3"), Flaw::SequenceJumps { found: 3 }),
            (changed("\"b\"", "\"c\""), Flaw::HashDiffers),
            (changed("\"b\"", "\"b "), Flaw::NotJson),
            (changed("\"h\"", "\"i\""), Flaw::NotARecord),
            (both, Flaw::RunTogether),
            (b"".to_vec(), Flaw::NotJson),
            (b"\0\0\0".to_vec(), Flaw::NotJson),
        ];
        for (line, flaw) in rows {
            let before = head;
            let shown = String::from_utf8_lossy(&line);
            assert_eq!(head.accept(&line), Err(flaw), "{shown}");
            assert_eq!(head, before, "the head moved over {shown}");
        }
        assert_eq!(head.accept(&second), Ok(()));
        assert_eq!(head, writing);
    }

    #[test]
    fn a_wrong_number_is_refused_even_under_a_right_hash() {
        let line = sealed(&mut Head::START.clone(), r#"{"q":2,"ts":"a""#);
        let refused = Head::START.clone().accept(&line);
        assert_eq!(refused, Err(Flaw::SequenceJumps { found: 2 }));
    }

    #[test]
    fn words_in_a_string_do_not_look_like_a_second_record() {
        let quoted = serde_json::to_string(r#"x{"q":7,"ts":"y"#).unwrap();
        assert!(!runs_together(format!(r#"{{"q":1,"ts":"t","d":{quoted}"#).as_bytes()));
        assert!(runs_together(br#"{"q":1,"ts":"t"{"q":2,"ts":""#));
        assert!(!runs_together(b""));
    }
}
