//! Standard output, which carries data and nothing else.

use std::io::{self, Write as _};

use crate::failure::{Failure, Kind};

/// Writes data. A reader that has seen enough is no failure.
pub fn write(text: &str) -> Result<(), Failure> {
    match try_write(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Internal, format!("standard output cannot be written: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes data and tells when nobody reads it any more.
pub fn try_write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
