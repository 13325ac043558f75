//! Standard output: one thread writes it, one whole line at a time.
//!
//! Another thread waits for the moment when nobody reads any more: an agent
//! whose attempt process has died must not go on spending money until it next
//! has something to say.

use std::io::Write as _;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

/// Lines that may wait for a slow reader.
const WAITING: usize = 64;

/// Where events go.
#[derive(Clone, Debug)]
pub(super) struct Output {
    lines: mpsc::Sender<String>,
    unread: watch::Receiver<bool>,
}

impl Output {
    /// The writer runs until every copy of the output is dropped.
    pub(super) fn start() -> (Output, JoinHandle<()>) {
        let (sender, lines) = mpsc::channel(WAITING);
        let (tell, unread) = watch::channel(false);
        std::thread::spawn(move || watch_reader(&tell));
        (Output { lines: sender, unread }, std::thread::spawn(move || write(lines)))
    }

    /// An event on its way. If nobody reads any more it is dropped: whoever
    /// runs the agent watches [`closed`](Output::closed).
    pub(super) async fn emit(&self, event: &Value) {
        let mut line = event.to_string();
        line.push('\n');
        let _ = self.lines.send(line).await;
    }

    /// Waits until nobody reads any more.
    pub(super) async fn closed(&self) {
        let mut unread = self.unread.clone();
        tokio::select! {
            () = self.lines.closed() => {}
            // Without the thread that watches, failed writes tell.
            Ok(_) = unread.wait_for(|unread| *unread) => {}
        }
    }
}

fn write(mut lines: mpsc::Receiver<String>) {
    let mut out = std::io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// Asking for no event at all leaves only the one that cannot be declined: the
/// other end is gone.
fn watch_reader(tell: &watch::Sender<bool>) {
    let stdout = std::io::stdout();
    loop {
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                let _ = tell.send(true);
                return;
            }
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
