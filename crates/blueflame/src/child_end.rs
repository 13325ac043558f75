//! The end of a child, waited for by its handle, which the kernel makes readable when
//! the child ends: nobody has to look over and over.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ExitStatus};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;

/// Waits for a child to end, up to a moment; `None` if it has not ended by then.
pub fn wait_until(child: &mut Child, moment: Instant) -> io::Result<Option<ExitStatus>> {
    wait(child, None, Some(moment))
}

/// The same, up to when something becomes readable.
pub fn wait_until_or_beside(
    child: &mut Child,
    moment: Instant,
    other: Option<BorrowedFd<'_>>,
) -> io::Result<Option<ExitStatus>> {
    wait(child, other, Some(moment))
}

/// Waits for a child to end, or for something to become readable; `None` if that
/// came first.
pub fn wait_beside(child: &mut Child, other: BorrowedFd<'_>) -> io::Result<Option<ExitStatus>> {
    wait(child, Some(other), None)
}

fn wait(
    child: &mut Child,
    other: Option<BorrowedFd<'_>>,
    moment: Option<Instant>,
) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut watched = vec![PollFd::new(&handle, PollFlags::IN)];
    watched.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
    wait_for_any(&mut watched, moment)?;
    child.try_wait()
}

/// Takes leave of a child when it ends, however long that takes. Where nobody waits that
/// long, that is left to our own end.
#[expect(unsafe_code, reason = "tokio cannot see that a handle stays what it is")]
pub async fn taken_leave_of(mut child: Child) {
    let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    // SAFETY: an `OwnedFd` has an open descriptor, and always the same.
    let handle =
        handle.map(|it| unsafe { AsyncFd::register_with_interest(it, Interest::READABLE) });
    if let Ok(Ok(handle)) = handle
        && handle.readable().await.is_ok()
    {
        let _ = child.try_wait();
    } else {
        // There are no more handles.
        let _ = spawn_blocking(move || child.wait()).await;
    }
}

/// Waits for any of these, up to a moment if there is one. A signal does not cut it
/// short.
pub fn wait_for_any(watched: &mut [PollFd<'_>], moment: Option<Instant>) -> io::Result<()> {
    loop {
        let left = moment.map(|it| it.saturating_duration_since(Instant::now()));
        let timeout = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match poll(watched, timeout.as_ref()) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What is read and waited for up to a moment.
#[derive(Debug)]
pub struct Timed<R> {
    pub from: R,
    pub until: Instant,
}

impl<R: io::Read + AsFd> io::Read for Timed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut watched = [PollFd::new(&self.from, PollFlags::IN)];
        wait_for_any(&mut watched, Some(self.until))?;
        if watched[0].revents().is_empty() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.from.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    fn sleep(seconds: &str) -> Child {
        Command::new("sleep").arg(seconds).spawn().unwrap()
    }

    #[test]
    fn an_end_is_seen_before_the_moment() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let end = wait_until(&mut child, Instant::now() + Duration::from_secs(60)).unwrap();
        assert_eq!(end.and_then(|status| status.code()), Some(7));
        // And again, when nobody knows its number any more.
        let end = wait_until(&mut child, Instant::now()).unwrap();
        assert_eq!(end.and_then(|status| status.code()), Some(7));
    }

    #[test]
    fn leave_is_taken_of_a_child_when_it_ends() {
        let child = sleep("600");
        let pid = child.id().to_string();
        let there = || std::path::Path::new("/proc").join(&pid).exists();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let leave = tokio::spawn(taken_leave_of(child));
            tokio::task::yield_now().await;
            assert!(there() && !leave.is_finished());
            assert!(Command::new("kill").arg(&pid).status().unwrap().success());
            leave.await.unwrap();
            assert!(!there(), "it is a zombie");
        });
    }

    #[test]
    fn a_moment_or_a_word_ends_the_wait() {
        let mut child = sleep("600");
        assert_eq!(wait_until(&mut child, Instant::now()).unwrap(), None);
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b".").unwrap();
        assert_eq!(wait_beside(&mut child, reader.as_fd()).unwrap(), None);
        child.kill().unwrap();
        let (silent, _kept) = io::pipe().unwrap();
        assert!(wait_beside(&mut child, silent.as_fd()).unwrap().is_some());
    }
}
