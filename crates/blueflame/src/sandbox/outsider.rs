//! A sandbox without namespaces: the launcher stays outside as the parent of all,
//! answers for connections, looks after limits, and ends what is left.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, waitpid,
};

use super::launch::{End, Streams, end_like, exec, let_go_of_streams, prepare, step};
use super::plan::{Plan, View};
use super::syscalls::{self, Forked};
use super::watch::{Counted, Watch, Whom};
use super::{broker, filter, limits};
use crate::process_tree;

/// Without namespaces, this process stays outside: it answers for connections,
/// adopts whatever loses its parents, and ends all of it.
pub(super) fn start(plan: &Plan, parent: u32, program: &[OsString]) -> io::Result<Infallible> {
    // It has to outlive whoever started it for as long as it takes to end the rest.
    set_parent_process_death_signal(None)?;
    let starter = i32::try_from(parent).ok().and_then(Pid::from_raw);
    let starter = starter.ok_or_else(|| io::Error::other("who started it?"))?;
    let starter = pidfd_open(starter, PidfdFlags::empty())?;
    process_tree::adopt_orphans()?;
    let mut headcount = match limits::headcount(&plan.limits) {
        Ok(headcount) => headcount,
        Err(error) => {
            limits::uncounted(&plan.limits, &error)?;
            None
        }
    };
    let (mut ready, mut tell) = io::pipe()?;
    let (mut go, mut release) = io::pipe()?;
    match syscalls::fork()? {
        Forked::Child => {
            drop((ready, release));
            set_parent_process_death_signal(Some(Signal::KILL))?;
            setsid()?;
            prepare(plan)?;
            let questions = broker::install().map_err(|error| step("the broker", &error))?;
            tell.write_all(&questions.as_raw_fd().to_ne_bytes())?;
            // It is taken over by then.
            go.read_exact(&mut [0])?;
            drop(questions);
            filter::apply(plan.tier).map_err(|error| step("the system call filter", &error))?;
            exec(program)
        }
        Forked::Parent { child } => {
            drop((tell, go));
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                syscalls::ignore(signal)?;
            }
            let counted = headcount.as_mut().map_or(Ok(()), |group| group.count(child));
            let counted = counted.or_else(|error| limits::uncounted(&plan.limits, &error));
            if let Err(error) = &counted {
                let _ = writeln!(io::stderr(), "{error}");
            }
            let mut number = [0; 4];
            let taken = counted.and_then(|()| ready.read_exact(&mut number)).and_then(|()| {
                let questions = broker::take_over(child, i32::from_ne_bytes(number))?;
                release.write_all(&[0])?;
                Ok(questions)
            });
            let _ = let_go_of_streams(Streams::ButErrors);
            set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            let end = taken.and_then(|questions| attend(plan, child, questions, &starter));
            end_all();
            if let Some(headcount) = headcount {
                headcount.end();
            }
            match end {
                Ok(end) => end_like(end),
                // It has said why.
                Err(_) => syscalls::leave(3),
            }
        }
    }
}

/// Has questions answered until the program ends, or whoever started it does.
fn attend(plan: &Plan, child: i32, questions: OwnedFd, starter: &OwnedFd) -> io::Result<End> {
    let places = plan
        .views
        .iter()
        .filter_map(|(path, view)| match view {
            View::Write(_) => Some(path.clone()),
            View::Read(from) if plan.gateway.as_deref() == Some(path) => Some(from.clone()),
            View::Read(_) | View::Link(_) | View::Fresh(_) => None,
        })
        .collect();
    let child = Pid::from_raw(child).ok_or_else(|| io::Error::other("no such process"))?;
    let running = pidfd_open(child, PidfdFlags::empty())?;
    broker::answer_all(questions, places, plan.door)?;
    // Of all that the user of this process has, the kernel counts together.
    let mut watch = Watch::over(plan, Whom::Descendants, Counted::ByUs);
    loop {
        let [ended, alone] = watch.wait_for([&running, starter])?;
        if alone {
            return Ok(End::Killed(libc::SIGKILL));
        }
        if ended && let Ok(Some((_, status))) = waitpid(Some(child), WaitOptions::NOHANG) {
            return Ok(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => End::Exited(code),
                (None, signal) => End::Killed(signal.unwrap_or(libc::SIGKILL)),
            });
        }
        if let Some(excess) = watch.excess() {
            return Ok(End::Excess(excess.to_string()));
        }
    }
}

/// Ends everything below this process; all orphans are its children.
fn end_all() {
    let (grace, patience) = (Duration::ZERO, Duration::from_secs(10));
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() {
        let _ = runtime.block_on(process_tree::end_descendants(grace, patience, None));
    }
}
