//! Programs of the system that a test cannot do without.

use blueflame::search_path;

use crate::install;

/// Whether a test has a program that it needs; CI insists on it.
pub fn is_there(program: &str) -> bool {
    let found = search_path::find(program, &std::env::var_os("PATH").unwrap()).is_some();
    assert!(found || std::env::var_os(install::REQUIRED).is_none(), "{program} is not installed");
    if !found {
        install::say(&format!("SKIPPED {}: there is no {program}\n", install::test()));
    }
    found
}
