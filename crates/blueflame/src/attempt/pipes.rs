//! The three pipes of an agent, each served by a task of its own, so that
//! neither side ever waits for the other: an agent that does not read cannot
//! keep us from reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc;

use super::frames::From;

/// What is read at a time, and how much of it may wait.
const CHUNK: usize = 64 << 10;
const WAITING: usize = 16;

/// What may wait to be read by the agent, in bytes.
const MOST_UNREAD: usize = 64 << 20;

/// The agent does not read what it is told.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread;

/// The agent's input. It is closed when this is dropped.
#[derive(Debug)]
pub struct Input {
    lines: mpsc::UnboundedSender<String>,
    unread: Arc<AtomicUsize>,
}

impl Input {
    /// Lets a line be written as soon as the agent reads. One that has closed
    /// its input is told nothing.
    pub fn send(&self, line: String) -> Result<(), Unread> {
        let size = line.len();
        if self.unread.fetch_add(size, Ordering::Relaxed).saturating_add(size) > MOST_UNREAD {
            self.unread.fetch_sub(size, Ordering::Relaxed);
            return Err(Unread);
        }
        let _ = self.lines.send(line);
        Ok(())
    }
}

/// Some bytes of output.
#[derive(Debug)]
pub struct Chunk {
    pub from: From,
    pub bytes: Vec<u8>,
}

/// Serves the pipes of a child. Lines that are sent go to its input, which is
/// closed when the sender is dropped; the receiver ends when both outputs have.
pub fn connect(child: &mut Child) -> (Option<Input>, mpsc::Receiver<Chunk>) {
    let (chunks, received) = mpsc::channel(WAITING);
    if let Some(stdout) = child.stdout.take() {
        tokio::spawn(read(stdout, From::Out, chunks.clone()));
    }
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(read(stderr, From::Err, chunks));
    }
    let input = child.stdin.take().map(|mut stdin| {
        let (lines, mut to_send) = mpsc::unbounded_channel::<String>();
        let unread = Arc::new(AtomicUsize::new(0));
        let read = Arc::clone(&unread);
        tokio::spawn(async move {
            while let Some(mut line) = to_send.recv().await {
                let size = line.len();
                line.push('\n');
                if stdin.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                let _ = stdin.flush().await;
                read.fetch_sub(size, Ordering::Relaxed);
            }
        });
        Input { lines, unread }
    });
    (input, received)
}

async fn read(mut pipe: impl AsyncRead + Unpin, from: From, chunks: mpsc::Sender<Chunk>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                let bytes = buffer[..read].to_vec();
                if chunks.send(Chunk { from, bytes }).await.is_err() {
                    return;
                }
            }
        }
    }
}
