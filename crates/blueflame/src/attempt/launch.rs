//! `blueflame __launch`: the last step before an agent's program runs.
//!
//! It becomes the program. Before that it sees to it that the kernel ends the
//! program when the attempt process dies, and that the program has no terminal.
//! The sandbox will be put up here.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};

/// Becomes the program, or says why it could not.
pub fn become_program(parent: u32, program: &[OsString]) -> io::Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that was in place.
    let alive = getppid().is_some_and(|now| u32::try_from(now.as_raw_pid()) == Ok(parent));
    if !alive {
        return Err(io::Error::other("the attempt process is gone"));
    }
    setsid()?;
    let [program, arguments @ ..] = program else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "which program?"));
    };
    Err(Command::new(program).args(arguments).exec())
}
