//! Standard error, which carries words for people.
//!
//! A terminal that is closed, or a file on a full disk, takes no more words.
//! That is no reason to stop, and to panic least of all, so these macros stand
//! for those of the standard library everywhere.

use std::fmt;
use std::io::Write as _;

/// Writes, and does not mind if nobody can read it. In one piece: what other
/// programs write meanwhile does not come into the middle of it.
pub fn write(words: fmt::Arguments<'_>) {
    let _ = anstream::stderr().lock().write_all(words.to_string().as_bytes());
}

macro_rules! eprint {
    ($($words:tt)*) => { $crate::stderr::write(format_args!($($words)*)) };
}

macro_rules! eprintln {
    () => { $crate::stderr::write(format_args!("\n")) };
    ($($words:tt)*) => { $crate::stderr::write(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) use {eprint, eprintln};
