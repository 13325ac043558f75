//! A terminal for commands that behave differently in one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program that runs in a terminal, seen from the keyboard and the screen.
/// Carriage returns are left out of what is seen.
pub struct Terminal {
    pub ours: File,
    pub child: Child,
}

impl Terminal {
    /// Starts a command in a terminal of so many columns and lines.
    pub fn start(mut command: Command, (columns, lines): (u16, u16)) -> Terminal {
        // A child that had our side would keep its own terminal open for ever.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let theirs = || {
            let file = File::options().read(true).write(true).open(path).unwrap();
            Stdio::from(file)
        };
        command.stdin(theirs()).stdout(theirs()).stderr(theirs()).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        // Our copies of its side would keep the screen open for ever.
        drop(command);
        Terminal { ours: ours.into(), child }
    }

    /// Types something.
    pub fn type_in(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).unwrap();
    }

    /// What is on the screen by the time that this text is.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut seen = String::new();
        let mut bytes = [0; 4096];
        loop {
            let read = self.ours.read(&mut bytes).unwrap_or(0);
            seen += &String::from_utf8_lossy(&bytes[..read]).replace('\r', "");
            if seen.contains(text) {
                return seen;
            }
            // What paints again and again would go on for ever.
            assert!(read > 0 && seen.len() < 20_000, "`{text}` never came:\n{seen}");
        }
    }

    /// The rest of what it shows, and its exit code.
    pub fn finish(mut self) -> (String, Option<i32>) {
        let mut seen = Vec::new();
        let mut bytes = [0; 4096];
        // A terminal whose other side is gone ends with an error.
        while let Ok(read @ 1..) = self.ours.read(&mut bytes) {
            seen.extend_from_slice(&bytes[..read]);
        }
        let code = self.child.wait().unwrap().code();
        (String::from_utf8_lossy(&seen).replace('\r', ""), code)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
