//! Limits that the kernel keeps: on each process, and on how many there are.

use std::fs;
use std::io;

use blueflame_core::config::ProcessLimit;
use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use super::headcount::Headcount;
use super::launch::step;
use super::plan::{Limits, Plan, Tier};
use super::watch;

/// Between the signal that names the limit on processor time and the end.
const LAST_WORDS: u64 = 2;

/// Sets what holds for this process and for each that it starts.
pub(super) fn of_each(plan: &Plan) -> io::Result<()> {
    let limits = &plan.limits;
    let mega = |mb: Option<u64>| mb.map(|mb| mb << 20);
    // Without a namespace, all that the user has started elsewhere counts too.
    let others = match plan.tier {
        Tier::Landlock => watch::threads_of_this_user(),
        Tier::Namespaces | Tier::Off => 0,
    };
    for (resource, most, last_words) in [
        // A single process; all of them together are looked after elsewhere.
        (Resource::Data, mega(limits.memory_mb), 0),
        (Resource::Cpu, limits.cpu_seconds, LAST_WORDS),
        (Resource::Fsize, mega(limits.file_mb), 0),
        (Resource::Nofile, limits.open_files, 0),
        (Resource::Nproc, limits.processes.map(|most| most + others), 0),
        (Resource::Core, Some(0), 0),
    ] {
        let Some(most) = most else { continue };
        let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit {
            current: Some(most.min(allowed)),
            maximum: Some((most + last_words).min(allowed)),
        };
        setrlimit(resource, limit).map_err(|error| step("limits", &error.into()))?;
    }
    Ok(())
}

/// The limit that a program's end by this signal speaks of, in words that go
/// after it; empty for all others.
pub fn limit_behind(signal: i32) -> &'static str {
    match signal {
        libc::SIGXCPU => ": more processor time than `sandbox.max_cpu_seconds`",
        libc::SIGXFSZ => ": a larger file than `sandbox.max_file_size_mb`",
        _ => "",
    }
}

/// A control group that counts, for root, whose processes the kernel does not
/// limit otherwise. `Ok(None)` where it is not needed.
pub(super) fn headcount(limits: &Limits) -> io::Result<Option<Headcount>> {
    match limits.processes.filter(|_| geteuid().is_root()) {
        Some(most) => Headcount::of_at_most(most).map(Some),
        None => Ok(None),
    }
}

/// What counts the processes of root in a process namespace of its own.
#[derive(Debug)]
pub(super) enum Counting {
    /// The kernel's usual limit holds, or there is none.
    Usual,
    /// The namespace has so few numbers for processes.
    Numbers(u64),
    Group(Headcount),
}

/// Few numbers where they can be had: nobody has to be moved into anything, which
/// takes longer than all the rest of a start.
pub(super) fn counting(limits: &Limits) -> io::Result<Counting> {
    match limits.processes.filter(|_| geteuid().is_root()) {
        Some(most) if numbers_are_settable() => Ok(Counting::Numbers(most)),
        _ => Ok(headcount(limits)?.map_or(Counting::Usual, Counting::Group)),
    }
}

fn numbers_are_settable() -> bool {
    let release = rustix::system::uname();
    // Before that the number was the machine's, and root could change it.
    version(&release.release().to_string_lossy()) >= (6, 14)
        && [HIGHEST, LAST].iter().all(|path| access(*path, Access::WRITE_OK).is_ok())
}

/// Leaves as many numbers as there may be processes, to be called by the first
/// process in a namespace.
pub(super) fn few_numbers(most: u64) -> io::Result<()> {
    fs::write(HIGHEST, (most + RESERVED).to_string())?;
    // The reserved ones would be given out a first time.
    fs::write(LAST, (RESERVED - 1).to_string())
}

/// One more than the highest number that is given out.
const HIGHEST: &str = "/proc/sys/kernel/pid_max";

/// The number that was given out last.
const LAST: &str = "/proc/sys/kernel/ns_last_pid";

/// The kernel does not go back below this number.
const RESERVED: u64 = 300;

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|it: char| !it.is_ascii_digit()).map(str::parse);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next())
}

/// Whether to go on without the kernel.
pub(super) fn uncounted(limits: &Limits, why: &io::Error) -> io::Result<()> {
    match limits.counting {
        ProcessLimit::Watched => Ok(()),
        ProcessLimit::Kernel => {
            let why = format!("the kernel does not count those of root: {why}");
            Err(step(super::probe::UNCOUNTED, &io::Error::other(why)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_kernel_writes_them() {
        for (release, expected) in [
            ("6.18.44-fc-v490", (6, 18)),
            ("6.14.0-rc1", (6, 14)),
            ("5.15-custom", (5, 15)),
            ("nothing", (0, 0)),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }
}
