//! Reading a journal while somebody else may be writing it.
//!
//! A reader takes no lock and gives whole, chained records only. An unfinished
//! last line is not there yet. Records that were seen can go away again: when an
//! append fails, its writer takes the bytes back. The reader notices and starts
//! over, so that whoever follows can fold again.
//!
//! It never changes the file, and never calls a file damaged that it caught in
//! the middle of a change: damage counts when it is found in a file that was left
//! alone meanwhile, or again and again.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::chain::{Flaw, Head};
use super::growth::Growth;
use super::lines::{Lines, Piece};
use super::record::{Header, Record, SCHEMA};
use super::scan::{self, ReadError, unreadable};

const SETTLE: Duration = Duration::from_millis(20);
/// A damaged journal whose writer has not noticed and goes on is damaged still.
const MOST_LOOKS: u32 = 20;

/// What a reader finds next.
#[derive(Debug)]
pub enum Step<'a> {
    Record(Record<'a>),
    /// The end, for now.
    NotYet,
    /// Records given earlier were taken back. The next step gives the first
    /// record again; whatever was made of the earlier ones is void.
    StartedOver,
}

/// Reads a journal from its start and then goes on as it grows.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    header: Header,
    head: Head,
    lines: Lines<File>,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        let file = File::open(path).map_err(unreadable(path))?;
        let mut lines = Lines::new(file);
        let mut head = Head::START;
        let header = take_header(path, &mut lines, &mut head)?;
        Ok(Reader { path: path.to_owned(), header, head, lines })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The chain as it stands after the record that was given last.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Gives the next record, if there is one.
    pub fn step(&mut self) -> Result<Step<'_>, ReadError> {
        let before = self.head;
        loop {
            match self.advance().map_err(unreadable(&self.path))? {
                Found::Record => break,
                Found::Nothing => return Ok(Step::NotYet),
                Found::Trouble => match self.look_again()? {
                    Verdict::Sound => {}
                    Verdict::StartedOver => return Ok(Step::StartedOver),
                },
            }
        }
        let record = Record::parse(self.lines.line(), self.header.schema);
        let damage = || scan::damage(&self.path, &before, Flaw::NotARecord, 0);
        Ok(Step::Record(record.ok_or_else(damage)?))
    }

    /// Hands everything to `each`, and then what comes as soon as it comes, until
    /// `each` breaks. It is called with [`Step::NotYet`] at least once in every
    /// interval.
    pub fn follow<B>(
        &mut self,
        every: Duration,
        mut each: impl FnMut(Step<'_>) -> ControlFlow<B>,
    ) -> Result<B, ReadError> {
        let mut growth = None;
        loop {
            let step = self.step()?;
            let idle = matches!(step, Step::NotYet);
            if let ControlFlow::Break(result) = each(step) {
                return Ok(result);
            }
            if idle {
                match &growth {
                    // What came before somebody watched is found by looking again.
                    None => growth = Some(Growth::of(self.lines.source())),
                    Some(growth) => growth.wait(every),
                }
            }
        }
    }

    fn advance(&mut self) -> io::Result<Found> {
        match self.lines.next()? {
            Piece::Line => Ok(match self.head.accept(self.lines.line()) {
                Ok(()) => Found::Record,
                Err(_) => Found::Trouble,
            }),
            Piece::TooLong => Ok(Found::Trouble),
            Piece::Unfinished { .. } | Piece::End => {
                // Next time, read the line anew: it may have been replaced.
                self.lines.go_to(self.head.end)?;
                let shorter = self.lines.source().metadata()?.len() < self.head.end;
                Ok(if shorter { Found::Trouble } else { Found::Nothing })
            }
        }
    }

    /// When the file was changed last, and how long it is.
    fn stamp(&self) -> Result<(i64, i64, u64), ReadError> {
        let metadata = self.lines.source().metadata().map_err(unreadable(&self.path))?;
        Ok((metadata.mtime(), metadata.mtime_nsec(), metadata.len()))
    }

    /// Reads the file again from its start, to tell damage from a writer that
    /// took something back while we were looking.
    fn look_again(&mut self) -> Result<Verdict, ReadError> {
        let mut looks = 1;
        let kept = loop {
            let before = self.stamp()?;
            // Longer than the steps in which the system counts changes, so that
            // the stamp differs when something changes while we read.
            std::thread::sleep(SETTLE);
            let mut file = self.lines.source();
            file.seek(SeekFrom::Start(0)).map_err(unreadable(&self.path))?;
            let mut kept = false;
            let read = scan::scan(&self.path, file, |_, head| {
                kept |= *head == self.head;
                Ok(())
            });
            match read {
                Ok(_) => break kept,
                Err(ReadError::Damaged(_)) if looks < MOST_LOOKS && self.stamp()? != before => {
                    looks += 1;
                }
                Err(error) => {
                    self.lines.go_to(self.head.end).map_err(unreadable(&self.path))?;
                    return Err(error);
                }
            }
        };
        if kept {
            self.lines.go_to(self.head.end).map_err(unreadable(&self.path))?;
            return Ok(Verdict::Sound);
        }
        self.lines.go_to(0).map_err(unreadable(&self.path))?;
        self.head = Head::START;
        self.header = take_header(&self.path, &mut self.lines, &mut self.head)?;
        Ok(Verdict::StartedOver)
    }
}

/// What a second look says about trouble.
enum Verdict {
    /// What was given so far still stands.
    Sound,
    StartedOver,
}

enum Found {
    Record,
    Nothing,
    /// The next line does not fit, or the file has become shorter.
    Trouble,
}

fn take_header(path: &Path, lines: &mut Lines<File>, head: &mut Head) -> Result<Header, ReadError> {
    match lines.next().map_err(unreadable(path))? {
        Piece::Line => {}
        Piece::TooLong => return Err(scan::damage(path, head, Flaw::TooLong, 0).into()),
        Piece::Unfinished { .. } | Piece::End => {
            return Err(ReadError::NoHeader { path: path.to_owned() });
        }
    }
    let start = *head;
    let accepted = head.accept(lines.line());
    accepted.map_err(|flaw| scan::damage(path, &start, flaw, 0))?;
    let record = Record::parse(lines.line(), SCHEMA);
    let record = record.ok_or_else(|| scan::damage(path, &start, Flaw::NotARecord, 0))?;
    scan::read_header(path, &record)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use blueflame_core::ids::SessionId;
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::record::{encode, encode_header};
    use super::*;

    /// A journal in memory, to be put into a file in parts.
    struct Draft {
        bytes: Vec<u8>,
        head: Head,
    }

    impl Draft {
        fn new() -> Self {
            let header = Header::new(SessionId::new("ses-20261115-090000").unwrap());
            let (bytes, head) = encode_header(&header, Timestamp::UNIX_EPOCH).unwrap();
            Draft { bytes, head }
        }

        fn add(&mut self, word: &str) -> &mut Self {
            let event = json!({"t": "x", "d": word});
            encode(&mut self.bytes, &mut self.head, (Timestamp::UNIX_EPOCH, 1), &event).unwrap();
            self
        }

        fn and(&self, word: &str) -> Draft {
            let mut more = Draft { bytes: self.bytes.clone(), head: self.head };
            more.add(word);
            more
        }
    }

    /// Everything up to the end, as words: `.` for the end, `over` for starting
    /// over.
    fn drain(reader: &mut Reader) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            match reader.step().unwrap() {
                Step::Record(record) => {
                    let payload: serde_json::Value =
                        serde_json::from_str(&record.payload()).unwrap();
                    words.push(payload["d"].as_str().unwrap().to_owned());
                }
                Step::StartedOver => words.push("over".to_owned()),
                Step::NotYet => {
                    words.push(".".to_owned());
                    return words;
                }
            }
        }
    }

    /// Puts bytes into the same file, as a writer does: no new file.
    fn put(path: &Path, bytes: &[u8]) {
        let mut file = OpenOptions::new().write(true).truncate(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn reader_of(draft: &Draft) -> (tempfile::TempDir, PathBuf, Reader) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        fs::write(&path, &draft.bytes).unwrap();
        let reader = Reader::open(&path).unwrap();
        (dir, path, reader)
    }

    #[test]
    fn an_unfinished_line_is_not_there_until_it_ends() {
        let mut draft = Draft::new();
        draft.add("a");
        let (_dir, path, mut reader) = reader_of(&draft);
        assert_eq!(drain(&mut reader), ["a", "."]);
        let whole = draft.and("b").bytes;
        for end in draft.bytes.len()..whole.len() {
            put(&path, &whole[..end]);
            assert_eq!(drain(&mut reader), ["."], "at byte {end}");
        }
        put(&path, &whole);
        assert_eq!(drain(&mut reader), ["b", "."]);
    }

    #[test]
    fn a_torn_line_that_was_replaced_is_read_anew() {
        let draft = Draft::new();
        let (_dir, path, mut reader) = reader_of(&draft);
        let torn = draft.and("a long word that was cut off");
        put(&path, &torn.bytes[..torn.bytes.len() - 20]);
        assert_eq!(drain(&mut reader), ["."]);
        put(&path, &draft.and("b").bytes);
        assert_eq!(drain(&mut reader), ["b", "."]);
    }

    #[test]
    fn records_that_were_taken_back_make_the_reader_start_over() {
        let mut draft = Draft::new();
        draft.add("a");
        for replaced in ["c", "something longer than before"] {
            let (_dir, path, mut reader) = reader_of(&draft.and("b"));
            assert_eq!(drain(&mut reader), ["a", "b", "."]);
            put(&path, &draft.bytes);
            assert_eq!(drain(&mut reader), ["over", "a", "."]);
            put(&path, &draft.and(replaced).bytes);
            assert_eq!(drain(&mut reader), [replaced, "."]);
        }
        // Taken back and replaced between two looks, so that it never got shorter.
        for (replaced, words) in [
            ("B", vec!["."]),
            (
                "something longer than before",
                vec!["over", "a", "something longer than before", "."],
            ),
        ] {
            let (_dir, path, mut reader) = reader_of(&draft.and("b"));
            drain(&mut reader);
            put(&path, &draft.and(replaced).bytes);
            assert_eq!(drain(&mut reader), words);
            put(&path, &draft.and(replaced).and("z").bytes);
            assert_eq!(drain(&mut reader).last_chunk(), Some(&["z".to_owned(), ".".to_owned()]));
        }
    }

    #[test]
    fn damage_is_reported_with_its_place_and_not_stepped_over() {
        let mut draft = Draft::new();
        draft.add("a").add("b").add("c");
        let text = String::from_utf8(draft.bytes.clone()).unwrap();
        draft.bytes = text.replace("\"d\":\"b\"", "\"d\":\"X\"").into_bytes();
        let (_dir, _, mut reader) = reader_of(&draft);
        assert!(matches!(reader.step().unwrap(), Step::Record(record) if record.seq == 2));
        for _ in 0..2 {
            let ReadError::Damaged(damage) = reader.step().unwrap_err() else { panic!("sound") };
            assert_eq!((damage.expected, damage.flaw), (3, Flaw::HashDiffers));
            assert_eq!(
                (damage.offset, damage.following),
                (text.find("{\"q\":3").unwrap() as u64, 1)
            );
        }
    }

    #[test]
    fn following_waits_for_what_comes() {
        let mut draft = Draft::new();
        draft.add("a");
        let (_dir, path, mut reader) = reader_of(&draft);
        let mut seen = Vec::new();
        let last = reader.follow(Duration::from_millis(1), |step| match step {
            Step::Record(record) => {
                seen.push(record.seq);
                if record.seq == 3 {
                    ControlFlow::Break(record.seq)
                } else {
                    ControlFlow::Continue(())
                }
            }
            Step::NotYet => {
                put(&path, &draft.and("b").bytes);
                ControlFlow::Continue(())
            }
            Step::StartedOver => panic!("nothing was taken back"),
        });
        assert_eq!((last.unwrap(), seen), (3, vec![2, 3]));
    }
}
