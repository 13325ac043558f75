//! A question taken back while nobody has answered it yet.
//!
//! A thread that waits for the person cannot be reached in any other way: it
//! waits for the terminal and for this, whichever comes first.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::Unanswered;

const OPEN: u8 = 0;
const WITHDRAWN: u8 = 1;
const INTERRUPTED: u8 = 2;

/// One question's way back. Clones belong to the same question; once called
/// off, it stays so.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    why: AtomicU8,
    /// Readable as soon as the question is called off; never read from.
    called: PipeReader,
    call: PipeWriter,
}

impl Cancel {
    pub fn new() -> io::Result<Self> {
        let (called, call) = io::pipe()?;
        Ok(Cancel(Arc::new(Shared { why: AtomicU8::new(OPEN), called, call })))
    }

    /// Nobody needs the answer any more.
    pub fn withdraw(&self) {
        self.call_off(WITHDRAWN);
    }

    /// The whole program is asked to stop.
    pub fn interrupt(&self) {
        self.call_off(INTERRUPTED);
    }

    fn call_off(&self, why: u8) {
        let first = self.0.why.compare_exchange(OPEN, why, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() {
            // One byte into an empty pipe of our own: there is room for it.
            let _ = (&self.0.call).write_all(b".");
        }
    }

    /// Refuses to go on once the question was called off.
    pub(super) fn check(&self) -> Result<(), Unanswered> {
        match self.0.why.load(Ordering::SeqCst) {
            WITHDRAWN => Err(Unanswered::Withdrawn),
            INTERRUPTED => Err(Unanswered::Interrupted),
            _ => Ok(()),
        }
    }

    /// To wait for, with poll: readable once the question was called off.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.0.called.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let cancel = Cancel::new().unwrap();
        assert!(cancel.check().is_ok());
        cancel.clone().withdraw();
        cancel.interrupt();
        assert!(matches!(cancel.check(), Err(Unanswered::Withdrawn)));
    }
}
