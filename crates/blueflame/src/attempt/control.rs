//! The control socket: reports go out to whoever listens, commands come in.
//!
//! Whoever connects is first told how things stand, and then what happens. One
//! that does not keep up is hung up on; it can connect again and is told anew.
//! Whoever belongs to the agent is hung up on at once: an agent must not grant
//! itself money or answer its own questions.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{mpsc, watch};

use super::messages::{Command, Report};
use crate::process_tree;

/// Reports that a listener may be behind.
const BACKLOG: usize = 4096;

/// The longest command.
const LONGEST: u64 = 1 << 20;

/// Where reports go.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    /// Where lasting reports are kept, once there is such a file.
    file: Option<File>,
}

#[derive(Debug)]
struct Shared {
    live: broadcast::Sender<Report>,
    latest: Mutex<Latest>,
    /// How many listen.
    listeners: watch::Sender<usize>,
    /// How often they are told that we are there.
    heartbeat: Option<Duration>,
}

/// What someone who comes late has to know.
#[derive(Debug, Default)]
struct Latest {
    /// The last report of each kind that replaces the one before it.
    last: BTreeMap<&'static str, Report>,
    /// Questions that are open.
    questions: BTreeMap<String, Report>,
}

impl Latest {
    fn note(&mut self, report: &Report) {
        let kind = match report {
            Report::Questions { ticket, .. } => {
                self.questions.insert(ticket.clone(), report.clone());
                return;
            }
            Report::QuestionsWithdrawn { ticket } => {
                self.questions.remove(ticket);
                return;
            }
            Report::GrantNotWanted => {
                self.last.remove("grant wanted");
                return;
            }
            Report::Usage { .. } => "usage",
            Report::GrantWanted => "grant wanted",
            Report::ProviderLimited { .. } => "provider limited",
            Report::Snapshot { .. } => "snapshot",
            Report::Ended => "ended",
            Report::Judged { .. }
            | Report::Seen(_)
            | Report::Warning { .. }
            | Report::Heartbeat => return,
        };
        self.last.insert(kind, report.clone());
    }
}

impl Control {
    pub fn listen(
        path: &Path,
        heartbeat: Option<Duration>,
    ) -> io::Result<(Control, mpsc::Receiver<Command>)> {
        // What an earlier process left; the lock says that it is gone.
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        let shared = Arc::new(Shared {
            live: broadcast::channel(BACKLOG).0,
            latest: Mutex::default(),
            listeners: watch::Sender::new(0),
            heartbeat,
        });
        let (commands, received) = mpsc::channel(64);
        tokio::spawn(accept(listener, Arc::clone(&shared), commands));
        Ok((Control { shared, file: None }, received))
    }

    /// Keeps lasting reports in this file from now on.
    pub fn keep_in(&mut self, file: File) {
        self.file = Some(file);
    }

    pub fn report(&mut self, report: Report) -> io::Result<()> {
        let kept = match &mut self.file {
            Some(file) if report.lasts() => {
                let mut line = serde_json::to_vec(&report)?;
                line.push(b'\n');
                file.write_all(&line)
            }
            Some(_) | None => Ok(()),
        };
        let mut latest = self.shared.latest();
        latest.note(&report);
        // Nobody has to listen.
        let _ = self.shared.live.send(report);
        kept
    }

    pub fn question_answered(&self, ticket: &str) {
        self.shared.latest().questions.remove(ticket);
    }

    /// What is kept of a run that is over is on the disk.
    pub fn flush(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Waits until everyone who listens was told that it has ended, or for as
    /// long as may be.
    pub async fn told(&self, at_most: Duration) {
        let mut listeners = self.shared.listeners.subscribe();
        let _ = tokio::time::timeout(at_most, listeners.wait_for(|count| *count == 0)).await;
    }
}

impl Shared {
    fn latest(&self) -> std::sync::MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: UnixListener, shared: Arc<Shared>, commands: mpsc::Sender<Command>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shared), commands.clone()));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: UnixStream, shared: Arc<Shared>, commands: mpsc::Sender<Command>) {
    // One that cannot be placed, because it is gone already, is no orchestrator.
    let caller = stream.peer_cred().ok().and_then(|it| it.pid());
    if !caller.is_some_and(process_tree::is_outside) {
        return;
    }
    let _listens = Listens::new(&shared);
    let (reading, mut writing) = stream.into_split();
    let (mut live, standing) = {
        let latest = shared.latest();
        let standing: Vec<Report> =
            latest.last.values().chain(latest.questions.values()).cloned().collect();
        (shared.live.subscribe(), standing)
    };
    let telling = async {
        for report in standing {
            tell(&mut writing, &report).await?;
            if report == Report::Ended {
                return Ok(());
            }
        }
        loop {
            let next = tokio::select! {
                next = live.recv() => next,
                () = rest(shared.heartbeat) => Ok(Report::Heartbeat),
            };
            match next {
                Ok(report) => {
                    tell(&mut writing, &report).await?;
                    // There is nothing more to say.
                    if report == Report::Ended {
                        return Ok(());
                    }
                }
                Err(RecvError::Lagged(_) | RecvError::Closed) => return io::Result::Ok(()),
            }
        }
    };
    let hearing = async {
        let mut reading = BufReader::new(reading);
        let mut said = Vec::new();
        loop {
            said.clear();
            let read = (&mut reading).take(LONGEST).read_until(b'\n', &mut said).await?;
            if read == 0 || said.last() != Some(&b'\n') {
                return io::Result::Ok(());
            }
            // Nonsense is hung up on.
            let Ok(command) = serde_json::from_slice(&said) else { return Ok(()) };
            if commands.send(command).await.is_err() {
                return Ok(());
            }
        }
    };
    let _ = tokio::select! {
        done = telling => done,
        done = hearing => done,
    };
}

/// One who listens, for as long as this is held.
struct Listens<'s>(&'s Shared);

impl<'s> Listens<'s> {
    fn new(shared: &'s Shared) -> Self {
        shared.listeners.send_modify(|count| *count += 1);
        Listens(shared)
    }
}

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        self.0.listeners.send_modify(|count| *count -= 1);
    }
}

/// The time until the next sign of life, if there is to be one. Whatever else is
/// said meanwhile is a sign of life too.
async fn rest(heartbeat: Option<Duration>) {
    match heartbeat {
        Some(every) => tokio::time::sleep(every).await,
        None => std::future::pending().await,
    }
}

async fn tell(writing: &mut (impl AsyncWriteExt + Unpin), report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    writing.write_all(&line).await
}
