//! The orchestrator's side: starting attempts, and talking to those that run.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::directory::{Directory, DirectoryError, Registered};
use super::messages::{Command, Report};
use super::run::HELD;
use super::spec::Secrets;
use crate::child_end::Timed;

/// How long an attempt process may take to come up, on a busy machine.
const REGISTRATION: Duration = Duration::from_secs(60);

/// The longest registration.
const LONGEST: u64 = 64 << 10;

/// Why an attempt process did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the attempt process could not be started: {0}")]
    Spawn(#[from] io::Error),
    #[error("the attempt process gave up: {0}")]
    GaveUp(String),
    #[error("another process already runs the attempt")]
    Held,
    #[error("the attempt process did not come up within {} s", within.as_secs())]
    TooSlow { within: Duration },
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

/// A process that has the attempt, and where it listens.
#[derive(Debug)]
pub struct Started {
    pub child: Child,
    pub registered: Registered,
}

/// Starts the attempt process for a directory, and waits until it can be
/// reached.
///
/// What an earlier process may have left behind is ended first.
pub fn start(
    blueflame: &Path,
    directory: &Directory,
    secrets: &Secrets,
) -> Result<Started, StartError> {
    start_within(REGISTRATION, blueflame, directory, secrets)
}

fn start_within(
    within: Duration,
    blueflame: &Path,
    directory: &Directory,
    secrets: &Secrets,
) -> Result<Started, StartError> {
    directory.end_leftovers()?;
    let log = File::options().create(true).append(true).open(directory.log_file())?;
    let mut command = process("__attempt", blueflame, directory);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let line = introduce(&mut child, secrets, Instant::now() + within);
    let line = match line {
        Ok(line) => line,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(match error.kind() {
                io::ErrorKind::TimedOut => StartError::TooSlow { within },
                _ => error.into(),
            });
        }
    };
    if let Ok(registered) = serde_json::from_str(&line) {
        return Ok(Started { child, registered });
    }
    let status = child.wait()?;
    if line.trim() == HELD {
        return Err(StartError::Held);
    }
    let log = tail(&directory.log_file()).unwrap_or_default();
    let log = log.trim();
    let why = if log.is_empty() { status.to_string() } else { log.to_owned() };
    Err(StartError::GaveUp(why))
}

/// Tells a new process its secrets, and hears the line that it answers with. One that
/// neither reads nor speaks does not hold us.
fn introduce(child: &mut Child, secrets: &Secrets, until: Instant) -> io::Result<String> {
    let secrets = serde_json::to_vec(secrets)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A pipe holds far more than any secret.
        ioctl_fionbio(&stdin, true)?;
        match stdin.write_all(&secrets) {
            // One that is gone already says so below.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    let Some(stdout) = child.stdout.take() else { return Ok(String::new()) };
    let mut line = String::new();
    BufReader::new(Timed { from: stdout, until }).take(LONGEST).read_line(&mut line)?;
    Ok(line)
}

/// A process of ours that works for an attempt. It outlives us, and has nothing of
/// our environment but `PATH` and the place for temporary files.
pub(super) fn process(part: &str, blueflame: &Path, directory: &Directory) -> Program {
    let mut command = Program::new(blueflame);
    command
        .arg(part)
        .arg(directory.root())
        .env_clear()
        .current_dir("/")
        // A Ctrl-C at the terminal is for us to pass on.
        .process_group(0);
    for name in ["PATH", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// The end of a file, for a message.
fn tail(path: &Path) -> io::Result<String> {
    const MOST: u64 = 2_000;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A connection to a running attempt process.
#[derive(Debug)]
pub struct Link {
    reports: Lines<tokio::io::BufReader<OwnedReadHalf>>,
    commands: OwnedWriteHalf,
}

impl Link {
    pub async fn connect(sockets: &Path) -> io::Result<Link> {
        let stream = UnixStream::connect(control_socket(sockets)).await?;
        let (reading, commands) = stream.into_split();
        Ok(Link { reports: tokio::io::BufReader::new(reading).lines(), commands })
    }

    /// The next report: first how things stand, then what happens. `None` when
    /// the other side has hung up.
    pub async fn next(&mut self) -> io::Result<Option<Report>> {
        match self.reports.next_line().await? {
            None => Ok(None),
            Some(line) => Ok(Some(serde_json::from_str(&line)?)),
        }
    }

    pub async fn send(&mut self, command: &Command) -> io::Result<()> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        self.commands.write_all(&line).await
    }
}

pub(super) fn control_socket(sockets: &Path) -> PathBuf {
    sockets.join("control")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_process_that_does_not_come_up_is_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("blueflame");
        fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let directory = Directory::open(dir.path());
        let within = Duration::from_millis(300);
        let started = start_within(within, &program, &directory, &Secrets::default());
        assert!(matches!(started, Err(StartError::TooSlow { .. })), "{started:?}");
    }
}
