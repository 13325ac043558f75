//! Directories that the file system can copy as a whole, in no time and without room:
//! the subvolumes of btrfs. What is written afterwards is written in one of them alone.
#![expect(unsafe_code, reason = "no safe wrapper has these requests")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

/// What the kernel is given with each of the requests: `struct btrfs_ioctl_vol_args`.
#[repr(C)]
struct Arguments {
    source: i64,
    name: [u8; NAME],
}

const NAME: usize = 4088;
const GROUP: u8 = 0x94;
const COPY: Opcode = opcode::write::<Arguments>(GROUP, 1);
const CREATE: Opcode = opcode::write::<Arguments>(GROUP, 14);
const REMOVE: Opcode = opcode::write::<Arguments>(GROUP, 15);

/// The number that the root of each of them has, and no other directory.
const ROOT: u64 = 256;

/// What `statfs` says of the file system.
const BTRFS: i64 = 0x9123_683e;

pub(super) fn create(path: &Path) -> io::Result<()> {
    request::<CREATE>(path, None)
}

/// Copies one to a place where nothing is yet.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    request::<COPY>(to, Some(&File::open(from)?))
}

/// Removes one with all that is in it. Not everybody may, depending on how the file
/// system is mounted; everybody may empty it and remove what is left.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    request::<REMOVE>(path, None)
}

/// Whether a directory is one.
pub(super) fn is_one(path: &Path) -> bool {
    let is_root = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir() && it.ino() == ROOT);
    is_root && rustix::fs::statfs(path).is_ok_and(|it| it.f_type == BTRFS)
}

/// Whether there can be some in a directory, found out by making a copy; or why not.
pub(super) fn try_out(directory: &Path) -> Result<(), String> {
    let trial = || -> io::Result<bool> {
        let place = tempfile::Builder::new().prefix(".trial").tempdir_in(directory)?;
        let (one, other) = (place.path().join("one"), place.path().join("other"));
        create(&one)?;
        fs::write(one.join("file"), "seen")?;
        copy(&one, &other)?;
        fs::write(one.join("file"), "changed")?;
        Ok(fs::read(other.join("file"))? == b"seen")
    };
    match trial() {
        Ok(true) => Ok(()),
        Ok(false) => Err("a copy is not what was copied".to_owned()),
        Err(error) => Err(format!("the file system does not copy directories: {error}")),
    }
}

fn request<const WHAT: Opcode>(path: &Path, source: Option<&File>) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let source = source.map_or(0, |file| i64::from(file.as_raw_fd()));
    let arguments = Arguments { source, name: spelled(name)? };
    // SAFETY: each of the requests reads this struct and writes nothing.
    unsafe { ioctl(File::open(parent)?.as_fd(), Setter::<WHAT, Arguments>::new(arguments)) }?;
    Ok(())
}

/// A name with a zero byte after it.
fn spelled(name: &OsStr) -> io::Result<[u8; NAME]> {
    let mut spelled = [0; NAME];
    let bytes = name.as_bytes();
    let room = spelled[..NAME - 1].get_mut(..bytes.len());
    room.ok_or(io::ErrorKind::InvalidFilename)?.copy_from_slice(bytes);
    Ok(spelled)
}
