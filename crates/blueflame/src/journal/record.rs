//! One record as a line of JSON, and the header that comes first.

use std::io::Write as _;

use blueflame_core::ids::SessionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::chain::{self, Head};

/// No line is longer than this. What agents print has no place in the journal,
/// so a record that comes near it is a mistake somewhere else.
pub const MAX_RECORD: usize = 16 * 1024 * 1024;

/// The version of the events this program writes, and the newest it reads.
pub const SCHEMA: u32 = 1;

const HEADER: &str = "journal.header";

/// The first record: whose journal this is, and who wrote it how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub schema: u32,
    pub session: SessionId,
    /// The version of the program that made the file.
    pub program: String,
}

impl Header {
    /// The header of a journal that this program begins.
    pub fn new(session: SessionId) -> Self {
        Header { schema: SCHEMA, session, program: env!("CARGO_PKG_VERSION").to_owned() }
    }

    pub(super) fn of(record: &Record<'_>) -> Option<Header> {
        // A newer program may say more in its header; what we need stays.
        let HeaderRecord::Header(header) = serde_json::from_str(&record.payload()).ok()?;
        Some(header)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "d")]
enum HeaderRecord<H> {
    #[serde(rename = "journal.header")]
    Header(H),
}

/// A record that was read and belongs where it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub seq: u64,
    pub at: Timestamp,
    /// Which orchestrator wrote it: 1 for the first, one more for each that
    /// opened the journal later.
    pub epoch: u32,
    /// The type of the event, such as `agent.claimed`.
    pub kind: &'a str,
    /// The type and the data as they stand in the line: `"t":…,"d":…`.
    members: &'a str,
    /// The version of the events when this journal was begun.
    pub(super) schema: u32,
}

impl<'a> Record<'a> {
    /// Reads a line that the chain has accepted.
    pub(super) fn parse(line: &'a [u8], schema: u32) -> Option<Self> {
        let body = std::str::from_utf8(chain::body(line)?).ok()?;
        let (seq, rest) = body.strip_prefix("{\"q\":")?.split_once(",\"ts\":\"")?;
        let (at, rest) = rest.split_once("\",\"e\":")?;
        let (epoch, members) = rest.split_once(',')?;
        let kind = kind(members)?;
        Some(Record {
            seq: seq.parse().ok()?,
            at: at.parse().ok()?,
            epoch: epoch.parse().ok()?,
            kind,
            members,
            schema,
        })
    }

    /// The event as JSON: `{"t":…,"d":…}`.
    pub fn payload(&self) -> String {
        ["{", self.members, "}"].concat()
    }
}

/// An event that cannot become a record. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("an event cannot be turned into JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an event has the wrong shape for the journal, it begins with `{start}`")]
    Shape { start: String },
    #[error("a `{kind}` record would have {bytes} bytes, the most is {MAX_RECORD}")]
    TooLong { kind: String, bytes: usize },
}

/// Adds one record to `out`. On an error, `out` and `head` are as they were.
pub(super) fn encode<E: Serialize>(
    out: &mut Vec<u8>,
    head: &mut Head,
    (at, epoch): (Timestamp, u32),
    event: &E,
) -> Result<(), EncodeError> {
    let start = out.len();
    let before = *head;
    encode_body(out, head.seq + 1, (at, epoch), event)
        .and_then(|kind| {
            head.seal(out, start);
            let bytes = out.len() - start - 1;
            if bytes > MAX_RECORD { Err(EncodeError::TooLong { kind, bytes }) } else { Ok(()) }
        })
        .inspect_err(|_| {
            out.truncate(start);
            *head = before;
        })
}

fn encode_body<E: Serialize>(
    out: &mut Vec<u8>,
    seq: u64,
    (at, epoch): (Timestamp, u32),
    event: &E,
) -> Result<String, EncodeError> {
    // Milliseconds, unless that would lose something: replayed from the file,
    // an event has to carry the very time that was applied when it happened.
    let places = if at.subsec_nanosecond() % 1_000_000 == 0 { 3 } else { 9 };
    write!(out, "{{\"q\":{seq},\"ts\":\"{at:.places$}\",\"e\":{epoch}")
        .expect("a vector takes every byte");
    let start = out.len();
    serde_json::to_writer(&mut *out, event)?;

    let payload = &out[start..];
    let Some(kind) = kind_of(payload).map(str::to_owned) else {
        let start = String::from_utf8_lossy(&payload[..payload.len().min(40)]).into_owned();
        return Err(EncodeError::Shape { start });
    };
    // The event brings its own braces; here its members stand among ours.
    out.pop();
    out[start] = b',';
    Ok(kind)
}

/// The header, as the first line of a file.
pub(super) fn encode_header(
    header: &Header,
    at: Timestamp,
) -> Result<(Vec<u8>, Head), EncodeError> {
    let (mut out, mut head) = (Vec::new(), Head::START);
    encode(&mut out, &mut head, (at, 1), &HeaderRecord::Header(header))?;
    Ok((out, head))
}

/// The type of an event in JSON, if it has the shape of one and is one line, as
/// ready-made JSON inside an event might not be.
fn kind_of(payload: &[u8]) -> Option<&str> {
    let members = payload.strip_prefix(b"{")?.strip_suffix(b"}")?;
    if members.contains(&b'\n') { None } else { kind(std::str::from_utf8(members).ok()?) }
}

/// The type at the start of `"t":"agent.claimed","d":…`. Types are plain words,
/// so that nothing in them needs an escape.
fn kind(members: &str) -> Option<&str> {
    let (kind, _) = members.strip_prefix("\"t\":\"")?.split_once('"')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (!kind.is_empty() && kind.bytes().all(plain)).then_some(kind)
}

pub(super) fn is_header(record: &Record<'_>) -> bool {
    record.seq == 1 && record.kind == HEADER
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOON: &str = "2026-11-15T12:00:00.120Z";

    fn encoded(event: &Value) -> Result<String, EncodeError> {
        let (mut out, mut head) = (Vec::new(), Head::START);
        encode(&mut out, &mut head, (NOON.parse().unwrap(), 3), event)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_record_is_one_line_in_the_documented_form() {
        let line = encoded(&json!({"t": "agent.claimed", "d": {"task": "a\nb"}})).unwrap();
        let (start, hash) = line.split_once(",\"h\":\"").unwrap();
        assert_eq!(
            start,
            r#"{"q":1,"ts":"2026-11-15T12:00:00.120Z","e":3,"t":"agent.claimed","d":{"task":"a\nb"}"#
        );
        assert_eq!(hash.len(), 32 + "\"}\n".len());

        let record = Record::parse(line.trim_end().as_bytes(), SCHEMA).unwrap();
        assert_eq!((record.seq, record.epoch, record.kind), (1, 3, "agent.claimed"));
        assert_eq!(record.at, NOON.parse().unwrap());
        assert_eq!(record.payload(), r#"{"t":"agent.claimed","d":{"task":"a\nb"}}"#);
    }

    #[test]
    fn time_comes_back_exactly_however_fine_it_was() {
        for nanoseconds in [0, 1, 999_999_999, 120_000_000, 123_456_000] {
            let at = Timestamp::new(1_800_000_000, nanoseconds).unwrap();
            let (mut out, mut head) = (Vec::new(), Head::START);
            encode(&mut out, &mut head, (at, 1), &json!({"t": "x"})).unwrap();
            assert_eq!(Record::parse(out.trim_ascii_end(), SCHEMA).unwrap().at, at);
        }
    }

    #[test]
    fn an_event_without_a_plain_type_in_front_is_refused_and_leaves_nothing() {
        for bad in [
            json!(7),
            json!([]),
            json!({}),
            json!({"d": 1, "t": "x"}),
            json!({"t": ""}),
            json!({"t": "two words"}),
            json!({"t": "quote\"d"}),
            json!({"t": 5}),
        ] {
            let refused = encoded(&bad).unwrap_err();
            assert!(matches!(refused, EncodeError::Shape { .. }), "{bad}: {refused}");
        }
    }

    #[test]
    fn an_event_of_more_than_one_line_is_refused() {
        assert_eq!(kind_of(b"{\"t\":\"x\",\"d\":{}}"), Some("x"));
        assert_eq!(kind_of(b"{\"t\":\"x\",\"d\":{\n}}"), None);
    }

    #[test]
    fn a_record_beyond_the_limit_is_refused_and_leaves_nothing() {
        let (mut out, mut head) = (b"kept".to_vec(), Head::START);
        let event = json!({"t": "plan.made", "d": "x".repeat(MAX_RECORD)});
        let refused = encode(&mut out, &mut head, (Timestamp::UNIX_EPOCH, 1), &event).unwrap_err();
        assert!(matches!(refused, EncodeError::TooLong { .. }));
        assert!(refused.to_string().starts_with("a `plan.made` record would have 16777"));
        assert_eq!((out.as_slice(), head), (&b"kept"[..], Head::START));
    }

    #[test]
    fn the_header_is_the_first_record_and_reads_back() {
        let header = Header::new(SessionId::new("ses-20261115-120000").unwrap());
        let (line, head) = encode_header(&header, NOON.parse().unwrap()).unwrap();
        let record = Record::parse(line.trim_ascii_end(), SCHEMA).unwrap();
        assert!(is_header(&record));
        assert_eq!(Header::of(&record), Some(header));
        assert_eq!((head.seq, head.end), (1, line.len() as u64));
    }
}
