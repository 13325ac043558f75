//! Limits on all processes together, looked after from outside of the program.
//!
//! The kernel limits single processes; what all of them take is added up here. Nothing
//! tells of that, so it is looked at: when a limit could have been passed since the last
//! look, as fast as this machine is, and not before.

use std::fs;
use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::getuid;

use super::disk::Disk;
use super::plan::{Limits, Plan};
use super::unmapped::Unmapped;
use crate::{child_end, process_tree};

/// The shortest and the longest time between two looks.
const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(1);

/// What a processor can fill of memory in a second, in MiB, and how many processes it
/// can start; what all of them can have of a disk, which need not be written for that.
const MEMORY: u64 = 4 << 10;
const PROCESSES: u64 = 5_000;
const DISK: u64 = 100 << 10;

/// A limit that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Memory { mb: u64, limit: u64 },
    Disk { mb: u64, limit: u64 },
    Processes { count: u64, limit: u64 },
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Excess::Memory { mb, limit } => write!(
                f,
                "its processes took {mb} MiB of memory, more than {limit} \
                 (sandbox.max_memory_mb), and were ended"
            ),
            Excess::Disk { mb, limit } => write!(
                f,
                "it filled {mb} MiB of the disk, more than {limit} (sandbox.max_disk_mb), and \
                 was ended"
            ),
            Excess::Processes { count, limit } => {
                write!(f, "it had {count} processes and threads, more than {limit}, and was ended")
            }
        }
    }
}

/// Where the processes to look after are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// All that this process sees: it is the first of a namespace.
    Everybody,
    /// Those that it started, and theirs.
    Descendants,
}

/// Who sees to it that there are not too many processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    ByTheKernel,
    ByUs,
}

pub(super) struct Watch {
    limits: Limits,
    whom: Whom,
    disk: Option<Disk>,
    unmapped: Unmapped,
    processors: u64,
    next: Instant,
}

impl Watch {
    pub(super) fn over(plan: &Plan, whom: Whom, counted: Counted) -> Watch {
        let mut limits = plan.limits.clone();
        if counted == Counted::ByTheKernel {
            limits.processes = None;
        }
        let processors = thread::available_parallelism().map_or(1, NonZero::get) as u64;
        let (disk, unmapped) = (Disk::of(plan), Unmapped::of(whom));
        Watch { limits, whom, disk, unmapped, processors, next: Instant::now() + SHORT }
    }

    /// Waits until something can be read from one of these, or until the next look, and
    /// says which of them it is.
    pub(super) fn wait_for(&self, events: [&OwnedFd; 2]) -> io::Result<[bool; 2]> {
        let mut events = events.map(|fd| PollFd::new(fd, PollFlags::IN));
        child_end::wait_for_any(&mut events, self.next_look())?;
        Ok(events.map(|event| !event.revents().is_empty()))
    }

    /// When the next look is. `None` if there is nothing to look at.
    fn next_look(&self) -> Option<Instant> {
        let Limits { memory_mb, disk_mb, processes, .. } = &self.limits;
        let limited = [memory_mb, disk_mb, processes].iter().any(|limit| limit.is_some());
        limited.then_some(self.next)
    }

    /// Which limit is passed, if it is time for a look.
    pub(super) fn excess(&mut self) -> Option<Excess> {
        if self.next_look().is_none_or(|next| next > Instant::now()) {
            return None;
        }
        let processes = self.whom.processes();
        let mut rest = LONG;
        let excess = self
            .in_number(&processes, &mut rest)
            .or_else(|| self.in_memory(&processes, &mut rest))
            .or_else(|| self.on_the_disk(&processes, &mut rest));
        self.next = Instant::now() + rest.max(SHORT);
        excess
    }

    fn in_number(&self, processes: &[PathBuf], rest: &mut Duration) -> Option<Excess> {
        let limit = self.limits.processes?;
        let count = processes.iter().map(|path| threads(path)).sum();
        until_used(limit.saturating_sub(count), PROCESSES * self.processors, rest);
        (count > limit).then_some(Excess::Processes { count, limit })
    }

    fn on_the_disk(&mut self, processes: &[PathBuf], rest: &mut Duration) -> Option<Excess> {
        let (disk, limit) = (self.disk.as_mut()?, self.limits.disk_mb?);
        let excess = disk.excess(processes);
        until_used(disk.room() >> 20, DISK, rest);
        excess.map(|mb| Excess::Disk { mb, limit })
    }

    fn in_memory(&mut self, processes: &[PathBuf], rest: &mut Duration) -> Option<Excess> {
        let limit = self.limits.memory_mb?;
        let unmapped = self.unmapped.kb(processes, limit);
        let resident: u64 = processes.iter().map(|path| resident_kb(path)).sum();
        let all = (resident + unmapped) >> 10;
        until_used(limit.saturating_sub(all), MEMORY * self.processors, rest);
        if all <= limit {
            return None;
        }
        // Pages that several share were counted for each; now exactly, which takes
        // longer. Some of what was taken for unmapped is mapped after all.
        let mut mapped = 0;
        let mut share = 0;
        for path in processes {
            let [all, shared] = share_kb(path).unwrap_or_else(|| [resident_kb(path), 0]);
            share += all;
            mapped += shared;
        }
        let mb = (share + unmapped.saturating_sub(mapped)) >> 10;
        (mb > limit).then_some(Excess::Memory { mb, limit })
    }
}

/// Rests no longer than it takes to use up this much at this speed.
fn until_used(room: u64, in_a_second: u64, rest: &mut Duration) {
    let ms = room.saturating_mul(1000) / in_a_second;
    *rest = (*rest).min(Duration::from_millis(ms));
}

impl Whom {
    fn processes(self) -> Vec<PathBuf> {
        match self {
            Whom::Everybody => {
                let own = PathBuf::from(format!("/proc/{}", std::process::id()));
                all().filter(|path| *path != own).collect()
            }
            Whom::Descendants => process_tree::descendants()
                .into_iter()
                .map(|it| PathBuf::from(format!("/proc/{}", it.pid)))
                .collect(),
        }
    }
}

fn all() -> impl Iterator<Item = PathBuf> {
    let seen = fs::read_dir("/proc").into_iter().flatten().flatten();
    let named_by_number = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    seen.map(|entry| entry.path()).filter(named_by_number)
}

/// What the kernel counts for the user of this process, wherever it was started.
pub(super) fn threads_of_this_user() -> u64 {
    let user = getuid().as_raw().to_string();
    let belongs = |path: &PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let owner = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        owner.and_then(|it| it.split_ascii_whitespace().next()) == Some(&*user)
    };
    all().filter(belongs).map(|path| threads(&path)).sum()
}

fn threads(process: &Path) -> u64 {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name in parentheses may contain anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().nth(17).and_then(|it| it.parse().ok()).unwrap_or(1)
}

fn resident_kb(process: &Path) -> u64 {
    let statm = fs::read_to_string(process.join("statm")).unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|it| it.parse().ok());
    pages.unwrap_or(0) * (rustix::param::page_size() as u64 >> 10)
}

/// What a process has of all its pages, and of those among them that are shared
/// memory.
fn share_kb(process: &Path) -> Option<[u64; 2]> {
    let text = fs::read_to_string(process.join("smaps_rollup")).ok()?;
    let of = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    Some([of("Pss:")?, of("Pss_Shmem:").unwrap_or(0)])
}
