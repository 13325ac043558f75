//! A limit on processes that holds for root as well.
//!
//! The kernel's usual limit on processes is not for root. A control group
//! counts them whoever they belong to, and only root can make one here. It is for
//! sandboxes without a process namespace, and for kernels whose namespaces cannot
//! have few numbers.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, unlinkat};

/// The group of one sandbox. Whoever makes it stays outside: to move into a
/// group, and out of it again, takes longer than all the rest of a start.
#[derive(Debug)]
pub(super) struct Headcount {
    /// The group that this process is in.
    parent: File,
    name: String,
    /// The list of the processes in the new one.
    list: File,
}

impl Headcount {
    /// A group for at most so many, with nobody in it yet.
    pub(super) fn of_at_most(most: u64) -> io::Result<Headcount> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let place = place(&own).ok_or_else(|| io::Error::other("no control group counts pids"))?;
        tidy(&place);
        let name = format!("{PREFIX}{}", std::process::id());
        let group = place.join(&name);
        fs::create_dir(&group)?;
        let made = fs::write(group.join("pids.max"), most.to_string()).and_then(|()| {
            let list = File::options().write(true).open(group.join(LIST))?;
            Ok(Headcount { parent: File::open(&place)?, name, list })
        });
        if made.is_err() {
            let _ = fs::remove_dir(&group);
        }
        made
    }

    /// Counts a process, and all that it starts from here on.
    pub(super) fn count(&mut self, process: i32) -> io::Result<()> {
        self.list.write_all(process.to_string().as_bytes())
    }

    /// Removes the group; all that were in it have ended.
    pub(super) fn end(self) {
        let _ = unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR);
    }
}

const PREFIX: &str = "blueflame-";
const LIST: &str = "cgroup.procs";

/// Where the group of this process is, in the hierarchy that counts.
fn place(own: &str) -> Option<PathBuf> {
    let found = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        let counts = controllers.split(',').any(|controller| controller == "pids");
        counts.then(|| Path::new("/sys/fs/cgroup/pids").join(path))
    });
    let unified = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let unified = unified.map(|path| Path::new("/sys/fs/cgroup").join(path));
    found.or(unified).filter(|place| place.join(LIST).exists())
}

/// Removes what those left behind who were killed. A group that somebody is in
/// cannot be removed; one whose maker lives may be about to be entered.
fn tidy(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(maker) = name.strip_prefix(PREFIX) else { continue };
        if !Path::new("/proc").join(maker).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nowhere_to_count_is_nowhere() {
        assert_eq!(place(""), None);
        assert_eq!(place("4:memory:/x\n"), None);
        assert_eq!(place("1:pids:/no/such/group\n"), None);
    }
}
