//! One of the project's commands, run and followed.
//!
//! The words are the person's own, from `blueflame.yaml` or the plan, and are
//! given to `/bin/sh`. The command finds a directory, a home and a directory
//! for temporary files, and little else in its environment. It has a deadline,
//! its output is bounded, and nothing it started outlives it: a [`runner`]
//! sees to that.
//!
//! [`runner`]: super::runner

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::{UnixStream, unix::pipe};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::runner::{GRACE, Report, TERMS};
use crate::capture::Capture;
use crate::prompts::{Check, CheckResult};
use crate::room;
use crate::sandbox::{self, Terms};

/// What is kept of the output: its first and its last bytes.
const HEAD: usize = 16 << 10;
const TAIL: usize = 48 << 10;

/// The most that a file of output takes.
const MOST_KEPT: u64 = 64 << 20;

/// How long output is read when nothing that could write it is left: somebody
/// unknown may hold the pipe.
const AFTERMATH: Duration = Duration::from_millis(500);

/// How much longer than the deadline we wait for the runner, which has to end
/// everything first.
const PATIENCE: Duration = Duration::from_secs(10);

/// What commands find around them.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The `blueflame` program.
    pub program: PathBuf,
    /// `HOME` and `TMPDIR`, which have to exist and be nobody else's.
    pub home: PathBuf,
    pub tmp: PathBuf,
    /// `PATH`.
    pub path: OsString,
    /// Whatever else is in the environment. `LANG`, `TERM` and `CI` give way
    /// to it, `HOME` and `TMPDIR` do not.
    pub variables: BTreeMap<String, String>,
    /// What confines them.
    pub sandbox: Terms,
}

/// A command line and its limits.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub command: &'a str,
    /// Where it runs.
    pub directory: &'a Path,
    pub timeout: Duration,
    /// A file for all of the output, or the first 64 MiB of it.
    pub keep: Option<&'a Path>,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    pub command: String,
    pub exit: CommandExit,
    /// Both streams in the order they came, at most 64 KiB: the beginning and
    /// the end, with a line in between that tells how much was left out.
    pub output: String,
    pub took: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandExit {
    Passed,
    Failed {
        code: i32,
    },
    Killed {
        signal: i32,
    },
    TimedOut {
        after: Duration,
    },
    /// The session stops.
    Stopped,
    NotStarted {
        why: String,
    },
}

impl CommandResult {
    pub fn passed(&self) -> bool {
        self.exit == CommandExit::Passed
    }

    /// Why it says nothing about what was tried: it failed because one of the
    /// places that it writes to is full.
    pub fn lacks_room(&self, places: &[&Path]) -> Option<String> {
        let failed = !matches!(self.exit, CommandExit::Passed | CommandExit::Stopped);
        let why = failed.then(|| room::lacking(places, &self.output)).flatten()?;
        Some(format!("`{}` {}, and {why}", self.command, self.exit))
    }

    /// As validators are told of it; `None` for one that did not run.
    pub fn as_check(&self) -> Option<Check<'_>> {
        let result = match &self.exit {
            CommandExit::Passed => CheckResult::Passed,
            CommandExit::Failed { code } => CheckResult::Failed { code: Some(*code) },
            CommandExit::Killed { .. } => CheckResult::Failed { code: None },
            CommandExit::TimedOut { .. } => CheckResult::TimedOut,
            CommandExit::Stopped | CommandExit::NotStarted { .. } => return None,
        };
        Some(Check { command: &self.command, result, output: &self.output })
    }
}

impl fmt::Display for CommandExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandExit::Passed => f.write_str("passed"),
            CommandExit::Failed { code } => {
                // How a shell tells of a signal.
                write!(f, "failed with exit code {code}{}", sandbox::limit_behind(code - 128))
            }
            CommandExit::Killed { signal } => {
                write!(f, "was ended by signal {signal}{}", sandbox::limit_behind(*signal))
            }
            CommandExit::TimedOut { after } => {
                write!(f, "took longer than {} s and was stopped", after.as_secs_f32())
            }
            CommandExit::Stopped => f.write_str("was stopped with the session"),
            CommandExit::NotStarted { why } => write!(f, "could not be run: {why}"),
        }
    }
}

/// Runs a command to its end, or until `stop` says true. A call that is dropped
/// ends the command and all that it started as well, a moment later.
pub async fn run(
    order: Order<'_>,
    surroundings: &Surroundings,
    stop: &mut watch::Receiver<bool>,
) -> CommandResult {
    let begun = Instant::now();
    let mut output = Output::of(order.keep);
    let exit = if *stop.borrow() {
        CommandExit::Stopped
    } else {
        match start(order, surroundings) {
            Ok(running) => running.follow(order.timeout, &mut output, stop).await,
            Err(error) => CommandExit::NotStarted { why: error.to_string() },
        }
    };
    let command = order.command.to_owned();
    CommandResult { command, exit, output: output.into_text(), took: begun.elapsed() }
}

/// A runner at work.
struct Running {
    runner: Child,
    /// It ends everything when this is closed.
    socket: UnixStream,
    output: pipe::Receiver,
}

fn start(order: Order<'_>, surroundings: &Surroundings) -> io::Result<Running> {
    if !order.directory.is_dir() {
        return Err(io::Error::other(format!("`{}` is no directory", order.directory.display())));
    }
    let terms = surroundings.sandbox.clone();
    let terms = Terms { limits: terms.limits.of_commands(), ..terms };
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = theirs.into_std()?;
    theirs.set_nonblocking(false)?;
    let (reader, writer) = io::pipe()?;
    let mut runner = Command::new(&surroundings.program);
    runner
        .arg("__run")
        .arg(order.timeout.as_millis().to_string())
        .arg("--")
        .arg(order.command)
        .current_dir(order.directory)
        .env_clear()
        .envs([("LANG", "C.UTF-8"), ("TERM", "dumb"), ("CI", "1")])
        .env("PATH", &surroundings.path)
        .envs(&terms.variables)
        .envs(&surroundings.variables)
        .env(TERMS, serde_json::to_string(&terms)?)
        .env("HOME", &surroundings.home)
        .env("TMPDIR", &surroundings.tmp)
        .stdin(OwnedFd::from(theirs))
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let child = runner.spawn()?;
    // Our own ends of the pipe and the socket close here.
    drop(runner);
    Ok(Running {
        runner: child,
        socket: ours,
        output: pipe::Receiver::from_owned_fd(reader.into())?,
    })
}

impl Running {
    async fn follow(
        mut self,
        limit: Duration,
        output: &mut Output,
        stop: &mut watch::Receiver<bool>,
    ) -> CommandExit {
        let told = {
            let told = async {
                let mut line = Vec::new();
                BufReader::new(&mut self.socket).read_until(b'\n', &mut line).await.ok()?;
                serde_json::from_slice::<Report>(&line).ok()
            };
            let reading = async {
                drain(&mut self.output, output).await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                told = told => Some(told),
                () = reading => None,
                () = stopped(stop) => None,
                () = tokio::time::sleep(limit.saturating_add(GRACE + PATIENCE)) => {
                    let _ = self.runner.start_kill();
                    Some(Some(Report::OutOfTime))
                }
            }
        };
        let exit = match told {
            Some(Some(report)) => exit(report, limit),
            Some(None) => self.without_report().await,
            None => {
                drop(self.socket);
                let ending =
                    async { tokio::join!(self.runner.wait(), drain(&mut self.output, output)).0 };
                let _ = timeout(GRACE + PATIENCE, ending).await;
                return CommandExit::Stopped;
            }
        };
        let _ = timeout(AFTERMATH, drain(&mut self.output, output)).await;
        let _ = timeout(AFTERMATH, self.runner.wait()).await;
        exit
    }

    /// The runner is gone and told nothing: somebody killed it, or it is no
    /// runner at all.
    async fn without_report(&mut self) -> CommandExit {
        match timeout(AFTERMATH, self.runner.wait()).await {
            Ok(Ok(status)) => match status.signal() {
                Some(signal) => CommandExit::Killed { signal },
                None => CommandExit::NotStarted { why: format!("its runner ended: {status}") },
            },
            Ok(Err(error)) => CommandExit::NotStarted { why: error.to_string() },
            Err(_) => CommandExit::NotStarted { why: "its runner says nothing".to_owned() },
        }
    }
}

fn exit(report: Report, limit: Duration) -> CommandExit {
    match report {
        Report::Exited { code: 0 } => CommandExit::Passed,
        Report::Exited { code } => CommandExit::Failed { code },
        Report::Killed { signal } => CommandExit::Killed { signal },
        Report::OutOfTime => CommandExit::TimedOut { after: limit },
        Report::Cancelled => CommandExit::Stopped,
        Report::NotStarted { why } => CommandExit::NotStarted { why },
    }
}

/// Ends when the session stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Without anyone who could say so, it never does.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Takes output until there is no more.
async fn drain(pipe: &mut pipe::Receiver, output: &mut Output) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        output.take(&buffer[..count]);
    }
}

/// Output on its way into memory and, if wanted, a file.
struct Output {
    shown: Capture,
    file: Option<File>,
    room: u64,
    left_out: u64,
}

impl Output {
    fn of(keep: Option<&Path>) -> Self {
        let mut output =
            Output { shown: Capture::of(HEAD, TAIL), file: None, room: MOST_KEPT, left_out: 0 };
        let open = |path| File::options().create(true).append(true).mode(0o600).open(path);
        match keep.map(open).transpose() {
            Ok(file) => output.file = file,
            Err(error) => output.note(&error),
        }
        output
    }

    fn take(&mut self, bytes: &[u8]) {
        self.shown.take(bytes);
        let Some(file) = &mut self.file else { return };
        let fits = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        let kept = file.write_all(&bytes[..fits]);
        self.room -= fits as u64;
        self.left_out += (bytes.len() - fits) as u64;
        if let Err(error) = kept {
            self.file = None;
            self.note(&error);
        }
    }

    /// A file that cannot be written is no reason not to run the command.
    fn note(&mut self, error: &io::Error) {
        self.shown.take(format!("(the output is not kept in a file: {error})\n").as_bytes());
    }

    fn into_text(mut self) -> String {
        if let Some(file) = &mut self.file
            && self.left_out > 0
        {
            let _ = writeln!(file, "\n… ({} bytes left out) …", self.left_out);
        }
        self.shown.into_text()
    }
}
