//! The screen and keyboard of a terminal that a program under test runs in.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What is read is what the program shows, what is written is typed. Reading
/// ends with an error once no program has the terminal any more.
#[derive(Debug)]
pub struct Screen(File);

impl Screen {
    /// A terminal of so many columns and lines, and the side for the program.
    /// Whoever keeps a copy of that side keeps the screen from ending.
    pub fn open((columns, lines): (u16, u16)) -> io::Result<(Screen, File)> {
        // A program that had our side would keep its own terminal open for ever.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size)?;
        let name = ptsname(&ours, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(&name, flags, Mode::empty())?;
        Ok((Screen(File::from(ours)), File::from(theirs)))
    }

    pub fn try_clone(&self) -> io::Result<Screen> {
        self.0.try_clone().map(Screen)
    }
}

impl Read for Screen {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes) {
            // The kernel looks for text first and for writers afterwards. What
            // was written in between, and by a program that is gone since, it
            // gives to those who ask again.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => self.0.read(bytes),
            other => other,
        }
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for Screen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
