//! The directory of one attempt, and what its files say about it.
//!
//! Whoever looks, an orchestrator that comes back or a person, can tell from
//! the files alone how the attempt stands. A lock that dies with the process
//! says whether it still runs.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blueflame_core::event::Process;
use blueflame_core::money::Spend;
use serde::{Deserialize, Serialize};

use super::messages::Report;
use super::sealed::Sealed;
use super::spec::Spec;
use crate::atomic_file::{self, AtomicError, Durability};
use crate::process_tree;
use crate::skills;

/// The variable by which all processes of one agent are known.
pub const MARK: &str = "BLUEFLAME_ATTEMPT";

/// Where the sockets of attempts are, for orchestrators and for agents.
const CONTROL: &str = "blueflame-control";
const GATEWAY: &str = "blueflame";

/// A socket's path has 107 bytes at most, with its name.
const LONGEST_PLACE: usize = 95;

/// The name of a place is as long as this.
const HASHED: usize = 16;

/// How long a lock that is held may be held by somebody who only looks.
const LOOKING: Duration = Duration::from_secs(1);

/// How long what is left of an agent may take to die.
const LEFTOVERS: Duration = Duration::from_secs(5);

/// Why an attempt's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` cannot be understood: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error(transparent)]
    Write(#[from] AtomicError),
    #[error("another process already runs the attempt in `{}`", path.display())]
    Held { path: PathBuf },
    #[error("no place is short enough for the sockets of `{}`: set TMPDIR to a shorter path", path.display())]
    TooLong { path: PathBuf },
    #[error("processes of the attempt in `{}` cannot be ended: {pids:?}", path.display())]
    Leftovers { path: PathBuf, pids: Vec<u32> },
    #[error("`{}` belongs to someone else or is open to others", path.display())]
    Unsafe { path: PathBuf },
}

/// One attempt's directory.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

/// `process.json`: who runs the attempt and where it listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    pub process: Process,
    pub sockets: PathBuf,
}

/// How an attempt stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// No process ever took it up.
    NotStarted,
    /// A process has it. Before it is registered, it cannot be reached yet.
    Running(Option<Registered>),
    Ended(Box<Sealed>),
    /// Its process is gone and left no result. What it spent is known unless
    /// the machine went down with it.
    Lost {
        spend: Option<Spend>,
    },
}

/// The lock that says that the attempt is run; it dies with the process.
#[derive(Debug)]
pub struct Running {
    _file: File,
}

impl Directory {
    /// Made by the orchestrator, with the spec in it, before anything starts.
    pub fn create(root: &Path, spec: &Spec) -> Result<Directory, DirectoryError> {
        let directory = Directory { root: root.to_owned() };
        private_directory(root)?;
        let json = serde_json::to_vec_pretty(spec)
            .map_err(|error| unreadable(&directory.spec_file(), &error))?;
        // An attempt that a power cut ends is lost, and nobody asks what it was told; one
        // that comes to its end sees to it that this is known.
        atomic_file::replace(&directory.spec_file(), &json, Durability::Process)?;
        Ok(directory)
    }

    /// Makes what only those have use for who work in it. Commands that had it before
    /// may have opened it to others.
    pub fn make_room(&self) -> Result<(), DirectoryError> {
        for path in [self.home(), self.tmp()] {
            let io = |step| {
                let path = path.clone();
                move |source| DirectoryError::Io { step, path, source }
            };
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => {
                    let closed = fs::Permissions::from_mode(0o700);
                    fs::set_permissions(&path, closed).map_err(io("close"))?;
                }
                _ => private_directory(&path)?,
            }
        }
        Ok(())
    }

    pub fn open(root: &Path) -> Directory {
        Directory { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn spec_file(&self) -> PathBuf {
        self.root.join("spec.json")
    }

    pub fn result_file(&self) -> PathBuf {
        self.root.join("result.json")
    }

    pub fn process_file(&self) -> PathBuf {
        self.root.join("process.json")
    }

    /// What the attempt process reported, a line each.
    pub fn reports_file(&self) -> PathBuf {
        self.root.join("reports.jsonl")
    }

    pub fn output_file(&self) -> PathBuf {
        self.root.join("output.jsonl")
    }

    pub fn audit_file(&self) -> PathBuf {
        self.root.join("audit.jsonl")
    }

    /// What the attempt process itself has to complain about.
    pub fn log_file(&self) -> PathBuf {
        self.root.join("attempt.log")
    }

    pub fn recording_file(&self) -> PathBuf {
        self.root.join("traffic.jsonl")
    }

    pub fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots.git")
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The copies of its skills.
    pub fn skill_set(&self) -> PathBuf {
        self.root.join(skills::SET)
    }

    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub fn spec(&self) -> Result<Spec, DirectoryError> {
        let path = self.spec_file();
        let spec: Spec = read(&path)?.ok_or_else(|| DirectoryError::Io {
            step: "read",
            path: path.clone(),
            source: io::ErrorKind::NotFound.into(),
        })?;
        if spec.format != super::spec::FORMAT {
            let why = format!("it has format {}, this program knows 1", spec.format);
            return Err(DirectoryError::Unreadable { path, why });
        }
        Ok(spec)
    }

    pub fn result(&self) -> Result<Option<Sealed>, DirectoryError> {
        read(&self.result_file())
    }

    /// Has the spec survive a power cut, once there is a result that is understood by it.
    pub fn keep_spec(&self) -> Result<(), DirectoryError> {
        let path = self.spec_file();
        let synced = File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|source| DirectoryError::Io { step: "sync", path, source })
    }

    /// Writes the result, once and for all.
    pub fn seal(&self, sealed: &Sealed) -> Result<(), DirectoryError> {
        let path = self.result_file();
        let json = serde_json::to_vec_pretty(sealed).map_err(|error| unreadable(&path, &error))?;
        Ok(atomic_file::replace(&path, &json, Durability::Power)?)
    }

    pub fn register(&self, registered: &Registered) -> Result<(), DirectoryError> {
        let path = self.process_file();
        let json =
            serde_json::to_vec_pretty(registered).map_err(|error| unreadable(&path, &error))?;
        Ok(atomic_file::replace(&path, &json, Durability::Process)?)
    }

    /// Takes the attempt up; only one process at a time can.
    pub fn take_up(&self) -> Result<Running, DirectoryError> {
        let path = self.lock_file();
        let io = |source| DirectoryError::Io { step: "lock", path: path.clone(), source };
        let file = File::options().create(true).append(true).open(&path).map_err(io)?;
        // Whoever only looks holds it for a moment.
        let until = Instant::now() + LOOKING;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Running { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(DirectoryError::Held { path: self.root.clone() });
                }
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
        }
    }

    /// Whether a process has the attempt. Looking changes nothing, and two may
    /// look at the same time.
    fn is_held(&self) -> Result<bool, DirectoryError> {
        let path = self.lock_file();
        let io = |source| DirectoryError::Io { step: "look at", path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(io(source)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// How the attempt stands right now. Whoever is told [`Standing::Lost`]
    /// calls [`end_leftovers`](Self::end_leftovers) before anything else is
    /// done in that workspace.
    pub fn standing(&self) -> Result<Standing, DirectoryError> {
        let until = Instant::now() + LOOKING;
        loop {
            // The lock first: a process that ends after this look has sealed its
            // result before it let go of the lock.
            let held = self.is_held()?;
            if let Some(sealed) = self.result()? {
                return Ok(Standing::Ended(Box::new(sealed)));
            }
            let registered: Option<Registered> = match read(&self.process_file()) {
                // It is written whole: the machine went down before it was on the disk.
                Err(DirectoryError::Unreadable { .. }) if !held => {
                    return Ok(Standing::Lost { spend: None });
                }
                read => read?,
            };
            let alive = registered.as_ref().is_some_and(|it| process_tree::is_running(&it.process));
            // A program that it was about to start when it died has the lock for a
            // moment longer; or a process has taken it up, or let go of it, since we
            // looked at the lock. Neither is how it stands.
            let settled = registered.is_none() || held == alive;
            if !settled && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            return Ok(match registered {
                registered if held || alive => Standing::Running(registered),
                // No agent is started before its process is registered.
                None => Standing::NotStarted,
                Some(registered) => {
                    let same_boot = registered.process.boot_id == process_tree::boot_id();
                    let spend = if same_boot { self.last_spend()? } else { None };
                    Standing::Lost { spend }
                }
            });
        }
    }

    /// What the reports say it spent, as far as they go.
    fn last_spend(&self) -> Result<Option<Spend>, DirectoryError> {
        let path = self.reports_file();
        let io = |source| DirectoryError::Io { step: "read", path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(Spend::default()));
            }
            Err(source) => return Err(io(source)),
        };
        let mut spend = Spend::default();
        for line in BufReader::new(file).split(b'\n') {
            // The last line may be torn, in the middle of a character: its
            // process died.
            if let Ok(Report::Usage { spend: reported }) =
                serde_json::from_slice(&line.map_err(io)?)
            {
                spend = spend.at_least(reported);
            }
        }
        Ok(Some(spend))
    }

    /// What all processes of this agent have in their environment, under
    /// [`MARK`], and no others.
    pub fn mark(&self) -> String {
        self.hashed("mark")
    }

    /// Ends what is left of an agent whose attempt process was killed: the
    /// kernel ends the agent itself, but not what had left it. They are known by
    /// their environment, so one that cleaned that up gets away, except in a
    /// sandbox with process numbers of its own, of which nothing is left. Nothing happens while the
    /// attempt is run. The answer is how many there were.
    pub fn end_leftovers(&self) -> Result<usize, DirectoryError> {
        if !self.lock_file().exists() {
            return Ok(0);
        }
        // Held meanwhile, so that nobody starts it anew.
        let _running = match self.take_up() {
            Ok(running) => running,
            Err(DirectoryError::Held { .. }) => return Ok(0),
            Err(error) => return Err(error),
        };
        process_tree::end_marked(MARK, &self.mark(), LEFTOVERS).map_err(|left| {
            let pids: Vec<u32> = left.iter().map(|process| process.pid).collect();
            DirectoryError::Leftovers { path: self.root.clone(), pids }
        })
    }

    /// The place of the control socket, which the agent is not told of and has
    /// no business with. It follows from the directory, so that it is found
    /// again without notes.
    pub fn sockets(&self) -> Result<PathBuf, DirectoryError> {
        self.place(CONTROL, "control")
    }

    /// The place of the gateway's socket, which the agent does know.
    pub fn gateway_place(&self) -> Result<PathBuf, DirectoryError> {
        self.place(GATEWAY, "gateway")
    }

    /// A place whose path is short enough for a socket. One cannot be guessed
    /// from the other by whoever does not know the directory.
    fn place(&self, parent: &str, label: &str) -> Result<PathBuf, DirectoryError> {
        let parent = of_user(parent);
        private_directory(&parent)?;
        let path = parent.join(self.hashed(label));
        private_directory(&path)?;
        if path.as_os_str().len() > LONGEST_PLACE {
            return Err(DirectoryError::TooLong { path: self.root.clone() });
        }
        Ok(path)
    }

    /// A short name that no other directory has.
    fn hashed(&self, label: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(label.as_bytes()).update(&[0]);
        hasher.update(self.root.as_os_str().as_encoded_bytes());
        hasher.finalize().to_hex()[..HASHED].to_owned()
    }
}

/// Where the socket directories of all attempts of this user are.
pub fn socket_places() -> [PathBuf; 2] {
    [of_user(CONTROL), of_user(GATEWAY)]
}

/// Whether sockets of attempts have short enough paths in the place for temporary
/// files.
pub fn sockets_fit() -> bool {
    let length = |place: PathBuf| place.as_os_str().len() + 1 + HASHED;
    socket_places().into_iter().all(|place| length(place) <= LONGEST_PLACE)
}

fn of_user(name: &str) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("{name}-{user}"))
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, DirectoryError> {
    match fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|error| unreadable(path, &error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DirectoryError::Io { step: "read", path: path.to_owned(), source }),
    }
}

fn unreadable(path: &Path, error: &serde_json::Error) -> DirectoryError {
    DirectoryError::Unreadable { path: path.to_owned(), why: error.to_string() }
}

/// A directory that is ours and closed to others, made if it is not there.
fn private_directory(path: &Path) -> Result<(), DirectoryError> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let io = |step| move |source| DirectoryError::Io { step, path: path.to_owned(), source };
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(io("make")(source)),
    }
    let metadata = fs::symlink_metadata(path).map_err(io("look at"))?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    // None of the six bits for others is set.
    if metadata.is_dir() && ours && metadata.mode().trailing_zeros() >= 6 {
        Ok(())
    } else {
        Err(DirectoryError::Unsafe { path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whose_machine_went_down_before_it_was_on_the_disk_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path());
        assert_eq!(directory.standing().unwrap(), Standing::NotStarted);
        fs::write(directory.process_file(), "").unwrap();
        let running = directory.take_up().unwrap();
        assert!(directory.standing().is_err(), "whoever has it wrote it whole");
        drop(running);
        assert_eq!(directory.standing().unwrap(), Standing::Lost { spend: None });
    }

    #[test]
    fn what_was_opened_to_others_is_closed_and_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        directory.make_room().unwrap();
        fs::set_permissions(directory.home(), fs::Permissions::from_mode(0o755)).unwrap();
        directory.make_room().unwrap();
        assert_eq!((mode(&directory.home()), mode(&directory.tmp())), (0o700, 0o700));
        fs::remove_dir(directory.tmp()).unwrap();
        std::os::unix::fs::symlink("/", directory.tmp()).unwrap();
        assert!(matches!(directory.make_room(), Err(DirectoryError::Unsafe { .. })));
    }
}
