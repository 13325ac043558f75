//! Standard output, which carries data and nothing else.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use crate::failure::{Failure, Kind};

/// Writes data. A reader that has seen enough is no failure.
pub fn write(text: &str) -> Result<(), Failure> {
    match write_on(text) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(end) => end,
    }
}

/// Writes a part of the data. Breaks when no more is wanted, or can be written.
pub fn write_on(text: &str) -> ControlFlow<Result<(), Failure>> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ControlFlow::Break(Ok(())),
        Err(error) => ControlFlow::Break(Err(Failure::new(
            Kind::Internal,
            format!("standard output cannot be written: {error}"),
        ))),
    }
}
