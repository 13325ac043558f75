//! The orchestrator's side: starting attempts, and talking to those that run.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::directory::{Directory, Registered};
use super::messages::{Command, Report};
use super::spec::Secrets;

/// Why an attempt process did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the attempt process could not be started: {0}")]
    Spawn(#[from] io::Error),
    #[error("the attempt process gave up: {0}")]
    GaveUp(String),
}

/// A process that has the attempt, and where it listens.
#[derive(Debug)]
pub struct Started {
    pub child: Child,
    pub registered: Registered,
}

/// Starts the attempt process for a directory, and waits until it can be
/// reached. It outlives us, and has nothing of our environment but `PATH` and
/// the place for temporary files.
pub fn start(
    blueflame: &Path,
    directory: &Directory,
    secrets: &Secrets,
) -> Result<Started, StartError> {
    let log = File::options().create(true).append(true).open(directory.log_file())?;
    let mut command = Program::new(blueflame);
    command
        .arg("__attempt")
        .arg(directory.root())
        .env_clear()
        .current_dir("/")
        // A Ctrl-C at the terminal is for us to pass on.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    for name in ["PATH", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let secrets = serde_json::to_vec(secrets).map_err(io::Error::from)?;
        // One that is gone already says so below.
        let _ = stdin.write_all(&secrets);
    }
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if let Ok(registered) = serde_json::from_str(&line) {
        return Ok(Started { child, registered });
    }
    let status = child.wait()?;
    let log = tail(&directory.log_file()).unwrap_or_default();
    let log = log.trim();
    let why = if log.is_empty() { status.to_string() } else { log.to_owned() };
    Err(StartError::GaveUp(why))
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
