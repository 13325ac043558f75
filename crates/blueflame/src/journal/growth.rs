//! Being told by the kernel that a file was written.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::read;

use crate::child_end::wait_for_any;

/// Knows of each time that a file was written since it was last asked.
#[derive(Debug)]
pub struct Growth {
    /// `None` where the kernel keeps no more watches for this user.
    told: Option<OwnedFd>,
}

impl Growth {
    pub fn of(file: &File) -> Growth {
        let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).and_then(|told| {
            // This very file, whatever has its name by now.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            inotify::add_watch(&told, path, WatchFlags::MODIFY)?;
            Ok(told)
        });
        Growth { told: told.ok() }
    }

    /// Waits until the file has been written, but no longer than this: not every
    /// file system tells of what other machines write.
    pub fn wait(&self, most: Duration) {
        let Some(told) = &self.told else { return thread::sleep(most) };
        let mut watched = [PollFd::new(told, PollFlags::IN)];
        if wait_for_any(&mut watched, Some(Instant::now() + most)).is_err() {
            return thread::sleep(most);
        }
        // All that it has to say is that something was written.
        let mut words = [MaybeUninit::uninit(); 4096];
        while read(told, &mut words).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_write_ends_the_wait_and_is_told_of_once() {
        let mut file = tempfile::tempfile().unwrap();
        let growth = Growth::of(&file);
        for _ in 0..2 {
            file.write_all(b"a line").unwrap();
            file.write_all(b" and more").unwrap();
            let begun = Instant::now();
            growth.wait(Duration::from_secs(600));
            assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", begun.elapsed());
        }
        let begun = Instant::now();
        growth.wait(Duration::from_millis(20));
        assert!(begun.elapsed() >= Duration::from_millis(20), "nobody wrote");
    }

    #[test]
    fn where_nobody_tells_it_is_looked_at_in_time() {
        let begun = Instant::now();
        Growth { told: None }.wait(Duration::from_millis(20));
        assert!(begun.elapsed() >= Duration::from_millis(20));
    }
}
