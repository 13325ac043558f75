//! The probe: what it finds, and what follows when a boundary cannot be had.

use std::fs;
use std::path::Path;

use blueflame::sandbox::{Tier, choose, holds};
use blueflame_core::config::SandboxMode;

use crate::cage::{BLUEFLAME, Cage, everything};

#[test]
fn no_sandbox_holds_nothing() {
    let why = holds(Tier::Off, Path::new(BLUEFLAME)).unwrap_err();
    for what in ["read a file outside", "write outside the locks", "signal a process"] {
        assert!(why.contains(what), "{why}");
    }
}

#[test]
fn both_tiers_hold_here() {
    assert_eq!(holds(Tier::Namespaces, Path::new(BLUEFLAME)), Ok(()));
    assert_eq!(holds(Tier::Landlock, Path::new(BLUEFLAME)), Ok(()));
}

/// In a sandbox no other one can be put up, as on a machine that has none.
#[test]
fn a_machine_without_a_boundary_is_told_so_and_starts_nothing() {
    let cage = Cage::new();
    for (mode, key) in [
        ("auto", "sandbox: {mode: off}"),
        ("namespaces", "sandbox: {mode: landlock}"),
        ("landlock", "sandbox: {mode: off}"),
    ] {
        let config = format!(
            "schema_version: 2\nproject: {{base_branch: main}}\nsandbox: {{mode: {mode}}}\n\
             executors: {{default: embedded}}\ngateway: {{upstream: 'script:script.yaml'}}\n"
        );
        fs::write(cage.workspace.join("blueflame.yaml"), config).unwrap();
        fs::write(cage.workspace.join("script.yaml"), "replies: [{say: unused}]\n").unwrap();
        let outcome = cage.run(everything(), &format!("{BLUEFLAME} run --task x --yes"));
        assert_eq!(outcome.code, Some(3), "{mode}: {outcome:?}");
        assert!(outcome.stderr.contains("cannot be confined"), "{mode}: {outcome:?}");
        assert!(outcome.stderr.contains(key), "{mode}: {outcome:?}");
        let sessions = cage.workspace.join(".git/blueflame/sessions");
        let begun = fs::read_dir(sessions).map_or(0, Iterator::count);
        assert_eq!(begun, 0, "{mode}: a session was begun");
    }
}

#[test]
fn off_is_only_ever_chosen_by_name() {
    assert_eq!(choose(SandboxMode::Off).unwrap(), Tier::Off);
}
