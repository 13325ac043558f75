//! Processes to be killed. The test binary starts itself again, to run only
//! [`play`], which does what the role in the environment says.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::{full_disk, kill, lock, store};

const ROLE: &str = "BLUEFLAME_TEST_ROLE";
const ARGUMENT: &str = "BLUEFLAME_TEST_ARGUMENT";
/// Tells what a role says from what the test harness says.
const PREFIX: &str = "> ";

#[test]
fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let argument = std::env::var(ARGUMENT).unwrap();
    // The harness has begun a line.
    writeln!(std::io::stdout()).unwrap();
    let path = Path::new(&argument);
    match role.as_str() {
        "write" => kill::write_until_killed(path),
        "write-limited" => full_disk::write_with_a_limit(path),
        "open-limited" => full_disk::open_with_a_limit(path),
        "lock" => lock::hold(path),
        "lock-and-spawn" => lock::hold_and_start_another(path),
        "find-store" => store::find(path),
        _ => panic!("no role {role}"),
    }
}

/// Says a line to the test that started this process. It is one write, so it is
/// said whole or not at all.
pub fn say(line: &str) {
    let mut stdout = std::io::stdout();
    stdout.write_all(format!("{PREFIX}{line}\n").as_bytes()).unwrap();
    stdout.flush().unwrap();
}

/// A process in a role, seen from the test.
pub struct Role {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Role {
    pub fn start(role: &str, argument: &Path) -> Role {
        Role::start_as(Command::new(std::env::current_exe().unwrap()), role, argument)
    }

    /// Starts a command that ends up running this binary with the arguments it
    /// is given.
    pub fn start_as(mut command: Command, role: &str, argument: &Path) -> Role {
        let mut child = command
            .args(["--exact", "child::play", "--nocapture"])
            .env(ROLE, role)
            .env(ARGUMENT, argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Role { child, lines }
    }

    /// The next line it says, or nothing when it is gone.
    pub fn hear(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.unwrap();
            if let Some(said) = line.strip_prefix(PREFIX) {
                return Some(said.to_owned());
            }
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGKILL. What it said before can still be heard.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends its standard input, which a role may wait for, and waits.
    pub fn dismiss(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // Already gone, except when a test fails in between.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the test dismisses this process.
pub fn wait_to_be_dismissed() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}
