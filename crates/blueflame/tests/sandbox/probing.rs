//! The probe: what it finds, and what follows when a boundary cannot be had.

use std::fs;
use std::path::Path;

use blueflame::sandbox::{Boundary, Tier, choose, holds};
use blueflame_core::config::{ProcessLimit, SandboxMode};

use crate::cage::{BLUEFLAME, Cage, attempts, everything};

#[test]
fn no_sandbox_holds_nothing() {
    let why = tried(Tier::Off).unwrap_err();
    for what in ["read a file outside", "write outside the locks", "signal a process"] {
        assert!(why.contains(what), "{why}");
    }
}

#[test]
fn both_tiers_hold_here() {
    assert_eq!(tried(Tier::Namespaces), Ok(()));
    assert_eq!(tried(Tier::Landlock), Ok(()));
}

fn tried(tier: Tier) -> Result<(), String> {
    holds(Boundary { tier, counting: ProcessLimit::Kernel }, Path::new(BLUEFLAME))
}

/// No control groups, as in most containers.
const NO_GROUPS: &str = "mount -t tmpfs none /sys/fs/cgroup && ";

/// The kernel says that it is too old for few numbers.
const NO_NUMBERS: &str = "exec setarch --uname-2.6";

/// The probe starts more processes than it may, and must be stopped: by few numbers,
/// by a control group, or else the person has to say that a watcher is enough.
#[test]
fn where_nobody_counts_the_processes_of_root_that_has_to_be_accepted() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let cage = Cage::new();
    let started = |tier: &str, key: &str, command: &str, hide: &str| {
        let config = format!(
            "schema_version: 2\nproject: {{base_branch: main}}\nsandbox: {{mode: {tier}{key}}}\n\
             executors: {{default: embedded}}\ngateway: {{upstream: 'script:script.yaml'}}\n"
        );
        fs::write(cage.workspace.join("blueflame.yaml"), config).unwrap();
        fs::write(cage.workspace.join("script.yaml"), "replies: [{say: unused}]\n").unwrap();
        let hidden = format!("{hide} \"$@\"");
        let mut command_line = cage.env.command("unshare");
        command_line.args(["-m", "sh", "-c", &hidden, "sh", BLUEFLAME]);
        command_line.args(command.split(' ')).current_dir(&cage.workspace);
        let output = command_line.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (_, said) = started("namespaces", "", "doctor", NO_NUMBERS);
    assert!(said.contains("namespaces: tried, and holds"), "{said}");
    // Numbers of processes can be made few in a namespace, since Linux 6.14.
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split('.').map(|it| it.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap_or(0));
    if version >= (6, 14) {
        let (_, said) = started("namespaces", "", "doctor", NO_GROUPS);
        assert!(said.contains("namespaces: tried, and holds"), "{said}");
    }
    let neither = format!("{NO_GROUPS}{NO_NUMBERS}");
    let (code, said) = started("namespaces", "", "run --task x --yes", &neither);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("does not count those of root"), "{said}");
    let uncounted = |key: &str, command: &str| started("landlock", key, command, NO_GROUPS);
    let (code, said) = uncounted("", "run --task x --yes");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("does not count those of root"), "{said}");
    assert!(said.contains("sandbox: {process_limit: watched}"), "{said}");
    let (_, said) = uncounted(", process_limit: watched", "doctor");
    assert!(said.contains("processes that only a watcher counts"), "{said}");
    // Where they are counted, there is nothing to say.
    fs::write(
        cage.workspace.join("blueflame.yaml"),
        "schema_version: 2\nproject: {base_branch: main}\nsandbox: {process_limit: watched}\n\
         executors: {default: embedded}\ngateway: {upstream: 'script:script.yaml'}\n",
    )
    .unwrap();
    let doctor =
        cage.env.command(BLUEFLAME).arg("doctor").current_dir(&cage.workspace).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("namespaces: tried, and holds"), "{said}");
}

/// A socket that is seen is a way out: it works with the socket in the list, and
/// for that reason nothing is started with it.
#[test]
fn a_socket_among_what_agents_may_read_is_refused() {
    if attempts().is_none() {
        return;
    }
    let mut cage = Cage::new();
    let place = cage.env.path("human/shared");
    fs::create_dir(&place).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(place.join("socket")).unwrap();
    cage.terms.read.push(place.clone());
    let reached = cage.run(everything(), "{POC} unixpath {HUMAN}/shared/socket");
    assert!(reached.worked(), "there is nothing to refuse: {reached:?}");
    let text = format!(
        "schema_version: 2\nproject: {{base_branch: main}}\nsandbox: {{read: ['{}']}}\n\
         executors: {{default: embedded}}\ngateway: {{upstream: 'script:script.yaml'}}\n",
        place.display()
    );
    fs::write(cage.workspace.join("blueflame.yaml"), text).unwrap();
    fs::write(cage.workspace.join("script.yaml"), "replies: [{say: unused}]\n").unwrap();
    let mut run = cage.env.command(BLUEFLAME);
    let output = run.args(["run", "--task", "x", "--yes"]).current_dir(&cage.workspace).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("shared/socket"), "{said}");
    // The weaker tier's broker refuses it by itself.
    let cage = cage.in_tier(Tier::Landlock);
    let reached = cage.run(everything(), "{POC} unixpath {HUMAN}/shared/socket");
    assert!(!reached.worked(), "{reached:?}");
}

/// In a sandbox no other one can be put up, as on a machine that has none.
#[test]
fn a_machine_without_a_boundary_is_told_so_and_starts_nothing() {
    let cage = Cage::new();
    for (mode, key) in [
        ("auto", "sandbox: {mode: landlock}"),
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

/// A machine that has the weaker boundary only.
#[test]
fn the_weaker_boundary_is_not_taken_unless_it_is_named() {
    let cage = Cage::new();
    let with = |sandbox: &str, command: &str| {
        let config = format!(
            "schema_version: 2\nproject: {{base_branch: main}}\nsandbox: {{{sandbox}}}\n\
             executors: {{default: embedded}}\ngateway: {{upstream: 'script:script.yaml'}}\n"
        );
        fs::write(cage.workspace.join("blueflame.yaml"), config).unwrap();
        fs::write(cage.workspace.join("script.yaml"), "replies: [{say: unused}]\n").unwrap();
        let few = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        let mut command_line = cage.env.command("unshare");
        command_line.args(["-U", "-r", "sh", "-c", few, "sh", BLUEFLAME]);
        command_line.args(command.split(' ')).current_dir(&cage.workspace);
        let output = command_line.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, said) = with("mode: auto", "run --task x --yes");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("cannot be confined"), "{said}");
    assert!(said.contains("`sandbox: {mode: landlock}` in blueflame.yaml accepts"), "{said}");
    let (_, said) = with("mode: landlock, process_limit: watched", "doctor");
    assert!(said.contains("a weaker sandbox (landlock)"), "{said}");
}

#[test]
fn off_is_only_ever_chosen_by_name() {
    let mut config = blueflame_core::config::read(b"schema_version: 2\n").config.unwrap().sandbox;
    config.mode = SandboxMode::Off;
    assert_eq!(choose(&config).unwrap().tier, Tier::Off);
}
