//! One orchestrator at a time for each repository.
//!
//! The lock is the kernel's, on an open file, so it ends with the process that
//! holds it, however that dies. What stands in the file is only for people and
//! for the next holder: who has the lock, or who had it and did not give it back.
//! The file is never removed: two processes could then hold two files of that
//! name. Agents do not inherit it, because files are opened close-on-exec.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use blueflame_core::ids::SessionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::store::{Store, WritableStore};

/// The file always has this size, so that a change of holder is one write of one
/// block: a reader never sees half of it and a killed holder never leaves half.
const SIZE: usize = 512;

/// Who holds a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    pub pid: u32,
    pub session: SessionId,
    pub since: Timestamp,
}

impl Holder {
    /// This process, working on a session since now.
    pub fn this_process(session: SessionId, since: Timestamp) -> Holder {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Holder { host, pid: std::process::id(), session, since }
    }
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody has it. Who, is not known in the moment before they say so.
    #[error("another orchestrator holds this repository{}", who(holder.as_ref()))]
    Held { holder: Option<Holder> },
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
}

fn who(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |Holder { host, pid, session, since }| {
        format!(": process {pid} on `{host}` runs session `{session}` since {since:.0}")
    })
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Failure {
        match &error {
            LockError::Held { .. } => Failure::new(Kind::Held, &error)
                .hint("watch it with `blueflame status --watch`, or stop it there with Ctrl-C"),
            LockError::Io { .. } => Failure::new(Kind::Internal, &error),
        }
    }
}

/// Whether an orchestrator is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    Nobody,
    /// Who, is not known if what they said makes no sense.
    Somebody(Option<Holder>),
}

/// Looks who holds a repository without touching the lock: whoever tries a lock
/// has it for a moment, and an orchestrator that starts just then would be
/// turned away.
pub fn look(store: &Store) -> Result<Presence, LockError> {
    let path = store.lock_file();
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Presence::Nobody),
        Err(error) => return Err(failed("open", &path)(error)),
    };
    let metadata = file.metadata().map_err(failed("look at", &path))?;
    let holder = match read_holder(&mut file).map_err(failed("read", &path))? {
        // Given back in good order. Somebody may have it again and be about to say so,
        // but to ask the kernel for its list takes it longer than that.
        Said::Nothing => return Ok(Presence::Nobody),
        said => said.holder(),
    };
    let held = match fs::read_to_string("/proc/locks") {
        Ok(locks) => is_locked(&locks, (metadata.dev(), metadata.ino()), holder.as_ref()),
        // Then what the file says is all there is.
        Err(_) => holder.as_ref().is_some_and(is_alive),
    };
    Ok(if held { Presence::Somebody(holder) } else { Presence::Nobody })
}

/// Whether the kernel's list of locks has one on a file. Some file systems give
/// their files another device there; then it has to be the holder's own.
fn is_locked(locks: &str, (device, inode): (u64, u64), holder: Option<&Holder>) -> bool {
    let device = format!("{:02x}:{:02x}", rustix::fs::major(device), rustix::fs::minor(device));
    locks.lines().any(|line| {
        // 1: FLOCK  ADVISORY  WRITE 4711 fd:01:12345 0 EOF
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, _, pid, place, ..] = words.as_slice() else { return false };
        let Some((on, file)) = place.rsplit_once(':') else { return false };
        let holders = || holder.is_some_and(|holder| pid.parse() == Ok(holder.pid));
        file.parse() == Ok(inode) && (on == device || holders())
    })
}

fn is_alive(holder: &Holder) -> bool {
    let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    // Not being allowed to signal it means that it is there.
    pid.is_some_and(|pid| {
        !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    })
}

/// The lock, as long as this lives.
#[derive(Debug)]
pub struct RepoLock {
    file: File,
    path: PathBuf,
    took_over_from: Option<Holder>,
}

impl RepoLock {
    /// Takes the lock at once or not at all.
    pub fn take(store: &WritableStore, holder: &Holder) -> Result<RepoLock, LockError> {
        let path = store.store().lock_file();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_holder(&mut file).map_err(failed("read", &path))?.holder();
                return Err(LockError::Held { holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
        }
        let took_over_from = read_holder(&mut file).map_err(failed("read", &path))?.holder();
        let lock = RepoLock { file, path, took_over_from };
        let text = serde_json::to_string(holder)
            .map_err(|error| failed("write", &lock.path)(error.into()))?;
        lock.write(&text)?;
        Ok(lock)
    }

    /// Who had the lock and did not give it back: a process that was killed, or a
    /// machine that went down.
    pub fn took_over_from(&self) -> Option<&Holder> {
        self.took_over_from.as_ref()
    }

    /// Gives the lock back in good order. A lock that is only dropped looks like
    /// a crash to the next holder, which is what it most likely was.
    pub fn release(self) -> Result<(), LockError> {
        self.write("")
    }

    fn write(&self, text: &str) -> Result<(), LockError> {
        let block = format!("{text:<width$}\n", width = SIZE - 1);
        self.file
            .write_all_at(block.as_bytes(), 0)
            .and_then(|()| self.file.sync_data())
            .map_err(failed("write", &self.path))
    }
}

impl Drop for RepoLock {
    /// Closing would not do: a child has our files too, for the moment between
    /// its fork and its exec, and would hold the lock for that long. If this
    /// fails, closing is what is left.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// What the file says.
enum Said {
    Nothing,
    Nonsense,
    Who(Holder),
}

impl Said {
    fn holder(self) -> Option<Holder> {
        match self {
            Said::Who(holder) => Some(holder),
            Said::Nothing | Said::Nonsense => None,
        }
    }
}

fn read_holder(file: &mut File) -> io::Result<Said> {
    let mut text = String::new();
    match file.take(SIZE as u64).read_to_string(&mut text) {
        Ok(_) if text.trim().is_empty() => Ok(Said::Nothing),
        Ok(_) => Ok(serde_json::from_str(text.trim()).map_or(Said::Nonsense, Said::Who)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Said::Nonsense),
        Err(error) => Err(error),
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LockError + use<> {
    let path = path.to_owned();
    move |source| LockError::Io { step, path, source }
}

#[cfg(test)]
mod tests {
    use blueflame_testkit::TestEnv;

    use super::*;
    use crate::file_system::Remote;
    use crate::store::Store;

    #[test]
    fn a_look_tells_whether_somebody_is_there_and_takes_nothing() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let store = Store::find(repository.path()).unwrap();
        assert_eq!(look(&store).unwrap(), Presence::Nobody);
        let writable = store.for_writing(Remote::Refuse).unwrap();
        let session = SessionId::new("ses-20261115-090000").unwrap();
        let holder = Holder::this_process(session, Timestamp::UNIX_EPOCH);
        let lock = RepoLock::take(&writable, &holder).unwrap();
        assert_eq!(look(&store).unwrap(), Presence::Somebody(Some(holder.clone())));
        // Killed: the text stays, the lock does not.
        drop(lock);
        assert_eq!(look(&store).unwrap(), Presence::Nobody);
        RepoLock::take(&writable, &holder).unwrap().release().unwrap();
        assert_eq!(look(&store).unwrap(), Presence::Nobody);
    }

    #[test]
    fn the_kernels_list_of_locks_is_read_with_care() {
        let session = SessionId::new("ses-20261115-090000").unwrap();
        let holder = Holder { pid: 47, ..Holder::this_process(session, Timestamp::UNIX_EPOCH) };
        let device = rustix::fs::makedev(0xfd, 1);
        for (line, held) in [
            ("1: FLOCK  ADVISORY  WRITE 47 fd:01:12345 0 EOF", true),
            ("1: FLOCK  ADVISORY  WRITE 9 fd:01:12345 0 EOF", true),
            ("1: FLOCK  ADVISORY  WRITE 47 00:2f:12345 0 EOF", true),
            ("1: FLOCK  ADVISORY  WRITE 9 00:2f:12345 0 EOF", false),
            ("1: FLOCK  ADVISORY  WRITE 47 fd:01:1234 0 EOF", false),
            ("1: POSIX  ADVISORY  WRITE 47 fd:01:12345 0 EOF", false),
            // Somebody waits; nobody has it.
            ("1: -> FLOCK  ADVISORY  WRITE 47 fd:01:12345 0 EOF", false),
            ("", false),
        ] {
            assert_eq!(is_locked(line, (device, 12345), Some(&holder)), held, "{line}");
        }
    }

    #[test]
    fn a_child_about_to_start_does_not_hold_what_was_given_back() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let store = Store::find(repository.path()).unwrap().for_writing(Remote::Refuse).unwrap();
        let session = SessionId::new("ses-20261115-090000").unwrap();
        let holder = Holder::this_process(session, Timestamp::UNIX_EPOCH);
        let lock = RepoLock::take(&store, &holder).unwrap();
        let _in_the_child = lock.file.try_clone().unwrap();
        assert!(matches!(RepoLock::take(&store, &holder), Err(LockError::Held { .. })));
        lock.release().unwrap();
        assert!(RepoLock::take(&store, &holder).is_ok());
    }
}
