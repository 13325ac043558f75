//! Puts a plan into force and becomes the program.
//!
//! With namespaces there are three processes: this one, which stays outside,
//! waits, and ends the way the program ended; the first process inside, which
//! lays out the root and looks after limits; and its child, which becomes the
//! program. When either of the first two dies, the kernel ends everything
//! inside, whatever it did to get away.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, getegid, geteuid, getppid, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait, waitpid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};

use super::headcount::Headcount;
use super::limits::Counting;
use super::plan::{Plan, Tier};
use super::syscalls::{self, Forked};
use super::watch::{Counted, Watch, Whom};
use super::{door, filter, limits, outsider, root, rules};

/// The variable in which the launcher finds the plan, as JSON. It is not passed
/// on.
pub const PLAN: &str = "BLUEFLAME_SANDBOX";

/// Who root is inside: nobody special.
const ORDINARY: u32 = 1000;

/// Becomes the program, or says why it could not. In the processes that stay
/// behind it never returns.
pub fn become_program(parent: u32, program: &[OsString]) -> io::Result<Infallible> {
    let plan = env::var(PLAN)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "no sandbox was planned"))?;
    let plan: Plan = serde_json::from_str(&plan)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that was in place.
    let alive = getppid().is_some_and(|now| u32::try_from(now.as_raw_pid()) == Ok(parent));
    if !alive {
        return Err(io::Error::other("the process that started it is gone"));
    }
    #[cfg(target_os = "macos")]
    if plan.tier != Tier::Off {
        setsid()?;
        return exec(&super::profile::confined(&plan, program));
    }
    match plan.tier {
        Tier::Off => {
            setsid()?;
            exec(program)
        }
        Tier::Landlock => outsider::start(&plan, parent, program),
        Tier::Namespaces => namespaces(&plan, program),
    }
}

pub(super) fn exec(program: &[OsString]) -> io::Result<Infallible> {
    let [program, arguments @ ..] = program else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "which program?"));
    };
    Err(Command::new(program).args(arguments).env_remove(PLAN).exec())
}

fn namespaces(plan: &Plan, program: &[OsString]) -> io::Result<Infallible> {
    let here = env::current_dir()?;
    let counting = limits::counting(&plan.limits);
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    syscalls::unshare(
        UnshareFlags::NEWUSER
            | UnshareFlags::NEWNS
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWCGROUP,
    )
    .map_err(|error| step("namespaces", &error))?;
    let inside = |id| if id == 0 { ORDINARY } else { id };
    fs::write("/proc/self/setgroups", "deny").map_err(|error| step("setgroups", &error))?;
    fs::write("/proc/self/uid_map", format!("{} {user} 1\n", inside(user)))
        .map_err(|error| step("uid_map", &error))?;
    fs::write("/proc/self/gid_map", format!("{} {group} 1\n", inside(group)))
        .map_err(|error| step("gid_map", &error))?;
    let (lifeline, held) = io::pipe()?;
    let (told, tell) = io::pipe()?;
    let (go, release) = io::pipe()?;
    match syscalls::fork()? {
        Forked::Parent { child } => {
            drop((lifeline, tell, go));
            let mut headcount = match counting {
                Ok(Counting::Group(headcount)) => Some(headcount),
                Ok(Counting::Usual | Counting::Numbers(_)) | Err(_) => None,
            };
            let counted = headcount.as_mut().map_or(Ok(()), |group| group.count(child));
            let counted = counted.map_err(|error| error.to_string());
            serde_json::to_writer(release, &counted)?;
            outside(child, told, headcount)
        }
        Forked::Child => {
            drop((held, told, release));
            let counted = counting.and_then(|counting| match counting {
                Counting::Numbers(most) => limits::few_numbers(most),
                Counting::Usual | Counting::Group(_) => Ok(()),
            });
            let ends = Ends { lifeline: lifeline.into(), tell, go };
            first_inside(plan, program, &here, counted, ends)
        }
    }
}

/// Waits for the first process inside, and ends the way the program ended. It is
/// asked to end along with the rest, and must not: the program would be killed
/// before it could act on the request.
fn outside(child: i32, mut told: io::PipeReader, headcount: Option<Headcount>) -> ! {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let _ = syscalls::ignore(signal);
    }
    // Whoever reads what the program says must not wait for us.
    let _ = let_go_of_streams(Streams::ButErrors);
    let status = Pid::from_raw(child).and_then(|child| {
        loop {
            match waitpid(Some(child), WaitOptions::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other.ok().flatten(),
            }
        }
    });
    if let Some(headcount) = headcount {
        headcount.end();
    }
    let mut words = Vec::new();
    let _ = told.read_to_end(&mut words);
    match serde_json::from_slice(&words) {
        Ok(end) => end_like(end),
        // It could not begin, and has said why; or it was killed.
        Err(_) => match status.and_then(|(_, status)| status.exit_status()) {
            Some(code) => syscalls::leave(code),
            None => syscalls::end_by(libc::SIGKILL),
        },
    }
}

/// What the last words about a program begin with that was ended for taking too
/// much.
const EXCESS: &str = "blueflame: over a limit: ";

/// Why a program was ended, from what was last said on its error stream. The
/// program could have said so itself; nothing but words follows from it.
pub fn excess_told(complaint: &str) -> Option<&str> {
    complaint.lines().rev().find_map(|line| line.strip_prefix(EXCESS))
}

/// Ends this process the way the program ended.
pub(super) fn end_like(end: End) -> ! {
    match end {
        End::Exited(code) => syscalls::leave(code),
        End::Killed(signal) => syscalls::end_by(signal),
        End::Excess(why) => {
            let _ = writeln!(io::stderr(), "{EXCESS}{why}");
            syscalls::end_by(libc::SIGKILL)
        }
    }
}

/// How the program ended, as the first process inside tells it.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) enum End {
    Exited(i32),
    Killed(i32),
    Excess(String),
}

/// What joins the first process inside with the one that stayed outside.
struct Ends {
    /// Open for as long as that one lives.
    lifeline: OwnedFd,
    /// For how the program ended.
    tell: io::PipeWriter,
    /// Says whether processes are counted now.
    go: io::PipeReader,
}

fn first_inside(
    plan: &Plan,
    program: &[OsString],
    here: &Path,
    counted: io::Result<()>,
    mut ends: Ends,
) -> io::Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if hung_up(ends.lifeline.as_fd()) {
        return Err(io::Error::other("the launcher is gone"));
    }
    syscalls::host_name(c"sandbox").map_err(|error| step("the host name", &error))?;
    syscalls::loopback_up().map_err(|error| step("the loopback device", &error))?;
    if let Some(door) = plan.door {
        door::hand_out(door).map_err(|error| step("the way to the gateway", &error))?;
    }
    root::build(plan).map_err(|error| step("the root", &error))?;
    let in_a_group: Result<(), String> = serde_json::from_reader(&mut ends.go)?;
    let counted = match counted.and(in_a_group.map_err(io::Error::other)) {
        Ok(()) => Counted::ByTheKernel,
        Err(why) => {
            limits::uncounted(&plan.limits, &why)?;
            Counted::ByUs
        }
    };
    // The program has the same user; it must not look into us.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    match syscalls::fork()? {
        Forked::Child => {
            setsid()?;
            env::set_current_dir(here)
                .map_err(|error| step(&format!("`{}`", here.display()), &error))?;
            confine(plan)?;
            exec(program)
        }
        Forked::Parent { child } => {
            let _ = let_go_of_streams(Streams::All);
            drop_capabilities()?;
            let end = attend(child, Watch::over(plan, Whom::Everybody, counted), &ends.lifeline)?;
            let _ = serde_json::to_writer(&mut ends.tell, &end);
            // And with us everything that is still inside.
            syscalls::leave(0)
        }
    }
}

/// Takes leave of all that ends inside, until the program does.
fn attend(program: i32, mut watch: Watch, lifeline: &OwnedFd) -> io::Result<End> {
    let program = Pid::from_raw(program).ok_or_else(|| io::Error::other("no such process"))?;
    let ends = syscalls::ends_of_children()?;
    loop {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid != program {
                continue;
            }
            return Ok(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => End::Exited(code),
                (None, Some(signal)) => End::Killed(signal),
                (None, None) => End::Killed(libc::SIGKILL),
            });
        }
        if let Some(excess) = watch.excess() {
            return Ok(End::Excess(excess.to_string()));
        }
        let [ended, alone] = watch.wait_for([&ends, lifeline])?;
        if alone {
            return Ok(End::Killed(libc::SIGKILL));
        }
        if ended {
            syscalls::take_note(&ends)?;
        }
    }
}

/// The last steps, in the process that becomes the program.
fn confine(plan: &Plan) -> io::Result<()> {
    prepare(plan)?;
    filter::apply(plan.tier).map_err(|error| step("the system call filter", &error))
}

/// All of them but the filter.
pub(super) fn prepare(plan: &Plan) -> io::Result<()> {
    limits::of_each(plan)?;
    set_no_new_privs(true)?;
    rules::apply(plan).map_err(|error| step("Landlock", &error))?;
    syscalls::drop_bounding_set();
    drop_capabilities()?;
    syscalls::keep_from_programs(3)
}

fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, none)?)
}

/// Which of its streams a process that stays behind gives up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    All,
    ButErrors,
}

pub(super) fn let_go_of_streams(streams: Streams) -> io::Result<()> {
    let nothing = fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    if streams == Streams::All {
        rustix::stdio::dup2_stderr(&nothing)?;
    }
    Ok(())
}

/// Whether nobody holds the other end.
fn hung_up(lifeline: BorrowedFd<'_>) -> bool {
    let mut events = [PollFd::new(&lifeline, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut events, Some(&now)).is_ok() && !events[0].revents().is_empty()
}

pub(super) fn step(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the sandbox cannot be put up: {what}: {error}"))
}
