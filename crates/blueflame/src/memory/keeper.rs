//! Who keeps the notes: reads them, brings them up to date from the journals, and
//! writes them whole or not at all.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blueflame_core::config::{Decay, Memory};
use blueflame_core::ids::SessionId;
use blueflame_core::memory::harvest::{Harvest, Reasons};
use blueflame_core::memory::{Imported, Note, Notebook};
use serde::{Deserialize, Serialize};

use super::bead::{Skipped, read_lines, write_lines};
use super::forgotten::Forgotten;
use crate::atomic_file::{self, AtomicError, Durability};
use crate::failure::{Failure, Kind};
use crate::history::{self, HistoryError};
use crate::people::sheet::count;
use crate::store::{Store, StoreError};

/// How long another process may keep the notes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the notes were made from, beside them.
const SEEN: &str = "seen.json";

/// What the person wanted forgotten, beside them.
const FORGOTTEN: &str = "forgotten";

/// Notes that are not as they were written, set aside; later ones with a number.
const DAMAGED: &str = "issues.jsonl.damaged";

/// Why notes cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] AtomicError),
    #[error("a note cannot be written: {0}")]
    Note(#[from] serde_json::Error),
    #[error("another process keeps `{}` to itself", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Failure {
        match error {
            MemoryError::Store(error) => error.into(),
            MemoryError::Note(_) => Failure::new(Kind::Internal, error),
            MemoryError::Busy { .. } => {
                Failure::new(Kind::Missing, error).hint("once it is done, try again")
            }
            MemoryError::Io { .. } | MemoryError::Write(_) => Failure::new(Kind::Missing, error)
                .hint("notes are kept there: it must be writable, with room on the disk"),
        }
    }
}

/// What is remembered, by the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'c> {
    /// `None` if journals are not looked at: the notes are what was written.
    journals: Option<Journals>,
    decay: Option<&'c Decay>,
}

/// What is taken from journals.
#[derive(Clone, Copy, Debug)]
struct Journals {
    reasons: Reasons,
    /// Whether a session that goes on is remembered as far as it got.
    unfinished: bool,
}

impl<'c> Terms<'c> {
    pub fn of(config: &'c Memory) -> Terms<'c> {
        Terms {
            journals: Some(Journals {
                reasons: if config.include_failure_notes {
                    Reasons::Kept
                } else {
                    Reasons::LeftOut
                },
                unfinished: config.archive_after_wave,
            }),
            decay: config.decay.as_ref(),
        }
    }

    /// Where nothing new is remembered.
    pub fn as_it_is() -> Terms<'static> {
        Terms { journals: None, decay: None }
    }
}

/// Notes that are as new as the journals.
#[derive(Debug)]
pub struct CaughtUp {
    pub notebook: Notebook,
    pub forgotten: Forgotten,
    /// What the person should know.
    pub warnings: Vec<String>,
}

/// The notes of one repository.
#[derive(Clone, Debug)]
pub struct Keeper {
    store: Store,
    root: PathBuf,
}

/// What the notes were made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// What the configuration said then.
    terms: String,
    /// How long each journal was that could be read.
    journals: BTreeMap<SessionId, u64>,
    /// Identifies the notes that were written: others count for nothing here.
    #[serde(default)]
    written: Option<String>,
}

/// The notes as they are on the disk.
#[derive(Debug)]
struct OnDisk {
    bytes: Vec<u8>,
    notebook: Notebook,
    /// Whether everything that was written could be read.
    whole: bool,
    warnings: Vec<String>,
}

impl Keeper {
    pub fn of(store: &Store) -> Keeper {
        Keeper { root: store.root().join("memory"), store: store.clone() }
    }

    /// Where the notes are.
    pub fn file(&self) -> PathBuf {
        self.root.join("issues.jsonl")
    }

    /// Where it says what is forgotten.
    pub fn forgotten_file(&self) -> PathBuf {
        self.root.join(FORGOTTEN)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Brings the notes up to date: whatever journals say that is not in them yet
    /// is added, and what is old is shortened.
    pub fn catch_up(&self, terms: &Terms<'_>) -> Result<CaughtUp, MemoryError> {
        let nothing_to_read = terms.journals.is_none() || self.store.sessions()?.is_empty();
        if nothing_to_read && !self.root.exists() {
            return Ok(CaughtUp {
                notebook: Notebook::default(),
                forgotten: Forgotten::default(),
                warnings: Vec::new(),
            });
        }
        let _lock = self.lock("LOCK")?;
        self.bring_up(terms, |_| ()).map(|(caught_up, ())| caught_up)
    }

    /// The notes as they were last written. Changes nothing.
    pub fn look(&self) -> Result<Notebook, MemoryError> {
        let forgotten = self.forgotten()?;
        let mut notebook = self.read()?.notebook;
        notebook.retain(|note| !forgotten.has(note));
        Ok(notebook)
    }

    /// Takes over notes of others. What is forgotten stays so.
    pub fn import(
        &self,
        terms: &Terms<'_>,
        mut notes: Vec<Note>,
    ) -> Result<(CaughtUp, Imported), MemoryError> {
        let _lock = self.lock("LOCK")?;
        let forgotten = self.forgotten()?;
        let all = notes.len();
        notes.retain(|note| !forgotten.has(note));
        let forgotten = all - notes.len();
        self.bring_up(terms, |notebook| Imported { forgotten, ..notebook.import(notes) })
    }

    /// Forgets for good.
    pub fn forget(
        &self,
        terms: &Terms<'_>,
        add: impl FnOnce(&mut Forgotten),
    ) -> Result<CaughtUp, MemoryError> {
        let _lock = self.lock("LOCK")?;
        let mut forgotten = self.forgotten()?;
        add(&mut forgotten);
        forgotten.followed(&self.read()?.notebook);
        // The list first: whoever dies after this has forgotten all the same.
        let list = self.forgotten_file();
        atomic_file::replace(&list, forgotten.text().as_bytes(), Durability::Power)?;
        self.bring_up(terms, |_| ()).map(|(caught_up, ())| caught_up)
    }

    /// The caller holds the lock.
    fn bring_up<T>(
        &self,
        terms: &Terms<'_>,
        change: impl FnOnce(&mut Notebook) -> T,
    ) -> Result<(CaughtUp, T), MemoryError> {
        let OnDisk { bytes, mut notebook, whole, mut warnings } = self.read()?;
        let forgotten = self.forgotten()?;
        let seen = self.seen();
        // Of the right form, but not what was written: cut at the end of a line, say.
        let altered = whole && seen.written.as_ref().is_some_and(|it| *it != identity(&bytes));
        // Notes that were lost are somewhere in the journals.
        let trusted = whole && !altered && seen.written.is_some();
        let seen = if trusted { seen } else { Seen::default() };
        let mut now = match terms.journals {
            Some(journals) => {
                // Another version may read more out of a journal.
                let said = format!("{} {terms:?}", env!("CARGO_PKG_VERSION"));
                self.read_journals(journals, said, &seen, &mut notebook, &mut warnings)?
            }
            None => seen.clone(),
        };
        let before = notebook.clone();
        let changed = change(&mut notebook);
        if now == seen && notebook == before && notebook.notes().all(|note| !forgotten.has(note)) {
            // Nothing that it follows from is different.
            return Ok((CaughtUp { notebook, forgotten, warnings }, changed));
        }
        // Before, so that nothing follows from what is forgotten; and after, for
        // what followed all the same.
        notebook.retain(|note| !forgotten.has(note));
        notebook.settle(terms.decay);
        notebook.retain(|note| !forgotten.has(note));
        let written = write_lines(notebook.notes())?;
        if written != bytes {
            if altered {
                warnings.push(format!(
                    "`{}` is not what was last written to it: what the journals say is taken \
                     from them again",
                    self.file().display()
                ));
            }
            if altered || (!whole && !bytes.is_empty()) {
                let aside = self.set_aside(&bytes)?;
                warnings.push(format!("what it was is kept as `{}`", aside.display()));
            }
            // Whoever dies between the two has damaged nothing, only seen nothing.
            let _ = fs::remove_file(self.root.join(SEEN));
            atomic_file::replace(&self.file(), &written, Durability::Power)?;
        }
        now.written = Some(identity(&written));
        if now != seen || written != bytes {
            let text = serde_json::to_vec(&now)?;
            atomic_file::replace(&self.root.join(SEEN), &text, Durability::Process)?;
        }
        Ok((CaughtUp { notebook, forgotten, warnings }, changed))
    }

    /// Adds what journals say that were not read yet, or were shorter then.
    fn read_journals(
        &self,
        journals: Journals,
        terms: String,
        seen: &Seen,
        notebook: &mut Notebook,
        warnings: &mut Vec<String>,
    ) -> Result<Seen, MemoryError> {
        let same_terms = seen.terms == terms;
        let mut now = Seen { terms, journals: BTreeMap::new(), written: seen.written.clone() };
        for session in self.store.sessions()? {
            let journal = self.store.session(&session).journal();
            let length = fs::metadata(&journal).map_or(0, |it| it.len());
            if !same_terms || seen.journals.get(&session) != Some(&length) {
                match harvested(&journal, journals) {
                    Ok(Some(notes)) => notebook.replace(&session, notes),
                    Ok(None) => {}
                    Err(error) => {
                        warnings
                            .push(format!("nothing is remembered of session {session}: {error}"));
                        // It is read again next time.
                        continue;
                    }
                }
            }
            now.journals.insert(session, length);
        }
        Ok(now)
    }

    /// Keeps what cannot be used, beside what was kept before.
    fn set_aside(&self, bytes: &[u8]) -> Result<PathBuf, MemoryError> {
        let mut path = self.root.join(DAMAGED);
        let mut number = 1;
        while path.symlink_metadata().is_ok() {
            if fs::read(&path).is_ok_and(|kept| kept == bytes) {
                return Ok(path);
            }
            number += 1;
            path = self.root.join(format!("{DAMAGED}.{number}"));
        }
        atomic_file::replace(&path, bytes, Durability::Power)?;
        Ok(path)
    }

    fn read(&self) -> Result<OnDisk, MemoryError> {
        let path = self.file();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (notebook, warnings) = (Notebook::default(), Vec::new());
                return Ok(OnDisk { bytes: Vec::new(), notebook, whole: false, warnings });
            }
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let (notes, Skipped { unreadable, torn, others }) = read_lines(&bytes);
        let mut warnings = Vec::new();
        if torn {
            warnings.push(format!("the last line of `{}` was torn", path.display()));
        }
        if !unreadable.is_empty() {
            let numbers: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
            let lines = if numbers.len() == 1 { "line" } else { "lines" };
            warnings.push(format!(
                "`{}` cannot be read in {lines} {}",
                path.display(),
                numbers.join(", ")
            ));
        }
        // Only notes are ever written to it.
        if others > 0 {
            warnings.push(format!(
                "`{}` has {} of something else in it",
                path.display(),
                count(others, "line")
            ));
        }
        let whole = !torn && unreadable.is_empty() && others == 0;
        Ok(OnDisk { bytes, notebook: Notebook::new(notes), whole, warnings })
    }

    fn forgotten(&self) -> Result<Forgotten, MemoryError> {
        let path = self.forgotten_file();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Forgotten::read(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Forgotten::default()),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Without it everything is looked at again, which comes to the same.
    fn seen(&self) -> Seen {
        let bytes = fs::read(self.root.join(SEEN)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Does something that only one process at a time may do.
    pub fn alone<T>(&self, name: &str, action: impl FnOnce() -> T) -> Result<T, MemoryError> {
        let _lock = self.lock(name)?;
        Ok(action())
    }

    fn lock(&self, name: &str) -> Result<File, MemoryError> {
        fs::create_dir_all(&self.root).map_err(failed("make", &self.root))?;
        let path = self.root.join(name);
        let open = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(failed("open", &path))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Err(MemoryError::Busy { path }),
                Err(TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
            }
        }
    }
}

/// What a journal leaves to know; `None` if it is too early to say.
fn harvested(journal: &Path, terms: Journals) -> Result<Option<Vec<Note>>, HistoryError> {
    let mut harvest = Harvest::default();
    let folded = history::fold(journal, None, |moment| {
        if let Some(before) = moment.before {
            harvest.see(moment.record.at, moment.event, before);
        }
    });
    let state = match folded {
        Ok(history) => history.state,
        // It is about to begin.
        Err(HistoryError::Empty { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let told = state.ended().is_some() || terms.unfinished;
    Ok(told.then(|| harvest.finish(&state, terms.reasons)))
}

fn identity(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MemoryError + use<> {
    let path = path.to_owned();
    move |source| MemoryError::Io { step, path, source }
}
