//! Socket directories of attempts that were killed.
//!
//! They lie outside of any repository, and their names do not tell whose they
//! are. But a socket that nobody listens at refuses whoever knocks, so the dead
//! are known from the living.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use super::{Fate, Item};
use crate::attempt::directory;

/// An attempt that is starting has a directory before it has a socket, but not
/// for that long.
const STARTING: SignedDuration = SignedDuration::from_hours(1);

pub(super) fn look(now: Timestamp) -> Vec<Item> {
    let places = directory::socket_places().into_iter().filter(|place| is_ours(place));
    let inside = places.flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten());
    let mut dead: Vec<PathBuf> =
        inside.map(|entry| entry.path()).filter(|path| is_dead(path, now)).collect();
    dead.sort();
    if dead.is_empty() {
        return Vec::new();
    }
    let name = match dead.len() {
        1 => "sockets of an attempt that is dead".to_owned(),
        several => format!("{several} directories with sockets of attempts that are dead"),
    };
    vec![Item::of_paths(None, name, dead, Fate::Goes)]
}

/// A directory of this user, closed to others: nobody else put anything there.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode().trailing_zeros() >= 6
    })
}

fn is_dead(path: &Path, now: Timestamp) -> bool {
    if !is_ours(path) {
        return false;
    }
    let entries: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().collect();
    let is_socket = |entry: &&fs::DirEntry| entry.file_type().is_ok_and(|it| it.is_socket());
    let sockets: Vec<PathBuf> = entries.iter().filter(is_socket).map(fs::DirEntry::path).collect();
    if sockets.len() != entries.len() {
        // Something in it is not ours to judge.
        return false;
    }
    if sockets.is_empty() {
        return is_older(path, now);
    }
    sockets.iter().all(|socket| {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        UnixStream::connect(socket).is_err_and(refused)
    })
}

fn is_older(path: &Path, now: Timestamp) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|found| found.modified());
    let modified = modified.ok().and_then(|at| Timestamp::try_from(at).ok());
    modified.is_some_and(|at| now.duration_since(at) > STARTING)
}
