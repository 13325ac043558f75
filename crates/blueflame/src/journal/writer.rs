//! The one writer of a journal.
//!
//! An append is one write and one flush, and returns only after both. When
//! either fails the writer is finished: what the disk holds is not known any
//! more, and a second flush could report success for bytes that are gone. The
//! writer takes no lock; whoever makes one holds the repository's lock already.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::chain::Head;
use super::disk::Disk;
use super::event::EventError;
use super::record::{self, EncodeError, Header, Record};
use super::repair::{self, Repair};
use super::scan::{self, ReadError, Tail, unreadable};
use crate::atomic_file::{self, AtomicError};

/// Why an append did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The batch cannot be written by anyone; the writer is still good.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Disk { step: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` has {found} bytes, we wrote {written}: something else changed it", path.display())]
    Changed { path: PathBuf, written: u64, found: u64 },
    #[error("`{}` was removed while we were writing it", path.display())]
    Removed { path: PathBuf },
    #[error("nothing more can be written to `{}`, an earlier error stopped it: {reason}", path.display())]
    Stopped { path: PathBuf, reason: String },
}

/// Why a journal cannot be opened or made for writing. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Create(#[from] AtomicError),
    #[error("the {bytes} unfinished bytes at the end of `{}` cannot be kept aside, so they stay: {source}", path.display())]
    KeepAside { path: PathBuf, bytes: u64, source: AtomicError },
    #[error("cannot {step} `{}`: {source}", path.display())]
    Disk { step: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A journal that can be written, and what opening it brought to light.
#[derive(Debug)]
pub struct Opened {
    pub writer: Writer,
    pub header: Header,
    pub repair: Option<Repair>,
}

/// Appends records to a journal.
#[derive(Debug)]
pub struct Writer<D = File> {
    disk: D,
    path: PathBuf,
    head: Head,
    epoch: u32,
    stopped: Option<String>,
    batch: Vec<u8>,
}

impl Writer {
    /// Begins a journal, in epoch 1. The file appears with its whole header and
    /// its first events, or not at all.
    pub fn create<E: Serialize>(
        path: &Path,
        header: &Header,
        at: Timestamp,
        first: &[&E],
    ) -> Result<Writer, OpenError> {
        let (mut lines, mut head) = record::encode_header(header, at)?;
        for event in first {
            record::encode(&mut lines, &mut head, (at, 1), event)?;
        }
        atomic_file::create(path, |file| file.write_all(&lines))?;
        let disk = OpenOptions::new().append(true).open(path).map_err(disk(path, "open"))?;
        Ok(Writer::on(disk, path, head, 1))
    }

    /// Goes on with a journal, in the epoch after its last one. Every record is
    /// handed to `each` first; if that or the chain finds a fault, the file is
    /// left as it is. A torn tail is copied to a file beside it and cut off.
    pub fn open(
        path: &Path,
        mut each: impl FnMut(&Record<'_>) -> Result<(), EventError>,
    ) -> Result<Opened, OpenError> {
        let mut file =
            OpenOptions::new().read(true).append(true).open(path).map_err(unreadable(path))?;
        let scan = scan::scan(path, &file, |record, _| each(record))?;
        let repair = match scan.tail {
            Tail::Clean => None,
            Tail::Torn { at, bytes } => Some(repair::take_off(path, &mut file, at, bytes)?),
        };
        // The last records may be whole and never have reached the disk. What we
        // read is acted upon from here on, so it has to be there.
        file.sync_all().map_err(disk(path, "sync"))?;
        let writer = Writer::on(file, path, scan.head, scan.epoch.saturating_add(1));
        Ok(Opened { writer, header: scan.header, repair })
    }
}

impl<D: Disk> Writer<D> {
    fn on(disk: D, path: &Path, head: Head, epoch: u32) -> Self {
        Writer { disk, path: path.to_owned(), head, epoch, stopped: None, batch: Vec::new() }
    }

    /// The number of the last record.
    pub fn last(&self) -> u64 {
        self.head.seq
    }

    /// Writes a batch and waits until the disk has it. Gives the sequence numbers
    /// of the new records. After an error none of them counts as written.
    pub fn append<E: Serialize>(
        &mut self,
        events: &[(Timestamp, &E)],
    ) -> Result<Range<u64>, AppendError> {
        if let Some(reason) = &self.stopped {
            let (path, reason) = (self.path.clone(), reason.clone());
            return Err(AppendError::Stopped { path, reason });
        }
        let mut head = self.head;
        self.batch.clear();
        for (at, event) in events {
            record::encode(&mut self.batch, &mut head, (*at, self.epoch), event)?;
        }
        if !self.batch.is_empty() {
            self.write_batch().inspect_err(|error| self.stopped = Some(error.to_string()))?;
        }
        let first = self.head.seq + 1;
        self.head = head;
        Ok(first..head.seq + 1)
    }

    fn write_batch(&mut self) -> Result<(), AppendError> {
        let failed = |path: &Path, step| {
            let path = path.to_owned();
            move |source| AppendError::Disk { step, path, source }
        };
        let written = self.head.end;
        let extent = self.disk.extent().map_err(failed(&self.path, "look at"))?;
        if !extent.named {
            return Err(AppendError::Removed { path: self.path.clone() });
        }
        if extent.len != written {
            let (path, found) = (self.path.clone(), extent.len);
            return Err(AppendError::Changed { path, written, found });
        }
        let done = match self.disk.append(&self.batch) {
            Ok(()) => self.disk.flush().map_err(failed(&self.path, "sync")),
            Err(error) => Err(failed(&self.path, "write")(error)),
        };
        if done.is_err() {
            // Takes back what may be half a batch. If this fails too, the next
            // one to open the file finds a torn tail, or records that nobody
            // was told of; both are sound.
            let _ = self.disk.cut(written);
        }
        done
    }

    /// Where the journal stands.
    pub fn head(&self) -> Head {
        self.head
    }

    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

pub(super) fn disk(path: &Path, step: &'static str) -> impl FnOnce(io::Error) -> OpenError + use<> {
    let path = path.to_owned();
    move |source| OpenError::Disk { step, path, source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blueflame_core::ids::SessionId;
    use serde_json::{Value, json};

    use super::super::disk::Failing;
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn header() -> Header {
        Header::new(SessionId::new("ses-20261115-090000").unwrap())
    }

    fn event(number: u32) -> Value {
        json!({"t": "x", "d": number})
    }

    fn on_failing_disk() -> Writer<Failing> {
        let (bytes, head) = record::encode_header(&header(), NOW).unwrap();
        Writer::on(Failing { bytes, ..Failing::default() }, Path::new("j"), head, 1)
    }

    fn records_on(disk: &Failing) -> u64 {
        scan::scan(Path::new("j"), disk.bytes.as_slice(), |_, _| Ok(())).unwrap().head.seq
    }

    #[test]
    fn a_batch_is_one_flush_and_gets_the_next_numbers() {
        let mut writer = on_failing_disk();
        assert_eq!(writer.append(&[(NOW, &event(1)), (NOW, &event(2))]).unwrap(), 2..4);
        assert_eq!(writer.append::<Value>(&[]).unwrap(), 4..4);
        assert_eq!(writer.append(&[(NOW, &event(3))]).unwrap(), 4..5);
        assert_eq!((writer.disk.flushes, records_on(&writer.disk)), (2, 4));
    }

    #[test]
    fn a_full_disk_loses_nothing_that_was_acknowledged_and_stops_the_writer() {
        let mut writer = on_failing_disk();
        writer.append(&[(NOW, &event(1))]).unwrap();
        let acknowledged = writer.disk.bytes.clone();

        writer.disk.short_write = Some(30);
        let failed = writer.append(&[(NOW, &event(2))]).unwrap_err();
        assert!(failed.to_string().starts_with("cannot write `j`: "), "{failed}");
        assert_eq!(writer.disk.bytes, acknowledged, "the half record is still there");

        // There is room again, and still nothing more is written.
        writer.disk.short_write = None;
        let refused = writer.append(&[(NOW, &event(2))]).unwrap_err();
        let AppendError::Stopped { reason, .. } = &refused else { panic!("{refused}") };
        assert!(reason.starts_with("cannot write `j`: "), "{reason}");
        assert_eq!(writer.disk.bytes, acknowledged);
    }

    #[test]
    fn a_failed_flush_is_never_tried_again() {
        let mut writer = on_failing_disk();
        let acknowledged = writer.disk.bytes.clone();
        writer.disk.no_flush = true;
        let failed = writer.append(&[(NOW, &event(1))]).unwrap_err();
        assert!(matches!(failed, AppendError::Disk { step: "sync", .. }), "{failed}");
        writer.disk.no_flush = false;
        assert!(matches!(writer.append(&[(NOW, &event(1))]), Err(AppendError::Stopped { .. })));
        assert_eq!((writer.disk.flushes, writer.head().seq), (1, 1));
        assert_eq!(writer.disk.bytes, acknowledged);
    }

    #[test]
    fn bytes_that_cannot_be_taken_back_are_a_torn_tail_for_the_next_one() {
        let mut writer = on_failing_disk();
        writer.append(&[(NOW, &event(1))]).unwrap();
        (writer.disk.short_write, writer.disk.no_cut) = (Some(30), true);
        writer.append(&[(NOW, &event(2))]).unwrap_err();
        assert_eq!(records_on(&writer.disk), 2);
    }

    #[test]
    fn a_record_that_is_too_long_stops_its_batch_and_not_the_writer() {
        let mut writer = on_failing_disk();
        let before = writer.disk.bytes.clone();
        let long = json!({"t": "plan.made", "d": "x".repeat(record::MAX_RECORD)});
        let refused = writer.append(&[(NOW, &event(1)), (NOW, &long)]).unwrap_err();
        assert!(matches!(refused, AppendError::Encode(EncodeError::TooLong { .. })), "{refused}");
        assert_eq!(writer.disk.bytes, before);
        assert_eq!(writer.append(&[(NOW, &event(1))]).unwrap(), 2..3);
    }

    #[test]
    fn a_journal_that_somebody_else_changed_or_removed_gets_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut writer = Writer::create::<Value>(&path, &header(), NOW, &[]).unwrap();
        let written = fs::read(&path).unwrap();

        fs::write(&path, [written.as_slice(), b"x"].concat()).unwrap();
        let refused = writer.append(&[(NOW, &event(1))]).unwrap_err();
        assert!(matches!(refused, AppendError::Changed { .. }), "{refused}");
        assert_eq!(fs::read(&path).unwrap().len(), written.len() + 1, "their bytes were touched");

        fs::write(&path, &written).unwrap();
        let mut writer = Writer::open(&path, |_| Ok(())).unwrap().writer;
        fs::remove_file(&path).unwrap();
        let refused = writer.append(&[(NOW, &event(1))]).unwrap_err();
        assert!(matches!(refused, AppendError::Removed { .. }), "{refused}");
    }

    #[test]
    fn each_opening_is_a_new_epoch_and_a_journal_is_begun_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut writer = Writer::create::<Value>(&path, &header(), NOW, &[]).unwrap();
        writer.append(&[(NOW, &event(1))]).unwrap();
        for epoch in [2, 3] {
            let mut opened = Writer::open(&path, |_| Ok(())).unwrap();
            assert_eq!((opened.writer.epoch(), opened.repair), (epoch, None));
            assert_eq!(opened.header, header());
            opened.writer.append(&[(NOW, &event(epoch))]).unwrap();
        }
        let mut epochs = Vec::new();
        Writer::open(&path, |record| {
            epochs.push(record.epoch);
            Ok(())
        })
        .unwrap();
        assert_eq!(epochs, [1, 2, 3]);
        assert!(matches!(
            Writer::create::<Value>(&path, &header(), NOW, &[]),
            Err(OpenError::Create(_))
        ));
    }

    #[test]
    fn what_is_not_understood_keeps_the_file_closed_and_unrepaired() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut writer = Writer::create::<Value>(&path, &header(), NOW, &[]).unwrap();
        writer.append(&[(NOW, &event(1))]).unwrap();
        let torn = [fs::read(&path).unwrap().as_slice(), b"{\"q\":3"].concat();
        fs::write(&path, &torn).unwrap();

        let refused = Writer::open(&path, |record| {
            Err(EventError::Unknown { seq: record.seq, kind: record.kind.to_owned() })
        });
        let message = refused.unwrap_err().to_string();
        assert!(
            message.ends_with("record 2 is a `x`, which this version of blueflame does not know")
        );
        assert_eq!(fs::read(&path).unwrap(), torn);
    }
}
