//! Programs that are started to see how long that takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy, as `cargo install` makes one: what a linker wrote lies in the memory of
/// the machine in smaller pieces, and starts more slowly.
pub fn installed(program: &Path, place: &Path) -> PathBuf {
    let copy = place.join("bin").join(program.file_name().unwrap());
    fs::create_dir_all(place.join("bin")).unwrap();
    fs::copy(program, &copy).unwrap();
    copy
}

/// A program that does nothing, in our language.
pub fn empty(place: &Path) -> PathBuf {
    let (source, program) = (place.join("empty.rs"), place.join("empty"));
    fs::write(&source, "fn main() {}\n").unwrap();
    let compiled = Command::new("rustc").arg("-O").arg("-o").arg(&program).arg(&source).status();
    assert!(compiled.unwrap().success(), "rustc");
    program
}
