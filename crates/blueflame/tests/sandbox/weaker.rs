//! The second tier, without namespaces: what it holds, and that work goes on.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};

use blueflame::sandbox::Tier;
use rustix::pty::OpenptFlags;

use crate::cage::{Cage, attempts, everything, only};

const STOPPED: [&str; 16] = [
    "cat {HUMAN}/.ssh/id_ed25519",
    "cat {REPO}/README.md",
    "cat {OTHER}/src/theirs.txt",
    "head -c0 /etc/shadow",
    "echo x > README.md",
    "echo x > {HUMAN}/.bashrc",
    "exec 3<>/dev/tcp/127.0.0.1/{HP}",
    "{POC} tcp 127.0.0.1 {HP}",
    "{POC} fastopen 127.0.0.1 {HP}",
    "{POC} udp 127.0.0.1 {HP}",
    "{POC} abstract {NAME}",
    "{POC} unixpath {SOCK}",
    "{POC} signal {HPID}",
    "{POC} io_uring",
    "{POC} unshare_user",
    "{POC} add_key",
];

#[test]
fn landlock_and_the_broker_hold() {
    if attempts().is_none() {
        return;
    }
    let inside = Cage::new().in_tier(Tier::Landlock);
    for command in STOPPED {
        let outside = Cage::new().in_tier(Tier::Off).run(only(&["src"]), command);
        assert!(outside.worked(), "it fails outside, too: {command}: {outside:?}");
        let confined = inside.run(only(&["src"]), command);
        assert!(!confined.worked(), "{command}: {confined:?}");
    }
}

/// Other processes of the same user are the person's and ours: how much of the
/// machine they get, what they share and the sockets that need no connection. Tried
/// by an ordinary user on a process of its own outside, which the kernel allows.
#[test]
fn other_processes_of_the_user_are_left_alone() {
    if attempts().is_none() {
        return;
    }
    for mut cage in [Some(Cage::new()), Cage::of_ordinary_user()].into_iter().flatten() {
        let letters = cage.env.path("human/letters");
        let socket = UnixDatagram::bind(&letters).unwrap();
        std::fs::set_permissions(&letters, std::fs::Permissions::from_mode(0o777)).unwrap();
        let mut wrong = Vec::new();
        for command in [
            "{POC} limit_of $THEM",
            "{POC} nice_of $THEM",
            "{POC} cores_of $THEM",
            "{POC} disk_of $THEM",
            "{POC} nice_of_all",
            "{POC} shared",
            "{POC} queue",
            "{POC} datagram {HUMAN}/letters",
        ] {
            // Somebody else of the same user, who is not below the sandbox.
            let mut them = cage.neighbour().spawn().unwrap();
            let with_them = command.replace("$THEM", &them.id().to_string());
            let free = cage.tried_in(Tier::Off, &with_them);
            let confined = cage.tried_in(Tier::Landlock, &with_them);
            them.kill().unwrap();
            them.wait().unwrap();
            if !free.worked() || confined.worked() {
                wrong.push(format!("{command}: outside {free:?}, inside {confined:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        drop(socket);
    }
}

/// What a program does to itself it may.
#[test]
fn its_own_processes_are_its_own_to_arrange() {
    let cage = Cage::new().in_tier(Tier::Landlock);
    for command in
        ["nice -n 5 true", "ulimit -S -n 64 && true", "taskset -c 0 true", "ionice -c 3 true"]
    {
        let outcome = cage.run(everything(), command);
        assert!(outcome.worked(), "{command}: {outcome:?}");
    }
}

/// Terminals and shared memory belong to everybody on the machine here.
#[test]
fn terminals_and_shared_memory_of_the_machine_are_out_of_reach() {
    let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&terminal).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let theirs = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
    let theirs = theirs.to_str().unwrap();
    // As long as somebody has it open, it is there for others.
    let _held = std::fs::File::open(theirs).unwrap();
    let shared = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let shared = shared.path().display();
    for command in [
        format!("echo x > {theirs}"),
        format!("exec 3< {theirs}"),
        "exec 3<> /dev/ptmx".to_owned(),
        format!("cat {shared}"),
        format!("echo x > {shared}"),
        format!("echo x > {shared}-new && rm {shared}-new"),
    ] {
        let outside = Cage::new().in_tier(Tier::Off).run(everything(), &command);
        assert!(outside.worked(), "it fails outside, too: {command}: {outside:?}");
        let confined = Cage::new().in_tier(Tier::Landlock).run(everything(), &command);
        assert!(!confined.worked(), "{command}: {confined:?}");
    }
}

#[test]
fn ordinary_work_goes_on() {
    let cage = Cage::new().in_tier(Tier::Landlock);
    for command in [
        "echo x > src/a.txt && git add src && git commit -qm x",
        "printf 'int main(void){return 0;}' > src/t.c && cc -o src/t src/t.c && src/t",
        "f=$(mktemp) && seq 1000 | sort -n > $f && test $(wc -l < $f) = 1000",
    ] {
        let outcome = cage.run(only(&["src"]), command);
        assert!(outcome.worked(), "{command}: {outcome:?}");
    }
}

#[test]
fn sockets_of_its_own_can_be_reached() {
    if attempts().is_none() {
        return;
    }
    let cage = Cage::new().in_tier(Tier::Landlock);
    let _own = UnixListener::bind(cage.workspace.join("src/own")).unwrap();
    let reach = "{POC} unixpath {WT}/src/own && cd src && {POC} unixpath own";
    let outcome = cage.run(only(&["src"]), reach);
    assert!(outcome.worked(), "{outcome:?}");
    // A link in its place leads out, and is seen through.
    let outcome = cage.run(everything(), "ln -s {SOCK} src/link && {POC} unixpath src/link");
    assert!(!outcome.worked(), "{outcome:?}");
}

/// A server of its own is reached, and only that: not one of somebody else's on
/// another port, nor one that shares the port on another address, and nobody on
/// the network finds it.
#[test]
fn servers_of_its_own_can_be_reached_and_no_others() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    for (what, server, port) in [
        ("at one address", "127.0.0.1", "p"),
        ("at all", "0.0.0.0", "p"),
        ("somebody else's", "127.0.0.1", "{HP}"),
        ("its own on the port of another's", "127.0.0.2:{HP}", "{HP}"),
    ] {
        let cage = Cage::new().in_tier(Tier::Landlock);
        let (address, own) = server.split_once(':').unwrap_or((server, "0"));
        let script = format!(
            "import socket\ns = socket.socket(); s.bind((\"{address}\", {own})); s.listen()\n\
             a, p = s.getsockname(); assert a.startswith(\"127.\"), a\n\
             socket.create_connection((\"127.0.0.1\", {port}), 5)"
        );
        let outcome = cage.run(everything(), &format!("python3 -c '{script}'"));
        assert_eq!(outcome.worked(), port == "p", "{what}: {outcome:?}");
    }
    let cage = Cage::new().in_tier(Tier::Landlock);
    // Without an address, the kernel would choose all of them.
    let script = "import socket\ns = socket.socket(); s.listen()\nprint(s.getsockname()[0])";
    let outcome = cage.run(everything(), &format!("python3 -c '{script}'"));
    assert_eq!(outcome.stdout.trim(), "127.0.0.1", "{outcome:?}");
}

#[test]
fn nothing_is_left_when_it_ends() {
    let cage = Cage::new().in_tier(Tier::Landlock);
    let leaves = "(setsid bash -c 'trap \"\" TERM HUP; while :; do sleep 0.1; done' \
                  >/dev/null 2>&1 &); exit 5";
    let outcome = cage.run(everything(), leaves);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    let home = cage.env.path("home").display().to_string();
    assert_eq!(blueflame::process_tree::with_environment("HOME", &home).len(), 0);
}
