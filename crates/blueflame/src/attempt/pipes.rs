//! The three channels of an agent, each served by a task of its own, so that
//! neither side ever waits for the other: an agent that does not read cannot
//! keep us from reading.
//!
//! They are sockets. A pipe can be opened anew through `/proc` by any process of
//! the same user, and so a program that an agent runs could speak in the agent's
//! name, or hear what it is told; a socket cannot.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;
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

/// Our ends of the channels of a child that is about to be started.
#[derive(Debug)]
pub struct Ends {
    input: UnixStream,
    output: UnixStream,
    errors: UnixStream,
}

/// Gives a command its channels. They end with the child only when the command,
/// which holds the other ends, is dropped.
pub fn lay(command: &mut Command) -> io::Result<Ends> {
    // Each goes one way, as programs expect it of these three.
    let (input, theirs) = pair(Shutdown::Read)?;
    command.stdin(theirs);
    let (output, theirs) = pair(Shutdown::Write)?;
    command.stdout(theirs);
    let (errors, theirs) = pair(Shutdown::Write)?;
    command.stderr(theirs);
    Ok(Ends { input, output, errors })
}

/// Our end, which cannot do one thing, and theirs, which waits as a pipe does.
fn pair(never: Shutdown) -> io::Result<(UnixStream, Stdio)> {
    let (ours, theirs) = Socket::pair()?;
    ours.shutdown(never)?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, OwnedFd::from(theirs).into()))
}

/// Serves the channels of a child. Lines that are sent go to its input, which is
/// closed when the sender is dropped; the receiver ends when both outputs have.
pub fn connect(ends: Ends) -> (Input, mpsc::Receiver<Chunk>) {
    let (chunks, received) = mpsc::channel(WAITING);
    tokio::spawn(read(ends.output, From::Out, chunks.clone()));
    tokio::spawn(read(ends.errors, From::Err, chunks));
    let (lines, mut to_send) = mpsc::unbounded_channel::<String>();
    let unread = Arc::new(AtomicUsize::new(0));
    let read = Arc::clone(&unread);
    let mut stdin = ends.input;
    tokio::spawn(async move {
        while let Some(mut line) = to_send.recv().await {
            let size = line.len();
            line.push('\n');
            if stdin.write_all(line.as_bytes()).await.is_err() {
                return;
            }
            read.fetch_sub(size, Ordering::Relaxed);
        }
    });
    (Input { lines, unread }, received)
}

async fn read(mut channel: UnixStream, from: From, chunks: mpsc::Sender<Chunk>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match channel.read(&mut buffer).await {
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
