//! The ends of attempt processes and of what their agents started, also when
//! the disk is full or somebody looks on.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blueflame::attempt::directory::{Directory, Registered, Standing};
use blueflame::attempt::link;
use blueflame::attempt::messages::Report;
use blueflame::attempt::sealed::Ending;
use blueflame::process_tree;
use blueflame::sandbox::Tier;
use blueflame_core::money::{Spend, Usage};
use blueflame_core::outcome::{Killer, Outcome};
use rustix::process::Signal;

use crate::lifecycle::{acted_by, until};
use crate::needed;
use crate::stage::{BLUEFLAME, Stage};

#[test]
fn one_that_forks_and_exits_all_the_time_is_caught() {
    // None of them lives long enough to be seen for sure.
    let script = r#"
cat > hop <<'HOP'
#!/bin/sh
trap '' TERM HUP
[ -e enough ] && exit 0
echo >> beat
"$0" &
exit 0
HOP
chmod +x hop
./hop & ./hop & setsid ./hop
sleep 0.3
exit 0"#;
    let run = acted_by(script).with(|spec| spec.snapshots = None).run();
    let beats = || fs::metadata(run.stage.workspace.join("beat")).unwrap().len();
    let at_the_end = beats();
    std::thread::sleep(Duration::from_millis(500));
    let later = beats();
    fs::write(run.stage.workspace.join("enough"), "").unwrap();
    assert!(at_the_end > 10, "they hardly ran: {at_the_end}");
    assert_eq!(later, at_the_end, "one got away: {:?}", run.sealed.warnings);
    assert_eq!(run.sealed.warnings, Vec::<String>::new());
}

/// A program that leaves something behind in a session of its own.
const LEAVES: &str = "
setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.1; done' >/dev/null 2>&1 &
echo up
exec sleep 600";

#[test]
fn what_outlived_a_killed_attempt_process_is_ended_and_nothing_else() {
    // Two attempts of one agent, in different directories.
    let [lost, other] =
        [(); 2].map(|()| acted_by(LEAVES).with(|spec| spec.sandbox.tier = Tier::Off));
    let [mut of_lost, of_other] = [lost.start(), other.start()];
    let count = |stage: &Stage| stage.processes().len();
    until("both are up", || count(&lost) >= 2 && count(&other) >= 2);
    // While it runs, nothing is left over.
    assert_eq!(lost.directory().end_leftovers().unwrap(), 0);
    assert!(count(&lost) >= 2, "the agent of a running attempt was ended");

    process_tree::signal(&of_lost.registered.process, Signal::KILL).unwrap();
    of_lost.child.wait().unwrap();
    assert!(matches!(lost.directory().standing().unwrap(), Standing::Lost { .. }));
    std::thread::sleep(Duration::from_millis(300));
    assert!(count(&lost) > 0, "there was nothing to be ended");
    assert!(lost.directory().end_leftovers().unwrap() > 0);
    assert_eq!(lost.processes(), Vec::<String>::new());
    assert!(count(&other) >= 2, "somebody else's processes were ended");

    process_tree::signal(&of_other.registered.process, Signal::TERM).unwrap();
    let run = other.follow(of_other, |_| None);
    assert_eq!(run.stage.processes(), Vec::<String>::new());
}

#[test]
fn nothing_outlives_a_killed_attempt_process_in_a_sandbox() {
    let stage = acted_by(LEAVES);
    let mut started = stage.start();
    until("it is up", || stage.processes().len() >= 3);
    process_tree::signal(&started.registered.process, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    // The kernel does it, and needs nobody to ask it to.
    until("everything is gone", || stage.processes().is_empty());
    assert_eq!(stage.directory().end_leftovers().unwrap(), 0);
}

#[test]
fn whoever_starts_an_attempt_again_ends_what_was_left_first() {
    let stage = acted_by(LEAVES).with(|spec| spec.sandbox.tier = Tier::Off);
    let mut started = stage.start();
    until("it is up", || stage.processes().len() >= 2);
    process_tree::signal(&started.registered.process, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    let before = marked(&stage);
    let again = link::start(Path::new(BLUEFLAME), &stage.directory(), &stage.secrets).unwrap();
    let left = marked(&stage).into_iter().filter(|pid| before.contains(pid)).count();
    assert!(!before.is_empty() && left == 0, "{left} of {} are left", before.len());
    process_tree::signal(&again.registered.process, Signal::TERM).unwrap();
    stage.follow(again, |_| None);
}

fn marked(stage: &Stage) -> Vec<u32> {
    let mark = stage.directory().mark();
    let found = process_tree::with_environment("BLUEFLAME_ATTEMPT", &mark);
    found.into_iter().map(|process| process.pid).collect()
}

#[test]
fn an_interrupt_stops_it_like_any_other_stop() {
    let stage = acted_by("exec sleep 600").with(|spec| spec.limits.grace = Duration::ZERO);
    let started = stage.start();
    process_tree::signal(&started.registered.process, Signal::INT).unwrap();
    let run = stage.follow(started, |_| None);
    assert_eq!(run.sealed.ending, Ending::Failed(Outcome::Killed { by: Killer::Us }));
}

#[test]
fn a_result_that_cannot_be_written_is_said_in_the_log() {
    let stage = acted_by("exit 0");
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    // Nothing can take the place of a directory.
    let mut started = link::start(Path::new(BLUEFLAME), &directory, &stage.secrets).unwrap();
    fs::create_dir(directory.result_file()).unwrap();
    let status = started.child.wait().unwrap();
    assert!(!status.success(), "{status}");
    let log = fs::read_to_string(directory.log_file()).unwrap();
    assert!(log.contains("result.json"), "{log}");
    fs::remove_dir(directory.result_file()).unwrap();
    assert!(matches!(directory.standing().unwrap(), Standing::Lost { .. }));
}

#[test]
fn what_it_was_told_is_on_the_disk_before_what_came_of_it() {
    if !needed::is_there("strace") {
        return;
    }
    let stage = acted_by("exit 0").with(|spec| spec.sandbox.tier = Tier::Off);
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    let (traced, trace) = (stage.env.path("traced"), stage.env.path("trace"));
    let watched = "strace -f -y -e trace=fsync,rename,renameat,renameat2 -o";
    let script = format!("#!/bin/sh\nexec {watched} '{}' {BLUEFLAME} \"$@\"\n", trace.display());
    fs::write(&traced, script).unwrap();
    fs::set_permissions(&traced, fs::Permissions::from_mode(0o755)).unwrap();
    let mut started = link::start(&traced, &directory, &stage.secrets).unwrap();
    assert!(started.child.wait().unwrap().success());
    let trace = fs::read_to_string(trace).unwrap();
    let place = |what: &str, file: &str| {
        let found = trace.lines().position(|line| line.contains(what) && line.contains(file));
        found.unwrap_or_else(|| panic!("no {what} of {file}: {trace}"))
    };
    assert!(place("fsync(", "/spec.json>") < place("rename", "/result.json\""), "{trace}");
}

#[test]
fn a_result_that_is_too_large_for_the_disk_is_a_small_one() {
    let stage = acted_by(
        r#"
text=$(head -c 300000 /dev/zero | tr '\0' x)
echo '{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"'$text'"}'"#,
    )
    .with(|spec| spec.snapshots = None);
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    // No file may be larger than 100 KiB or so.
    let limited = stage.env.path("limited");
    let script = format!("#!/bin/sh\ntrap '' XFSZ\nulimit -f 200\nexec {BLUEFLAME} \"$@\"\n");
    fs::write(&limited, script).unwrap();
    fs::set_permissions(&limited, fs::Permissions::from_mode(0o755)).unwrap();
    let mut started = link::start(&limited, &directory, &stage.secrets).unwrap();
    let status = started.child.wait().unwrap();
    assert!(status.success(), "{status}");
    let Standing::Ended(sealed) = directory.standing().unwrap() else { panic!("no result") };
    let Ending::Failed(Outcome::Crashed { detail }) = sealed.ending else {
        panic!("{:?}", sealed.warnings)
    };
    assert!(detail.contains("its result could not be kept"), "{detail}");
}

/// The lock is looked at before the file that says who it is. Whoever begins in
/// between must not be taken for one that is gone: its work would be done twice.
#[test]
fn one_that_begins_while_it_is_looked_at_is_not_lost() {
    let stage = acted_by("exit 0");
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    drop(directory.take_up().unwrap());
    let process = process_tree::identify(std::process::id()).unwrap();
    let registered = Registered { process, sockets: stage.env.path("sockets") };
    directory.register(&registered).unwrap();
    let standing = std::thread::scope(|scope| {
        let looking = scope.spawn(|| directory.standing().unwrap());
        std::thread::sleep(Duration::from_millis(100));
        let _running = directory.take_up().unwrap();
        looking.join().unwrap()
    });
    assert_eq!(standing, Standing::Running(Some(registered)));
}

#[test]
fn looking_disturbs_nobody() {
    let stage = acted_by("exec sleep 600").with(|spec| spec.limits.grace = Duration::ZERO);
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    // Another one who looks, and takes its time.
    drop(directory.take_up().unwrap());
    let lock = File::open(directory.root().join("lock")).unwrap();
    lock.lock_shared().unwrap();
    assert_eq!(directory.standing().unwrap(), Standing::NotStarted, "it saw the other one");
    drop(lock);
    // Many who look all the time while it starts.
    let enough = AtomicBool::new(false);
    let started = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    let standing = directory.standing().unwrap();
                    assert!(!matches!(standing, Standing::Lost { .. }), "it has not even begun");
                }
            });
        }
        let started = link::start(Path::new(BLUEFLAME), &directory, &stage.secrets);
        enough.store(true, Ordering::Relaxed);
        started
    });
    let started = started.unwrap();
    assert!(matches!(directory.standing().unwrap(), Standing::Running(Some(_))));
    process_tree::signal(&started.registered.process, Signal::TERM).unwrap();
    stage.follow(started, |_| None);
}

#[test]
fn without_a_word_from_whoever_started_it_nothing_begins() {
    let stage = acted_by("touch ran; exit 0");
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    // The orchestrator died before it could hand the secrets over, or on it.
    for said in ["", "{\"credential\":\"half"] {
        let mut attempt = Program::new(BLUEFLAME)
            .arg("__attempt")
            .arg(directory.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = attempt.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, said.as_bytes()).unwrap();
        drop(stdin);
        let output = attempt.wait_with_output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert_eq!(directory.standing().unwrap(), Standing::NotStarted);
    }
    assert!(!stage.workspace.join("ran").exists());
}

#[test]
fn half_a_character_at_the_end_of_the_reports_hides_nothing() {
    let stage = acted_by("exec sleep 600");
    let mut started = stage.start();
    process_tree::signal(&started.registered.process, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    let mut reports = fs::read(stage.directory().reports_file()).unwrap_or_default();
    let usage = Usage { input: 7, output: 5, ..Usage::default() };
    let spend = Spend { usage, ..Spend::default() };
    reports.extend(serde_json::to_vec(&Report::Usage { spend }).unwrap());
    reports.extend_from_slice(b"\n{\"report\":\"warning\",\"text\":\"\xc3");
    fs::write(stage.directory().reports_file(), reports).unwrap();
    let Standing::Lost { spend: Some(spend) } = stage.directory().standing().unwrap() else {
        panic!("not lost")
    };
    assert_eq!(spend.usage.total(), 12);
}
