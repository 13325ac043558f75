//! The probe: what it finds, and what follows when a boundary cannot be had.

use std::path::Path;

use blueflame::sandbox::{Tier, choose, holds};
use blueflame_core::config::SandboxMode;

use crate::cage::BLUEFLAME;

#[test]
fn no_sandbox_holds_nothing() {
    let why = holds(Tier::Off, Path::new(BLUEFLAME)).unwrap_err();
    for what in ["read a file outside", "write outside the locks", "signal a process"] {
        assert!(why.contains(what), "{why}");
    }
}

#[test]
fn off_is_only_ever_chosen_by_name() {
    assert_eq!(choose(SandboxMode::Off, Path::new(BLUEFLAME)).unwrap(), Tier::Off);
}
