//! A program at a real terminal, and someone who reads and types.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use blueflame_testkit::screen;
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Screen {
    child: Child,
    keyboard: screen::Screen,
    shown: Receiver<Vec<u8>>,
    text: String,
    /// Up to where the text was waited for.
    seen: usize,
}

impl Screen {
    pub fn of(mut command: Command) -> Screen {
        let (screen, terminal) = screen::Screen::open((0, 0)).unwrap();
        let child = command
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        // The program alone has the other end now.
        drop(command);
        let mut reading = screen.try_clone().unwrap();
        let (tell, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = reading.read(&mut buffer) {
                if read == 0 || tell.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Screen { child, keyboard: screen, shown, text: String::new(), seen: 0 }
    }

    /// Waits until something new is on the screen.
    pub fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.text[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            match self.shown.recv_timeout(PATIENCE) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let _ = self.child.kill();
                    panic!("`{text}` never came:\n{}", self.text);
                }
            }
        }
    }

    pub fn type_line(&mut self, text: &str) {
        self.keyboard.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    /// How it ended, and everything that was shown.
    pub fn until_the_end(mut self) -> (ExitStatus, String) {
        while let Ok(bytes) = self.shown.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
        if self.child.try_wait().unwrap().is_none() {
            // It may just be about to go.
            std::thread::sleep(std::time::Duration::from_secs(2));
        }
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            panic!("it does not end: {}", self.text);
        }
        (self.child.wait().unwrap(), self.text)
    }
}
