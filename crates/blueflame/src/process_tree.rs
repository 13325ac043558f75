//! Processes, known for sure and ended for sure.
//!
//! A process is known by its number, the time it started and the boot it
//! belongs to, so that a number that was given to another process later is
//! never signalled. Everything below this process is found in `/proc`; with
//! [`adopt_orphans`] that includes what left its parents behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use blueflame_core::event::Process;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{self, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};
use tokio::signal::unix::{SignalKind, signal as signals};
use tokio::time::timeout_at;

use crate::child_end::wait_for_any;

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: i32,
    start_time: u64,
    zombie: bool,
}

/// The identity of a running process; `None` if there is none with this number.
pub fn identify(pid: u32) -> Option<Process> {
    let stat = stat(i32::try_from(pid).ok()?)?;
    Some(Process { pid, start_time: stat.start_time, boot_id: boot_id() })
}

/// Whether the process still runs, and is the same.
pub fn is_running(process: &Process) -> bool {
    process.boot_id == boot_id()
        && i32::try_from(process.pid)
            .ok()
            .and_then(stat)
            .is_some_and(|stat| stat.start_time == process.start_time && !stat.zombie)
}

/// Sends a signal to a process if it is still the same.
pub fn signal(target: &Process, signal: Signal) -> io::Result<()> {
    let Some(pid) = i32::try_from(target.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    // The handle is taken first and the identity looked at after: from then on
    // the number cannot mean another process.
    let Ok(handle) = process::pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if !is_running(target) {
        return Ok(());
    }
    match process::pidfd_send_signal(handle, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Kills a process and waits, for at most `patience`, until it is gone.
pub fn kill_and_wait(target: &Process, patience: Duration) -> io::Result<()> {
    signal(target, Signal::KILL)?;
    wait_for_end(target, patience)
}

/// Waits, for at most `patience`, until a process is gone.
pub fn wait_for_end(target: &Process, patience: Duration) -> io::Result<()> {
    let Some(pid) = i32::try_from(target.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let Ok(handle) = process::pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if !is_running(target) {
        return Ok(());
    }
    let moment = Instant::now().checked_add(patience);
    wait_for_any(&mut [PollFd::new(&handle, PollFlags::IN)], moment)
}

/// Names this boot of the machine.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Makes orphans below this process its own children, so that none gets away.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(process::set_child_subreaper(Pid::from_raw(1))?)
}

/// Everything below this process, zombies left out.
pub fn descendants() -> Vec<Process> {
    let all = all();
    let boot_id = boot_id();
    let mut found = Vec::new();
    let mut parents = vec![process::getpid().as_raw_pid()];
    while let Some(parent) = parents.pop() {
        for (pid, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            parents.push(*pid);
            if !stat.zombie
                && let Ok(pid) = u32::try_from(*pid)
            {
                let boot_id = boot_id.clone();
                found.push(Process { pid, start_time: stat.start_time, boot_id });
            }
        }
    }
    found
}

/// Whether a process runs and is not below this one. With [`adopt_orphans`],
/// nothing that was started here ever gets outside.
pub fn is_outside(pid: i32) -> bool {
    let own = process::getpid().as_raw_pid();
    if pid <= 0 {
        // It is in a place that this process cannot see.
        return false;
    }
    let mut next = pid;
    // Parents die and numbers are used again: a walk that does not end is no
    // proof.
    for _ in 0..10_000 {
        match next {
            // The first process, or what is beyond it.
            0 | 1 => return true,
            _ if next == own => return false,
            _ => match stat(next) {
                Some(stat) => next = stat.parent,
                None => return false,
            },
        }
    }
    false
}

/// Something was still there when the time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivors;

/// Ends everything below this process: asks, waits for at most `grace`, and then
/// kills, for at most `patience`. Children that were adopted are taken leave of;
/// `awaited` is one that somebody else waits for.
///
/// A look into `/proc` that finds nothing proves nothing: a process that forks
/// and exits all the time is easily overlooked. The proof is that no children
/// are left, because with [`adopt_orphans`] every orphan becomes one.
pub async fn end_descendants(
    grace: Duration,
    patience: Duration,
    awaited: Option<u32>,
) -> Result<(), Survivors> {
    let deadline = tokio::time::Instant::now() + grace;
    // Whoever ends below this process is a child of it by then, or leaves some that
    // become so: each end that counts is told of. Asked for before anybody is.
    // Who gets no time needs no word either, nor what it takes to hear it.
    let mut ends = (!grace.is_zero()).then(|| signals(SignalKind::child()).ok()).flatten();
    for process in descendants() {
        let _ = signal(&process, Signal::TERM);
        // What is stopped cannot hear.
        let _ = signal(&process, Signal::CONT);
    }
    loop {
        reap(awaited);
        if none_left(awaited) {
            return Ok(());
        }
        let end = async {
            match &mut ends {
                Some(ends) => ends.recv().await,
                // Where nobody tells of them, all of the time is given.
                None => std::future::pending().await,
            }
        };
        if timeout_at(deadline, end).await.is_err() {
            break;
        }
    }
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        // Layer by layer: when a child dies, its children become ours. This is
        // quick enough to catch one that only lives for a moment; for a while
        // nobody else has a turn.
        let turn = std::time::Instant::now();
        while turn.elapsed() < Duration::from_millis(4) {
            for child in children() {
                // The number is the child's until we have taken leave of it.
                if let Some(pid) = Pid::from_raw(child) {
                    let _ = process::kill_process(pid, Signal::KILL);
                }
            }
            reap(awaited);
            if none_left(awaited) {
                return Ok(());
            }
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Survivors);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Whether there are no children, except for the end of one that is awaited.
fn none_left(awaited: Option<u32>) -> bool {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match process::waitid(WaitId::All, any) {
        Err(rustix::io::Errno::CHILD) => true,
        Ok(_) | Err(_) => awaited.is_some_and(|awaited| {
            let is_its_end = |child: &i32| {
                u32::try_from(*child) == Ok(awaited) && stat(*child).is_none_or(|it| it.zombie)
            };
            children().iter().all(is_its_end)
        }),
    }
}

/// Takes leave of adopted children that have ended.
fn reap(awaited: Option<u32>) {
    for child in children() {
        if u32::try_from(child).ok() != awaited
            && let Some(pid) = Pid::from_raw(child)
        {
            let _ = process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// The children of this process, ended or not.
fn children() -> Vec<i32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    let lists: io::Result<Vec<String>> = lists.collect();
    if let Ok(lists) = lists {
        return lists
            .iter()
            .flat_map(|list| list.split_ascii_whitespace())
            .flat_map(str::parse)
            .collect();
    }
    // A kernel without these lists.
    let own = process::getpid().as_raw_pid();
    all().into_iter().filter(|(_, stat)| stat.parent == own).map(|(pid, _)| pid).collect()
}

/// The processes that were started with this in their environment.
pub fn with_environment(variable: &str, value: &str) -> Vec<Process> {
    let pair = format!("{variable}={value}");
    with("environ", &pair)
}

/// Ends all processes that were started with this in their environment, and says how
/// many there were; those that are left when the time is up are the error.
pub fn end_marked(variable: &str, value: &str, patience: Duration) -> Result<usize, Vec<Process>> {
    let mut ended = BTreeSet::new();
    let until = Instant::now() + patience;
    loop {
        let left = with_environment(variable, value);
        if left.is_empty() {
            return Ok(ended.len());
        }
        if Instant::now() > until {
            return Err(left);
        }
        for process in left {
            let _ = signal(&process, Signal::KILL);
            ended.insert(process.pid);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes that have this among their arguments.
pub fn with_argument(argument: &str) -> Vec<Process> {
    with("cmdline", argument)
}

/// The processes that have this in a list that the kernel keeps of them.
fn with(list: &str, entry: &str) -> Vec<Process> {
    let own = std::process::id();
    let pids = all().into_keys().filter_map(|pid| u32::try_from(pid).ok());
    // Known first and looked at after: the list is that of this process or of
    // none.
    let known = pids.filter(|pid| *pid != own).filter_map(identify);
    let marked = |process: &Process| {
        let found = fs::read(format!("/proc/{}/{list}", process.pid)).unwrap_or_default();
        found.split(|byte| *byte == 0).any(|it| it == entry.as_bytes())
    };
    known.filter(|process| marked(process) && is_running(process)).collect()
}

fn all() -> BTreeMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect()
}

fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of the program stands in parentheses and may contain anything.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_in_parentheses_does_not_confuse() {
        let text = "12 (a) S 1) R 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let expected = Stat { parent: 7, start_time: 4242, zombie: false };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("12 (a"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_with_the_same_number_is_not_the_same_process() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let known = identify(child.id()).unwrap();
        assert!(is_running(&known));
        let other = Process { start_time: known.start_time + 1, ..known.clone() };
        signal(&other, Signal::KILL).unwrap();
        let earlier = Process { boot_id: "another".into(), ..known.clone() };
        signal(&earlier, Signal::KILL).unwrap();
        assert!(is_running(&known), "a stranger was killed");
        signal(&known, Signal::KILL).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!is_running(&known));
        signal(&known, Signal::KILL).unwrap();
    }
}
