//! Going into a layered workspace: from there on, this process and all that it
//! starts see both layers as one.

use std::convert::Infallible;
use std::env;
use std::ffi::{CStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use super::layers::{self, Layers};
use crate::sandbox::syscalls;

/// What the kernel is told, in words of which none is a path that somebody chose:
/// they are relative to the place. Its notes are attributes that any user can set,
/// and it follows none that lead from one directory to another.
const OPTIONS: &CStr = c"lowerdir=base,upperdir=changes,workdir=work,userxattr,index=off";

/// Enters the workspace at a place if it has layers. Only for a process with a
/// single thread.
pub fn enter(place: &Path) -> io::Result<()> {
    if Layers::of(place).is_none() {
        return Ok(());
    }
    let here = env::current_dir()?;
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        syscalls::unshare(UnshareFlags::NEWNS)?;
    } else {
        syscalls::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        let (user, group) = (user.as_raw(), group.as_raw());
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))?;
    }
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    env::set_current_dir(place)?;
    // Room for the kernel, made by the first who goes in.
    match fs::create_dir("work") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("blueflame", ".", "overlay", flags, Some(OPTIONS)).map_err(|error| {
        let place = place.display();
        io::Error::other(format!("the layers of `{place}` cannot be put together: {error}"))
    })?;
    // Where we were may be below it.
    env::set_current_dir(here)
}

/// Whether `blueflame` can go into a layered workspace in this directory, found out
/// by doing it; or why not.
pub(super) fn try_out(blueflame: &Path, directory: &Path) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    let trial = tempfile::Builder::new().prefix(".trial").tempdir_in(directory).map_err(told)?;
    let (base, place) = (trial.path().join("base"), trial.path().join("place"));
    fs::create_dir(&base).and_then(|()| fs::write(base.join("beneath"), "seen")).map_err(told)?;
    let layers = layers::lay_out(&place, Path::new("../base")).map_err(told)?;
    fs::create_dir(layers.changes().join(".git")).map_err(told)?;
    let output = Command::new(blueflame)
        .arg("__within")
        .arg(&place)
        .args(["sh", "-c", "cd \"$0\" && cat beneath > above && rm beneath"])
        .arg(&place)
        .stdin(Stdio::null())
        .output()
        .map_err(told)?;
    let copied = fs::read_to_string(layers.changes().join("above")).unwrap_or_default();
    let removed = layers.find(Path::new("beneath")).is_none() && base.join("beneath").exists();
    if copied == "seen" && removed {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if said.is_empty() { "one does not show through the other".to_owned() } else { said })
}

/// Becomes a program that works inside, where we are now.
pub fn become_within(place: &Path, program: &[OsString]) -> io::Result<Infallible> {
    let [program, arguments @ ..] = program else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "which program?"));
    };
    enter(place)?;
    Err(Command::new(program).args(arguments).exec())
}
