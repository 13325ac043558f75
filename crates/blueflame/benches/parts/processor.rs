//! What processes have cost, as the kernel counts it.

use std::fs;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How often a process is looked at: looking takes time from what is measured.
const LOOK: Duration = Duration::from_millis(200);

/// What was seen of one process.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// Its own time on a processor.
    pub own: Duration,
    /// That of all that it started and waited for, and of what those did.
    pub children: Duration,
    pub peak_kib: u64,
}

/// The time that a process has had on processors, all its threads together. What `stat`
/// says of that is in hundredths of a second, each part of it rounded down.
#[expect(unsafe_code, reason = "no safe wrapper has the clock of another process")]
fn clock_of(pid: u32) -> Option<Duration> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both write to what they are given here, and keep nothing of it.
    let read = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let time = Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?);
    read.then_some(time)
}

/// A process as it is now, also one that has ended and was not waited for yet.
pub fn look(pid: u32) -> Option<Cost> {
    let own = clock_of(pid)?;
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
    Some(Cost { own, children: time(13), peak_kib: peak.unwrap_or(0) })
}

/// What a process has cost when it ends. Until then, `beside` is called now and then
/// with its number.
pub fn until_it_ends(child: &mut Child, mut beside: impl FnMut(u32)) -> (ExitStatus, Cost) {
    let pid = child.id();
    // Its handle can be read when it has ended, and it need not be waited for then.
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let ended = || {
        let timeout = Timespec::try_from(LOOK).unwrap();
        let mut events = [PollFd::new(&handle, PollFlags::IN)];
        poll(&mut events, Some(&timeout)).unwrap();
        !events[0].revents().is_empty()
    };
    let mut peak_kib = 0;
    while !ended() {
        peak_kib = look(pid).map_or(0, |it| it.peak_kib).max(peak_kib);
        beside(pid);
    }
    // Its times are there until it is waited for, and its memory is not.
    let cost = Cost { peak_kib, ..look(pid).unwrap() };
    (child.wait().unwrap(), cost)
}
