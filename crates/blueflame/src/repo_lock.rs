//! One orchestrator at a time for each repository.
//!
//! The lock is the kernel's, on an open file, so it ends with the process that
//! holds it, however that dies. What stands in the file is only for people and
//! for the next holder: who has the lock, or who had it and did not give it back.
//! The file is never removed: two processes could then hold two files of that
//! name. Agents do not inherit it, because files are opened close-on-exec.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use blueflame_core::ids::SessionId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};
use crate::store::WritableStore;

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
                let holder = read_holder(&mut file).map_err(failed("read", &path))?;
                return Err(LockError::Held { holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock", &path)(source)),
        }
        let took_over_from = read_holder(&mut file).map_err(failed("read", &path))?;
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

/// What the file says, if it says anything that makes sense.
fn read_holder(file: &mut File) -> io::Result<Option<Holder>> {
    let mut text = String::new();
    match file.take(SIZE as u64).read_to_string(&mut text) {
        Ok(_) => Ok(serde_json::from_str(text.trim()).ok()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
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
