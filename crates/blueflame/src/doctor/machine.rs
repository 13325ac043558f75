//! What the person's shell gives a session: a place for temporary files, open
//! files, processes. Too little of it shows as something else altogether, such as
//! a sandbox that does not work, so it is looked at first.

use std::path::Path;

use rustix::fs::{Access, Mode, OFlags, access, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Finding;
use crate::attempt::directory;

/// Each agent takes some connections and pipes; this is enough for the most there
/// may be at once.
const OPEN_FILES: u64 = 256;

/// What we ask for if we may have it. More than this confuses old programs, which
/// get it from us.
const MANY_OPEN_FILES: u64 = 1024;

/// One agent has a few processes with some threads each, and the person has others.
const PROCESSES: u64 = 256;

/// What stands in the way of a session; nothing on an ordinary machine.
pub fn machine() -> Vec<Finding> {
    [temporary_files(), open_files(), processes()].into_iter().flatten().collect()
}

/// Takes as many open files as a session needs, if they are to be had.
pub fn take_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(MANY_OPEN_FILES, |most| most.min(MANY_OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        // Whether it is enough is looked at afterwards.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

fn temporary_files() -> Option<Finding> {
    let place = std::env::temp_dir();
    let trouble = |why: String| {
        let says = format!("`{}` (TMPDIR) {why}", place.display());
        let fix = "export TMPDIR=/tmp, or make the directory";
        Some(Finding::missing("temporary files", says, fix))
    };
    if !place.is_dir() {
        return trouble("is not a directory".to_owned());
    }
    if let Err(error) = writable(&place) {
        return trouble(format!("cannot be written: {}", std::io::Error::from(error)));
    }
    if !directory::sockets_fit() {
        return trouble("is too long a path for sockets: 50 characters are enough".to_owned());
    }
    None
}

/// Whether files can be made in a directory. Root is allowed everywhere, also where
/// nothing can be made; so a file without a name is, of which nothing is ever seen: a
/// dry run writes nothing anywhere.
fn writable(place: &Path) -> Result<(), Errno> {
    access(place, Access::WRITE_OK | Access::EXEC_OK)?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(place, flags, Mode::RUSR | Mode::WUSR) {
        // Some disks have no files without names; what has no blocks is no disk.
        Err(error @ Errno::OPNOTSUPP) if statvfs(place)?.f_blocks == 0 => Err(error),
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::ROFS)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn open_files() -> Option<Finding> {
    let most = getrlimit(Resource::Nofile).maximum.filter(|most| *most < OPEN_FILES)?;
    let says = format!("only {most} may be open at once, and a session needs {OPEN_FILES}");
    Some(Finding::missing("open files", says, "ulimit -n 1024, in a new shell if need be"))
}

/// The kernel does not hold root to it.
fn processes() -> Option<Finding> {
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let most = getrlimit(Resource::Nproc).current.filter(|most| *most < PROCESSES)?;
    let says = format!("you may have only {most} with threads, and a session needs {PROCESSES}");
    Some(Finding::missing("processes", says, "ulimit -u 4096, in a new shell if need be"))
}
