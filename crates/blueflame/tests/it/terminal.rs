//! A terminal for commands that behave differently in one.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command};

use blueflame_testkit::screen::Screen;

/// A program that runs in a terminal, seen from the keyboard and the screen.
/// Carriage returns are left out of what is seen.
pub struct Terminal {
    /// Without one, the window is closed.
    pub screen: Option<Screen>,
    pub child: Child,
}

impl Terminal {
    /// Starts a command in a terminal of so many columns and lines.
    pub fn start(mut command: Command, size: (u16, u16)) -> Terminal {
        let (screen, theirs) = Screen::open(size).unwrap();
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        let child = command.stderr(theirs).env("TERM", "xterm").spawn().unwrap();
        // The command has copies of the program's side.
        drop(command);
        Terminal { screen: Some(screen), child }
    }

    fn screen(&mut self) -> &mut Screen {
        self.screen.as_mut().expect("the window is open")
    }

    /// Types something.
    pub fn type_in(&mut self, text: &str) {
        self.screen().write_all(text.as_bytes()).unwrap();
    }

    /// What is on the screen by the time that this text is.
    pub fn read_until(&mut self, text: &str) -> String {
        let mut seen = String::new();
        let mut bytes = [0; 4096];
        loop {
            let read = self.screen().read(&mut bytes).unwrap_or(0);
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
        while let Ok(read @ 1..) = self.screen().read(&mut bytes) {
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
