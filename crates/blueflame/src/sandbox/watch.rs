//! Limits on all processes together, looked after by the first one in a sandbox.
//!
//! The kernel limits single processes; how many there are it only counts for
//! users other than root. What all of them take is added up here.

use std::fs;
use std::path::Path;

use super::plan::Limits;

/// A limit that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Memory { mb: u64, limit: u64 },
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
            Excess::Processes { count, limit } => {
                write!(f, "it had {count} processes and threads, more than {limit}, and was ended")
            }
        }
    }
}

/// Which limit is passed by the processes that this one sees.
pub(super) fn excess(limits: &Limits) -> Option<Excess> {
    let own = std::process::id().to_string();
    let seen = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let others: Vec<_> = seen
        .filter(|path| {
            path.file_name().is_some_and(|name| {
                name.as_encoded_bytes().iter().all(u8::is_ascii_digit) && *name != *own
            })
        })
        .collect();
    if let Some(limit) = limits.processes {
        let count = others.iter().map(|path| threads(path)).sum();
        if count > limit {
            return Some(Excess::Processes { count, limit });
        }
    }
    let limit = limits.memory_mb?;
    let resident: u64 = others.iter().map(|path| resident_kb(path)).sum();
    if resident >> 10 <= limit {
        return None;
    }
    // Pages that several share were counted for each; now exactly, which takes
    // longer.
    let share = |path: &Path| share_kb(path).unwrap_or_else(|| resident_kb(path));
    let mb = others.iter().map(|path| share(path)).sum::<u64>() >> 10;
    (mb > limit).then_some(Excess::Memory { mb, limit })
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

fn share_kb(process: &Path) -> Option<u64> {
    let text = fs::read_to_string(process.join("smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
