//! `blueflame __run`: one of the project's commands, and the end of all that
//! it started.
//!
//! The runner stands between the orchestrator and the command. It leads a
//! session of its own and adopts what loses its parents, so that a process
//! that forked twice and left its group is still found. When the command has
//! ended, when its time is up, or when nobody holds the other end of the
//! socket on standard input any more, everything below the runner goes: asked
//! first, then made to. What came of it is told on the same socket as one line
//! of JSON. Standard output and error belong to the command.
//!
//! The command runs in a sandbox that is drawn up here, where the files are as the
//! command finds them, and dies with its runner.

use std::env;
use std::ffi::OsStr;
use std::future;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use blueflame_core::policy::Reach;
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::process_tree;
use crate::sandbox::{self, Occupant, Terms};
use crate::workspace::enter;

/// How long killing is tried.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between the request to end and the end.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The same for what a command leaves behind when it ends by itself.
const GRACE_FOR_THE_REST: Duration = Duration::from_millis(200);

/// The variable in which the runner finds what confines the command, as JSON. It is
/// not passed on.
pub(super) const TERMS: &str = "BLUEFLAME_TERMS";

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    Exited { code: i32 },
    Killed { signal: i32 },
    OutOfTime,
    Cancelled,
    NotStarted { why: String },
}

/// Runs a command line to its end, whichever that is.
pub fn run(deadline: Duration, command: &OsStr) -> io::Result<()> {
    // It fails for who leads a process group already, which is as good.
    let _ = setsid();
    let here = env::current_dir()?;
    let entered = enter::enter(&here).and_then(|()| env::set_current_dir(&here));
    process_tree::adopt_orphans()?;
    // The command has the same user: it must not take our socket and lie.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let orchestrator = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    orchestrator.set_nonblocking(true)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut orchestrator = tokio::net::UnixStream::from_std(orchestrator)?;
        let report = match entered.and_then(|()| start(command, &here)) {
            Ok(child) => attend(child, deadline, &mut orchestrator).await,
            Err(error) => Report::NotStarted { why: error.to_string() },
        };
        let mut line = serde_json::to_vec(&report)?;
        line.push(b'\n');
        // There may be nobody left to tell.
        let _ = orchestrator.write_all(&line).await;
        Ok(())
    })
}

/// Every command is started here, and nowhere else.
fn start(command: &OsStr, here: &Path) -> io::Result<Child> {
    let program = env::current_exe()?;
    let place = |name: &str| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let terms: Terms = serde_json::from_str(&env::var(TERMS).map_err(io::Error::other)?)?;
    let occupant = Occupant {
        ground: here,
        reach: Reach::Everything,
        home: &place("HOME"),
        tmp: &place("TMPDIR"),
        programs: vec![&program],
        files: Vec::new(),
        gateway: None,
    };
    let plan = sandbox::draw(&terms, &occupant).map_err(io::Error::other)?;
    // It puts the sandbox up, and leads a session of its own. A command line may
    // begin with `-`.
    Command::new(&program)
        .arg("__launch")
        .arg(std::process::id().to_string())
        .args(["/bin/sh", "-c", "--"])
        .arg(command)
        .env_remove(TERMS)
        .env(sandbox::PLAN, serde_json::to_string(&plan)?)
        .stdin(Stdio::null())
        .spawn()
}

async fn attend(
    mut child: Child,
    deadline: Duration,
    orchestrator: &mut tokio::net::UnixStream,
) -> Report {
    let main = child.id();
    let mut terminate = signal(SignalKind::terminate()).ok();
    let asked_to_end = async {
        match &mut terminate {
            Some(terminate) => drop(terminate.recv().await),
            None => future::pending().await,
        }
    };
    let (report, grace) = tokio::select! {
        status = child.wait() => (ended(status), GRACE_FOR_THE_REST),
        () = tokio::time::sleep(deadline) => (Report::OutOfTime, GRACE),
        () = nobody_listens(orchestrator) => (Report::Cancelled, GRACE),
        () = asked_to_end => (Report::Cancelled, GRACE),
    };
    // What cannot be killed is past our powers; it is waited for no longer.
    let _ = process_tree::end_descendants(grace, PATIENCE, main).await;
    report
}

/// Ends when the other side has closed the socket. It never says anything.
async fn nobody_listens(orchestrator: &mut tokio::net::UnixStream) {
    let mut byte = [0];
    while let Ok(1..) = orchestrator.read(&mut byte).await {}
}

fn ended(status: io::Result<ExitStatus>) -> Report {
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => Report::Exited { code },
        Ok((None, Some(signal))) => Report::Killed { signal },
        Ok((None, None)) => Report::NotStarted { why: "it ended in an unknown way".to_owned() },
        Err(error) => Report::NotStarted { why: error.to_string() },
    }
}
