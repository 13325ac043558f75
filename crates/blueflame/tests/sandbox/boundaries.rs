//! Every boundary, tried outside, where it has to work, and inside, where it
//! must not.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use blueflame::process_tree;
use blueflame::sandbox::Tier;
use rustix::process::{Pid, Signal};

use crate::cage::{Cage, attempts, everything, only};

/// Command lines that succeed outside.
const STOPPED: [(&str, &str); 22] = [
    ("a secret in the person's home", "cat {HUMAN}/.ssh/id_ed25519"),
    ("the person's checkout", "cat {REPO}/README.md"),
    ("the person's references", "cat {GIT}/HEAD"),
    ("another agent's work", "cat {OTHER}/src/theirs.txt"),
    ("a file of the machine with secrets", "head -c0 /etc/shadow"),
    ("system logs", "ls /var/log"),
    ("the environment of the parent", "tr -d '\\0' < /proc/$PPID/environ | grep -q ."),
    ("a port outside", "exec 3<>/dev/tcp/127.0.0.1/{HP}"),
    ("a port outside, by one call", "{POC} tcp 127.0.0.1 {HP}"),
    ("an abstract socket outside", "{POC} abstract {NAME}"),
    ("a socket outside", "{POC} unixpath {SOCK}"),
    ("a process outside", "{POC} signal {HPID}"),
    ("a file that others have to wait for", "{POC} lease {WT}/src/a.txt"),
    ("a workspace on btrfs that nobody can write any more", "{POC} subvolume {WT}"),
    ("the parent, traced", "{POC} ptrace_parent"),
    ("a user namespace", "{POC} unshare_user"),
    ("a user namespace by clone", "{POC} clone_user"),
    ("a network namespace", "unshare -Un true"),
    ("io_uring", "{POC} io_uring"),
    ("keys of the session", "{POC} add_key"),
    ("the memory of a file handle", "{POC} fh"),
    ("a machine-wide socket family", "{POC} sock 38 5 0"),
];

#[test]
fn what_works_outside_is_stopped_inside() {
    if attempts().is_none() {
        return;
    }
    let cages = [Some(Cage::new()), Cage::of_ordinary_user()];
    let outside = Cage::new().in_tier(Tier::Off);
    let mut wrong = Vec::new();
    for (what, command) in STOPPED {
        let free = outside.run(everything(), command);
        // What this kernel does not have proves nothing.
        let absent = free.stdout.contains("not implemented")
            || free.stdout.contains("not supported by protocol");
        if !free.worked() && !absent {
            wrong.push(format!("{what} does not work outside: {free:?}"));
        }
        for inside in cages.iter().flatten() {
            let confined = inside.run(everything(), command);
            if confined.worked() {
                wrong.push(format!("{what} works inside: {confined:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the kernel and its memory are, which is root's to read outside.
#[test]
fn the_kernel_tells_nothing_about_its_memory() {
    let read = "cd /proc && for it in iomem ioports kallsyms kcore kpagecgroup kpagecount \
                kpageflags slabinfo vmallocinfo; do test ! -e $it || head -c 8 $it; done | wc -c";
    let told = |cage: &Cage| -> u32 {
        let outcome = cage.run(everything(), read);
        outcome.stdout.trim().parse().unwrap()
    };
    assert!(told(&Cage::new().in_tier(Tier::Off)) > 0, "there is nothing to hide");
    for cage in [Some(Cage::new()), Cage::of_ordinary_user()].iter().flatten() {
        assert_eq!(told(cage), 0);
    }
}

#[test]
fn an_ordinary_user_works_and_is_confined_as_well() {
    let Some(cage) = Cage::of_ordinary_user() else { return };
    let work = "echo x > src/a.txt && git add src && git commit -qm x && test $(id -u) = 65534";
    let outcome = cage.run(only(&["src"]), work);
    assert!(outcome.worked(), "{outcome:?}");
    for command in ["echo x > README.md", "echo x > .git/config", "cat {HUMAN}/.ssh/id_ed25519"] {
        let outcome = cage.run(only(&["src"]), command);
        assert!(!outcome.worked(), "{command}: {outcome:?}");
    }
}

#[test]
fn only_what_is_locked_can_be_written() {
    for (locks, command, may) in [
        (&["src"][..], "echo x > src/a.txt && echo x > src/new.txt && mkdir src/d", true),
        (&["src"], "rm src/a.txt && git checkout -q src/a.txt", true),
        (&["src"], "echo x > README.md", false),
        (&["src"], "echo x > new.txt", false),
        (&["src"], "rm README.md", false),
        (&["src"], "mv src elsewhere", false),
        (&["src"], "mkdir target/debug && echo x > target/debug/out", true),
        // A file: all that can be done to a file.
        (&["src/a.txt"], "echo x >> src/a.txt", true),
        (&["src/a.txt"], "sed -i s/a/x/ src/a.txt", true),
        (&["src/a.txt"], "rm src/a.txt", true),
        (&["src/a.txt", "src/c.txt"], "git mv src/a.txt src/c.txt", true),
        (&["src/a.txt"], "echo x > src/b.txt", false),
        (&["src/a.txt"], "rm -f src/b.txt", false),
        (&["src/a.txt"], "mv src/a.txt src/b.txt", false),
        (&["src/a.txt"], "sed -i s/b/x/ src/b.txt", false),
        (&["src/a.txt"], "echo x > README.md", false),
        (&["src/a.txt"], "echo x > new.txt", false),
        // What is not there yet.
        (&["docs/new/page.md"], "echo x > docs/new/page.md", true),
        (&["docs/new/page.md"], "echo x > src/a.txt", false),
        (&["fresh"], "mkdir fresh && echo x > fresh/file", true),
        (&["fresh"], "echo x > README.md", false),
        // A lock inside another one adds nothing and takes nothing away.
        (&["src", "src/a.txt"], "echo x > src/b.txt", true),
        (&[], "echo x > src/a.txt", false),
        (&[], "mkdir target/x", true),
    ] {
        let cage = Cage::new();
        let outcome = cage.run(only(locks), command);
        assert_eq!(outcome.worked(), may, "{locks:?}: {command}: {outcome:?}");
        if !may {
            let outside = Cage::new().in_tier(Tier::Off).run(only(locks), command);
            assert!(outside.worked(), "it fails outside, too: {command}: {outside:?}");
        }
    }
}

#[test]
fn a_link_in_the_repository_opens_nothing() {
    let cage = Cage::new();
    let secret = cage.env.path("human");
    std::os::unix::fs::symlink(&secret, cage.workspace.join("away")).unwrap();
    // A link on the way is refused before anything starts; as the lock itself it
    // is a name that may be replaced, and leads nowhere.
    let outcome = cage.run(only(&["away"]), "cat away/.ssh/id_ed25519 || echo x > away/.bashrc");
    assert!(!outcome.worked(), "{outcome:?}");
    assert_eq!(fs::read_to_string(secret.join(".bashrc")).unwrap(), "");
}

#[test]
fn git_works_and_what_it_acts_on_cannot_be_changed() {
    let cage = Cage::new();
    let work = "echo x > src/a.txt && git add src && git commit -qm 'feat: x' && git stash list \
                && git tag t && git log --oneline | wc -l";
    let outcome = cage.run(only(&["src"]), work);
    assert!(outcome.worked() && outcome.stdout.trim() == "2", "{outcome:?}");
    assert_eq!(outcome.stderr, "");
    for command in [
        "echo x >> .git/config",
        "git config core.hooksPath evil",
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/objects/info/alternates",
        "echo x > .git/info/attributes",
        "mv .git gone",
        "rm -rf .git; test ! -e .git",
        "touch $(cat .git/objects/info/alternates)/x",
    ] {
        let cage = Cage::new();
        let outcome = cage.run(everything(), command);
        assert!(!outcome.worked(), "{command}: {outcome:?}");
        assert!(Cage::new().in_tier(Tier::Off).run(everything(), command).worked(), "{command}");
    }
}

#[test]
fn nothing_inside_is_seen_that_was_not_named() {
    let cage = Cage::new();
    let seen = |command: &str| {
        let outcome = cage.run(everything(), command);
        assert!(outcome.worked(), "{command}: {outcome:?}");
        let mut names: Vec<String> = outcome.stdout.lines().map(ToOwned::to_owned).collect();
        names.sort();
        names
    };
    let top = seen("ls -A /");
    for hidden in ["boot", "home", "media", "mnt", "run", "srv", "sys", "var"] {
        assert!(!top.iter().any(|name| name == hidden), "/{hidden} is there: {top:?}");
    }
    let root = cage.env.root().display();
    assert_eq!(seen(&format!("ls -A {root}")), ["agents", "home", "repo", "tmp"]);
    assert_eq!(
        seen(&format!("ls -A {root}/repo {root}/repo/.git | grep -v :")),
        ["", ".git", "objects"]
    );
    assert_eq!(seen(&format!("ls -A {root}/agents")), ["a1"]);
    assert_eq!(seen("cut -d: -f1 /etc/passwd"), ["agent", "nobody"]);
    let processes: usize = seen("ls -d /proc/[0-9]* | wc -l")[0].trim().parse().unwrap();
    assert!(processes <= 5, "more than its own {processes} processes");
    assert_eq!(seen("env | cut -d= -f1 | grep -c BLUEFLAME || true"), ["0"]);
    assert_eq!(seen("id -u && grep -c CapEff:.0000000000000000 /proc/self/status").len(), 2);
}

/// When the program ends, when whoever started it is killed, and when that is
/// asked to end; in both tiers, for root and for an ordinary user.
#[test]
fn nothing_outlives_its_launcher() {
    for (_, cage) in Cage::all_kinds() {
        for end in [None, Some(Signal::KILL), Some(Signal::TERM)] {
            let mut starter = cage.started_by_another(everything(), &survivors(end));
            nothing_is_left_of(&cage, &mut starter, end);
        }
    }
    // The kernel sees to it where there are namespaces.
    let cage = Cage::new();
    let end = Some(Signal::KILL);
    nothing_is_left_of(&cage, &mut cage.command(everything(), &survivors(end)), end);
}

/// Processes that left their parents, their group and their session, and listen
/// to no request.
fn survivors(end: Option<Signal>) -> String {
    let then = end.map_or("exit 0", |_| "sleep 600");
    format!(
        "for n in 1 2 3; do (setsid bash -c 'trap \"\" TERM HUP INT; \
         (while :; do sleep 0.1; done) & wait' >/dev/null 2>&1 &) ; done; {then}"
    )
}

fn nothing_is_left_of(cage: &Cage, starter: &mut Command, end: Option<Signal>) {
    let mut child = starter.spawn().unwrap();
    let home = cage.env.path("home").display().to_string();
    let left = || process_tree::with_environment("HOME", &home).len();
    if let Some(signal) = end {
        until(|| left() > 6);
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
    child.wait().unwrap();
    until(|| left() == 0);
}

fn until(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "it never happened");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn how_a_program_ends_is_told_as_it_was() {
    let cage = Cage::new();
    for (command, code) in [("exit 0", Some(0)), ("exit 42", Some(42)), ("kill -TERM $$", None)] {
        assert_eq!(cage.run(everything(), command).code, code, "{command}");
    }
    let mut unplanned = cage.command(everything(), "echo ran");
    unplanned.env_remove(blueflame::sandbox::PLAN);
    let output = unplanned.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "it ran without a plan");
}
