//! Where a program is that people call by its name alone.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The first program of a name in a `PATH`.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path).map(|place| place.join(name)).find(|path| is_program(path))
}

pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
