//! Memory that no process has in its address space: what was written to files in
//! memory that have no name, and to shared memory of the old kind.
//!
//! The kernel tells neither with the memory of a process. Finding it takes a look at
//! every descriptor, so that is done only when the whole machine has more of such
//! memory than before.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::watch::Whom;

/// Growth that is not worth a look, as a part of the limit.
const LITTLE: u64 = 8;

/// As of the last look, in KiB.
pub(super) struct Unmapped {
    whom: Whom,
    /// What there was on the machine.
    machine: u64,
    found: u64,
}

impl Unmapped {
    pub(super) fn of(whom: Whom) -> Unmapped {
        Unmapped { whom, machine: on_the_machine(), found: 0 }
    }

    /// How much these processes keep that way, in KiB.
    pub(super) fn kb(&mut self, processes: &[PathBuf], limit_mb: u64) -> u64 {
        let machine = on_the_machine();
        let little = (limit_mb << 10) / LITTLE;
        let grown = machine.saturating_sub(self.machine) >= little;
        // What was much may have become less.
        if grown || self.found >= little {
            self.machine = machine;
            self.found =
                nameless(processes) + if self.whom == Whom::Everybody { segments() } else { 0 };
        }
        self.found
    }
}

fn on_the_machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:"));
    line.and_then(|it| it.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Files in memory, each once whoever has it open.
fn nameless(processes: &[PathBuf]) -> u64 {
    let mut seen = BTreeSet::new();
    let mut kb = 0;
    for path in processes.iter().flat_map(|it| opened(it)) {
        let name = fs::read_link(&path).unwrap_or_default();
        let in_memory = name.as_os_str().as_encoded_bytes().starts_with(b"/memfd:");
        if let Some(file) = in_memory.then(|| fs::metadata(&path).ok()).flatten()
            && seen.insert(file.ino())
        {
            kb += file.blocks() / 2;
        }
    }
    kb
}

fn opened(process: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Shared memory of the namespace that this process is in. Without one it is the
/// machine's, and none of it can be had inside.
fn segments() -> u64 {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let mut lines = text.lines();
    let Some(resident) =
        lines.next().and_then(|head| head.split_ascii_whitespace().position(|name| name == "rss"))
    else {
        return 0;
    };
    let bytes = |line: &str| line.split_ascii_whitespace().nth(resident)?.parse::<u64>().ok();
    lines.filter_map(bytes).sum::<u64>() >> 10
}
