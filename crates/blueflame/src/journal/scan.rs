//! Reading a journal from its start, and judging what is wrong with it.
//!
//! Bytes after the last newline are a torn tail: an append that was cut off and
//! that nobody was told had succeeded. Everything else that does not fit the
//! chain is damage. A scan reports; it never repairs and never skips.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::chain::{self, Flaw, Head};
use super::event::EventError;
use super::lines::{Lines, Piece};
use super::record::{self, Header, Record, SCHEMA};

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error("`{}` does not begin with the header of a journal", path.display())]
    NoHeader { path: PathBuf },
    #[error(
        "`{}` was written by blueflame {program} in journal version {schema}, \
         this one knows versions up to {SCHEMA}",
        path.display()
    )]
    Newer { path: PathBuf, schema: u32, program: String },
    #[error("`{}`: {source}", path.display())]
    Event { path: PathBuf, source: EventError },
}

/// The first place where a journal is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is damaged at line {line} (byte {offset}), where record {expected} should be: {flaw}; \
     {}",
    path.display(),
    follow(*following)
)]
pub struct Damage {
    pub path: PathBuf,
    pub line: u64,
    pub offset: u64,
    /// The sequence number that belongs here.
    pub expected: u64,
    pub flaw: Flaw,
    /// Lines after this one that look like intact records.
    pub following: u64,
}

fn follow(count: u64) -> String {
    match count {
        0 => "no intact record follows".to_owned(),
        1 => "1 record that looks intact follows".to_owned(),
        _ => format!("{count} records that look intact follow"),
    }
}

/// What stands after the last whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    Clean,
    Torn { at: u64, bytes: u64 },
}

/// A journal that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub header: Header,
    pub head: Head,
    /// The epoch of the last record.
    pub epoch: u32,
    pub tail: Tail,
}

/// Reads a whole journal and hands each record after the header to `each`, with
/// the chain as it stands after it. `path` is only for messages.
pub fn scan(
    path: &Path,
    input: impl Read,
    mut each: impl FnMut(&Record<'_>, &Head) -> Result<(), EventError>,
) -> Result<Scan, ReadError> {
    let mut lines = Lines::new(input);
    let mut head = Head::START;
    let mut header = None;
    let mut epoch = 0;
    let tail = loop {
        let before = head;
        let damaged = |flaw, following| damage(path, &before, flaw, following);
        match lines.next().map_err(unreadable(path))? {
            Piece::Line => {}
            Piece::TooLong => {
                return Err(damaged(Flaw::TooLong, count_intact(path, &mut lines)?).into());
            }
            Piece::Unfinished { .. } if chain::runs_together(lines.line()) => {
                return Err(damaged(Flaw::RunTogether, 0).into());
            }
            Piece::Unfinished { bytes } => break Tail::Torn { at: head.end, bytes },
            Piece::End => break Tail::Clean,
        }
        if let Err(flaw) = head.accept(lines.line()) {
            return Err(damaged(flaw, count_intact(path, &mut lines)?).into());
        }
        let schema = header.as_ref().map_or(SCHEMA, |header: &Header| header.schema);
        let Some(record) = Record::parse(lines.line(), schema) else {
            return Err(damaged(Flaw::NotARecord, count_intact(path, &mut lines)?).into());
        };
        epoch = record.epoch;
        if header.is_none() {
            header = Some(read_header(path, &record)?);
        } else {
            each(&record, &head).map_err(not_understood(path))?;
        }
    };
    let header = header.ok_or_else(|| ReadError::NoHeader { path: path.to_owned() })?;
    Ok(Scan { header, head, epoch, tail })
}

/// Reads the first record, which has to be a header that we know.
pub(super) fn read_header(path: &Path, record: &Record<'_>) -> Result<Header, ReadError> {
    let header = if record::is_header(record) { Header::of(record) } else { None };
    let header = header.ok_or_else(|| ReadError::NoHeader { path: path.to_owned() })?;
    if header.schema > SCHEMA {
        let (schema, program) = (header.schema, header.program);
        return Err(ReadError::Newer { path: path.to_owned(), schema, program });
    }
    Ok(header)
}

pub(super) fn damage(path: &Path, head: &Head, flaw: Flaw, following: u64) -> Damage {
    let next = head.seq + 1;
    // One record a line, so the line has the number of the record.
    Damage { path: path.to_owned(), line: next, offset: head.end, expected: next, flaw, following }
}

fn count_intact<R: Read>(path: &Path, lines: &mut Lines<R>) -> Result<u64, ReadError> {
    let mut count = 0;
    loop {
        match lines.next().map_err(unreadable(path))? {
            Piece::Line => count += u64::from(chain::looks_intact(lines.line())),
            Piece::TooLong => {}
            Piece::Unfinished { .. } | Piece::End => return Ok(count),
        }
    }
}

pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ReadError + use<'_> {
    move |source| ReadError::Io { path: path.to_owned(), source }
}

fn not_understood(path: &Path) -> impl FnOnce(EventError) -> ReadError + use<'_> {
    move |source| ReadError::Event { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use blueflame_core::ids::SessionId;
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::record::{encode, encode_header};
    use super::*;

    fn header() -> Header {
        Header::new(SessionId::new("ses-20261115-090000").unwrap())
    }

    /// A journal of a header and `count` records.
    fn journal(header: &Header, count: u32) -> Vec<u8> {
        let (mut out, mut head) = encode_header(header, Timestamp::UNIX_EPOCH).unwrap();
        for number in 0..count {
            let event = json!({"t": "x", "d": number});
            encode(&mut out, &mut head, (Timestamp::UNIX_EPOCH, 2), &event).unwrap();
        }
        out
    }

    fn check(bytes: &[u8]) -> Result<Scan, ReadError> {
        scan(Path::new("j"), bytes, |_, _| Ok(()))
    }

    #[test]
    fn a_whole_journal_ends_clean() {
        let bytes = journal(&header(), 3);
        let scan = check(&bytes).unwrap();
        assert_eq!((scan.head.seq, scan.head.end), (4, bytes.len() as u64));
        assert_eq!((scan.header, scan.epoch, scan.tail), (header(), 2, Tail::Clean));
    }

    #[test]
    fn zeros_at_the_end_are_a_torn_tail_however_many() {
        let whole = journal(&header(), 2);
        for zeros in [1, 4096, 2 * record::MAX_RECORD] {
            let bytes = [whole.as_slice(), &vec![0; zeros]].concat();
            let torn = Tail::Torn { at: whole.len() as u64, bytes: zeros as u64 };
            assert_eq!(check(&bytes).unwrap().tail, torn);
        }
    }

    #[test]
    fn damage_in_the_middle_names_its_place_and_what_follows() {
        let bytes = journal(&header(), 4);
        let text = String::from_utf8(bytes).unwrap();
        let damaged = text.replace("\"d\":1,", "\"d\":7,");
        let error = check(damaged.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "`j` is damaged at line 3 (byte {}), where record 3 should be: the hash differs: \
                 this record, or one before it, was changed; 2 records that look intact follow",
                text.find("{\"q\":3").unwrap()
            )
        );
    }

    #[test]
    fn a_line_beyond_the_limit_is_damage_once_it_ends() {
        let mut bytes = journal(&header(), 1);
        let end = bytes.len() as u64;
        bytes.resize(bytes.len() + record::MAX_RECORD + 1, b'x');
        bytes.push(b'\n');
        let ReadError::Damaged(damage) = check(&bytes).unwrap_err() else { panic!("no damage") };
        assert_eq!((damage.flaw, damage.offset, damage.line), (Flaw::TooLong, end, 3));
    }

    #[test]
    fn a_lost_newline_before_a_torn_record_is_not_taken_for_one_torn_record() {
        let mut bytes = journal(&header(), 2);
        let newline = bytes.len() - 1;
        bytes[newline] = b' ';
        bytes.extend_from_slice(b"{\"q\":4,\"ts\":\"20");
        let ReadError::Damaged(damage) = check(&bytes).unwrap_err() else { panic!("no damage") };
        assert_eq!(damage.flaw, Flaw::RunTogether);
    }

    #[test]
    fn without_a_header_nothing_is_read() {
        let (mut out, mut head) = (Vec::new(), Head::START);
        let event = json!({"t": "x"});
        encode(&mut out, &mut head, (Timestamp::UNIX_EPOCH, 1), &event).unwrap();
        for bytes in [&out[..], b"", b"{\"q\":1,"] {
            assert!(matches!(check(bytes), Err(ReadError::NoHeader { .. })));
        }
    }

    #[test]
    fn a_newer_journal_is_refused_with_the_version_that_wrote_it() {
        let newer = Header { schema: 2, program: "9.1.0".to_owned(), ..header() };
        // What follows may follow other rules, so it is not even looked at.
        let bytes = [journal(&newer, 0).as_slice(), b"something new\n"].concat();
        assert_eq!(
            check(&bytes).unwrap_err().to_string(),
            "`j` was written by blueflame 9.1.0 in journal version 2, this one knows versions up to 1"
        );
    }
}
