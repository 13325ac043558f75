//! Standard output: one thread writes it, one whole line at a time.
//!
//! When nobody reads any more the channel closes, which is how the agent
//! learns that it has to end.

use std::io::Write as _;
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::mpsc;

/// Lines that may wait for a slow reader.
const WAITING: usize = 64;

/// Where events go.
#[derive(Clone, Debug)]
pub(super) struct Output(mpsc::Sender<String>);

impl Output {
    /// The writer runs until every copy of the output is dropped.
    pub(super) fn start() -> (Output, JoinHandle<()>) {
        let (sender, lines) = mpsc::channel(WAITING);
        (Output(sender), std::thread::spawn(move || write(lines)))
    }

    /// An event on its way. If nobody reads any more it is dropped: whoever
    /// runs the agent watches [`closed`](Output::closed).
    pub(super) async fn emit(&self, event: &Value) {
        let mut line = event.to_string();
        line.push('\n');
        let _ = self.0.send(line).await;
    }

    /// Waits until nobody reads any more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
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
