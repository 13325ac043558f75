//! How much of the disk is filled from inside a sandbox.
//!
//! Nobody but root can have the kernel limit that, so it is looked at: how full
//! the file systems are, which is quick, and when they have become fuller, what
//! was written in the places that can be written, which takes longer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{StatVfs, statvfs};
use rustix::time::{ClockId, clock_gettime};

use super::plan::{Plan, View};

/// What a name takes, however short the file: names can be too many as well.
const NAME: u64 = 1 << 10;

/// Growth that is not worth a look.
const LITTLE: u64 = 4 << 20;

/// How much longer to rest than the last look took, so that looking stays cheap;
/// and when to look even if nothing seems to grow.
const REST: u32 = 10;
const LONG_REST: u32 = 100;
const AT_LEAST_EVERY: Duration = Duration::from_secs(10);

/// What fills up.
pub(super) struct Disk {
    limit: u64,
    /// What can be written, none inside another.
    places: Vec<PathBuf>,
    /// What only looks as if it were in there.
    others: BTreeSet<PathBuf>,
    /// One place on each file system.
    systems: BTreeMap<u64, PathBuf>,
    /// When it began, as the file systems tell time.
    began: (i64, i64),
    looked: Instant,
    took: Duration,
    /// As of the last look.
    written: u64,
    full: u64,
    /// By how much the file systems have become fuller since.
    grown: u64,
}

impl Disk {
    /// `None` if there is no limit.
    pub(super) fn of(plan: &Plan) -> Option<Disk> {
        let limit = plan.limits.disk_mb? << 20;
        let chosen = |wanted: fn(&View) -> bool| {
            plan.views.iter().filter(move |(_, view)| wanted(view)).map(|(path, _)| path.clone())
        };
        let others = chosen(|view| !matches!(view, View::Write(_))).collect();
        let mut places: Vec<PathBuf> = Vec::new();
        // Those above come first.
        for path in chosen(|view| matches!(view, View::Write(_))) {
            if !places.iter().any(|place| path.starts_with(place)) {
                places.push(path);
            }
        }
        let systems = places
            .iter()
            .filter_map(|path| Some((fs::metadata(path).ok()?.dev(), path.clone())))
            .collect();
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let mut disk = Disk {
            limit,
            places,
            others,
            systems,
            began: (now.tv_sec, now.tv_nsec),
            looked: Instant::now(),
            took: Duration::ZERO,
            written: 0,
            full: 0,
            grown: 0,
        };
        disk.full = disk.fullness();
        Some(disk)
    }

    /// How many MiB were written, if those are too many.
    pub(super) fn excess(&mut self, processes: &[PathBuf]) -> Option<u64> {
        let rested = self.looked.elapsed();
        self.grown = self.fullness().saturating_sub(self.full);
        // In half of what is left it cannot have passed the limit.
        let enough = (self.limit.saturating_sub(self.written) / 2).max(LITTLE.min(self.limit));
        let due = (self.grown >= enough && rested >= self.took * REST)
            || rested >= AT_LEAST_EVERY.max(self.took * LONG_REST);
        if !due {
            return None;
        }
        let begun = Instant::now();
        self.full = self.fullness();
        self.grown = 0;
        self.written = self.look(processes);
        self.looked = Instant::now();
        self.took = begun.elapsed();
        (self.written > self.limit).then_some(self.written >> 20)
    }

    /// How many bytes can still be written, even if all that was written anywhere was
    /// written here.
    pub(super) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.written + self.grown)
    }

    /// What all of these file systems hold, whoever it belongs to.
    fn fullness(&self) -> u64 {
        let used = |found: StatVfs| (found.f_blocks - found.f_bfree) * found.f_frsize;
        self.systems.values().filter_map(|path| statvfs(path).ok()).map(used).sum()
    }

    fn look(&self, processes: &[PathBuf]) -> u64 {
        let mut sum = Sum { began: self.began, seen: BTreeSet::new(), bytes: 0 };
        let mut left = self.places.clone();
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if self.others.contains(&path) {
                    continue;
                }
                let Ok(found) = entry.metadata() else { continue };
                sum.add(&found);
                if found.is_dir() {
                    left.push(path);
                }
            }
        }
        // What has no name any more takes its room until it is closed.
        for found in processes.iter().flat_map(|it| nameless(it)) {
            if self.systems.contains_key(&found.dev()) {
                sum.add(&found);
            }
        }
        sum.bytes
    }
}

/// What was written since the beginning, each file once.
struct Sum {
    began: (i64, i64),
    seen: BTreeSet<(u64, u64)>,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, found: &Metadata) {
        // Nobody can set this time.
        let new = (found.ctime(), found.ctime_nsec()) >= self.began;
        let several = !found.is_dir() && found.nlink() != 1;
        if new && (!several || self.seen.insert((found.dev(), found.ino()))) {
            self.bytes += found.blocks() * 512 + NAME;
        }
    }
}

/// Files that a process has open and that were removed.
fn nameless(process: &Path) -> Vec<Metadata> {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let open = open.filter_map(|entry| fs::metadata(entry.path()).ok());
    open.filter(|found| found.is_file() && found.nlink() == 0).collect()
}
