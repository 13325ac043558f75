//! Ctrl-C and its like, as something that can be waited for where nothing is async.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::child_end::wait_for_any;

/// From the time when this is made, the program is not ended by these signals any
/// more: whoever made it has to heed them.
#[derive(Debug)]
pub struct Interrupts {
    /// Its other end is closed when one comes.
    heard: PipeReader,
}

impl Interrupts {
    pub fn listen() -> io::Result<Interrupts> {
        let (heard, open) = io::pipe()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        let mut hang_ups = signal(SignalKind::hangup())?;
        drop(inside);
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupts.recv() => {}
                    _ = terminations.recv() => {}
                    _ = hang_ups.recv() => {}
                }
            });
            drop(open);
        });
        Ok(Interrupts { heard })
    }

    /// Whether one has come.
    pub fn heard(&self) -> bool {
        let mut watched = [PollFd::new(&self.heard, PollFlags::IN)];
        let looked = wait_for_any(&mut watched, Some(Instant::now()));
        looked.is_ok() && !watched[0].revents().is_empty()
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }
}
