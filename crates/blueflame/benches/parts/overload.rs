//! More work than the machine has processors for.

use std::process::{Child, Command, Stdio};

/// Loops that do nothing else, each in a session of its own, so that the scheduler
/// does not count them as one. They end with this value, or with the program.
pub struct Overload(Vec<Child>);

const LOOP: &str = "while kill -0 $0; do i=0; while [ $i -lt 99999 ]; do i=$((i+1)); done; done";

impl Overload {
    pub fn of(loops: usize) -> Overload {
        let own = std::process::id().to_string();
        let start = |_| {
            let mut command = Command::new("setsid");
            command.args(["sh", "-c", LOOP, &own]).stdin(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        Overload((0..loops).map(start).collect())
    }
}

impl Drop for Overload {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
