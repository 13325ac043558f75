//! What processes have cost, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// What was seen of one process.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// Its own time on a processor.
    pub own: Duration,
    /// That of all that it started and waited for, and of what those did.
    pub children: Duration,
    pub peak_kib: u64,
}

/// A process as it is now, also one that has ended and was not waited for yet.
pub fn look(pid: u32) -> Option<Cost> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let time = |from: usize| -> Duration {
        let ticks = fields.get(from..from + 2).unwrap_or_default().iter();
        Duration::from_millis(ticks.filter_map(|it| it.parse::<u64>().ok()).sum::<u64>() * 10)
    };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    Some(Cost { own: time(11), children: time(13), peak_kib: peak.unwrap_or(0) })
}
