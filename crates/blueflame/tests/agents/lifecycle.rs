//! The life of an attempt process: its limits, its death, and its adoption.
//! The agents here are small programs that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use blueflame::attempt::directory::{Directory, DirectoryError, Standing};
use blueflame::attempt::link::{self, Link, StartError};
use blueflame::attempt::messages::{Command, Report};
use blueflame::attempt::sealed::Ending;
use blueflame::process_tree;
use blueflame::sandbox::Tier;
use blueflame_core::event::Process;
use blueflame_core::money::Budget;
use blueflame_core::outcome::{Killer, Outcome};
use rustix::process::Signal;

use crate::stage::{Agent, BLUEFLAME, Stage};

/// A stage whose agent is this shell script.
pub fn acted_by(script: &str) -> Stage {
    let mut stage = Stage::with_program("claude", Path::new("/bin/sh"));
    let path = stage.env.path("agent");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    stage.spec.program = path;
    stage.script("replies: [{say: unused}]")
}

/// Waits until something is so; a test that waits in vain fails by its name.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("in vain: {what}");
}

fn gone(process: &Process) -> bool {
    !process_tree::is_running(process)
}

#[test]
fn a_program_that_is_not_there_is_a_sealed_crash() {
    let stage = acted_by("").with(|spec| spec.program = "/nonexistent/agent".into());
    let run = stage.run();
    assert_eq!(run.end(), "crashed");
    assert!(run.story().contains("/nonexistent/agent"), "{}", run.story());
}

#[test]
fn what_a_program_complains_about_is_in_the_result() {
    let run = acted_by("echo 'cannot find my config' >&2; exit 3").run();
    let Ending::Failed(Outcome::Crashed { detail }) = &run.sealed.ending else { panic!() };
    assert_eq!(detail, "exit code 3: cannot find my config");
}

#[test]
fn a_program_that_does_nothing_is_ended_by_its_idle_limit() {
    let run = acted_by("exec sleep 600")
        .with(|spec| {
            spec.limits.idle = Duration::from_millis(300);
            spec.limits.grace = Duration::from_millis(100);
        })
        .run();
    assert_eq!(run.end(), "timed-out");
}

#[test]
fn a_program_that_is_always_busy_is_ended_by_its_wall_clock() {
    let run = acted_by("while true; do echo busy; sleep 0.05; done")
        .with(|spec| {
            spec.limits.wall = Duration::from_millis(500);
            spec.limits.grace = Duration::from_millis(100);
        })
        .run();
    assert_eq!(run.end(), "timed-out");
}

#[test]
fn whatever_it_started_ends_with_it() {
    // A grandchild in a session of its own that ignores signals and holds the
    // output, and a program that ignores its end.
    let script = "
setsid sh -c 'trap \"\" TERM HUP INT; while true; do sleep 1; done' &
setsid sh -c 'exec sleep 600' >/dev/null 2>&1 &
trap '' TERM
echo up
exit 0";
    let run = acted_by(script).run();
    assert_eq!(run.end(), "crashed");
    assert_eq!(run.stage.processes(), Vec::<String>::new());
}

#[test]
fn one_that_ignores_every_request_is_killed() {
    let script = "trap '' TERM INT HUP; echo '{\"type\":\"system\",\"subtype\":\"init\"}'; while true; do sleep 0.1; done";
    let run = acted_by(script)
        .with(|spec| spec.limits.grace = Duration::from_millis(200))
        .run_with(|report| matches!(report, Report::Seen(_)).then_some(Command::Stop));
    assert_eq!(run.end(), "killed", "{}", run.story());
    assert_eq!(run.stage.processes(), Vec::<String>::new());
}

#[test]
fn output_is_kept_whatever_it_is() {
    let script = r"printf 'a line\n\377\376 no text\n'; head -c 40000000 /dev/zero | tr '\0' 'x'; echo; echo 'last words' >&2";
    let run = acted_by(script).run();
    let output = fs::read_to_string(run.stage.directory().output_file()).unwrap();
    let records: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.iter().any(|record| record["text"] == "a line"));
    assert!(records.iter().any(|record| record["base64"] == "//4gbm8gdGV4dA=="));
    assert!(records.iter().any(|record| record["from"] == "err"));
    let long: usize = records
        .iter()
        .filter_map(|record| record["text"].as_str())
        .filter(|text| text.starts_with('x'))
        .map(str::len)
        .sum();
    assert_eq!(long, 40_000_000);
    assert!(output.lines().all(|line| line.len() < 300 << 10), "a record is too large");
}

/// The most memory that a process has had.
pub fn peak_kilobytes(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

#[test]
fn a_long_line_takes_a_bounded_amount_of_memory() {
    let script = "head -c 400000000 /dev/zero | tr '\\0' 'x'; echo; exec sleep 600";
    let stage = acted_by(script);
    let started = stage.start();
    let process = started.registered.process.clone();
    let output = stage.directory().output_file();
    let mut last = 0;
    until("all is read", || {
        let length = fs::metadata(&output).map_or(0, |it| it.len());
        let settled = length > 100 << 20 && length == last;
        last = length;
        std::thread::sleep(Duration::from_millis(100));
        settled
    });
    let peak = peak_kilobytes(&process);
    process_tree::signal(&process, Signal::TERM).unwrap();
    let run = stage.follow(started, |_| None);
    assert!(peak < 128 << 10, "it took {peak} kB for a line of 400 MB");
    assert!(run.sealed.warnings.iter().any(|it| it.contains("were not kept")), "{}", run.story());
}

#[test]
fn a_killed_attempt_process_takes_its_agent_along_and_is_found_lost() {
    let stage = acted_by("echo up; exec sleep 600");
    let mut started = stage.start();
    until("the agent is up", || !stage.processes().is_empty());
    let directory = stage.directory();
    assert!(matches!(directory.standing().unwrap(), Standing::Running(Some(_))));
    process_tree::signal(&started.registered.process, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    let spend = Some(blueflame_core::money::Spend::default());
    assert_eq!(directory.standing().unwrap(), Standing::Lost { spend });
    until("the agent is gone", || stage.processes().is_empty());
}

#[test]
fn after_a_reboot_nobody_claims_to_know_what_was_spent() {
    let stage = acted_by("exec sleep 600");
    let mut started = stage.start();
    process_tree::signal(&started.registered.process, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    let directory = stage.directory();
    let mut registered = started.registered.clone();
    registered.process.boot_id = "an earlier one".into();
    fs::write(directory.process_file(), serde_json::to_vec(&registered).unwrap()).unwrap();
    assert_eq!(directory.standing().unwrap(), Standing::Lost { spend: None });
}

#[test]
fn what_a_lost_attempt_had_spent_is_known() {
    let Some(stage) = Stage::new(Agent::Embedded) else { return };
    let stage = stage.script(
        "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
  - {say: x, hang_after: 0}
",
    );
    let mut started = stage.start();
    let reports = stage.directory().reports_file();
    until("the first request is counted", || {
        fs::read_to_string(&reports).unwrap_or_default().contains("\"output\":100")
    });
    process_tree::signal(&started.registered.process, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    let Standing::Lost { spend: Some(spend) } = stage.directory().standing().unwrap() else {
        panic!("not lost")
    };
    assert_eq!(spend.usage.total(), 1_000);
}

#[test]
fn another_orchestrator_adopts_a_running_attempt() {
    let Some(stage) = Stage::new(Agent::Embedded) else { return };
    let stage = stage
        .script(
            "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
  - say: Done.
    usage: {input: 900, output: 100}
",
        )
        .with(|spec| spec.limits.grant = Budget::Tokens(500));
    let mut started = stage.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The first orchestrator sees that more is wanted, and dies.
    runtime.block_on(async {
        let mut link = Link::connect(&started.registered.sockets).await.unwrap();
        while link.next().await.unwrap().expect("it goes on") != Report::GrantWanted {}
    });
    // The second one knows nothing but the directory.
    let directory = Directory::open(stage.directory().root());
    let Standing::Running(Some(registered)) = directory.standing().unwrap() else {
        panic!("it does not run")
    };
    assert_eq!(registered, started.registered);
    runtime.block_on(async {
        let mut link = Link::connect(&registered.sockets).await.unwrap();
        let mut told = Vec::new();
        while let Ok(Some(report)) = link.next().await {
            if report == Report::GrantWanted {
                let grant = Budget::Tokens(5_000);
                link.send(&Command::Grant { grant }).await.unwrap();
            }
            told.push(report);
        }
        assert!(told.contains(&Report::GrantWanted), "it was not told what is open");
        assert_eq!(told.last(), Some(&Report::Ended));
    });
    started.child.wait().unwrap();
    let Standing::Ended(sealed) = directory.standing().unwrap() else { panic!("no result") };
    assert_eq!(sealed.spend.usage.total(), 2_000);
    assert!(matches!(sealed.ending, Ending::Stopped { .. }));
}

#[test]
fn no_second_process_takes_the_same_attempt_up() {
    let stage = acted_by("exec sleep 600");
    let started = stage.start();
    let directory = stage.directory();
    assert!(matches!(directory.take_up(), Err(DirectoryError::Held { .. })));
    let second = link::start(Path::new(BLUEFLAME), &directory, &stage.secrets);
    assert!(matches!(second, Err(StartError::Held)), "{second:?}");
    process_tree::signal(&started.registered.process, Signal::TERM).unwrap();
    let run = stage.follow(started, |_| None);
    assert_eq!(run.sealed.ending, Ending::Failed(Outcome::Killed { by: Killer::Us }));

    // And one that has ended is not run again.
    let sealed = fs::read(run.stage.directory().result_file()).unwrap();
    let again = link::start(Path::new(BLUEFLAME), &directory, &run.stage.secrets);
    assert!(matches!(again, Err(StartError::GaveUp(_))));
    assert_eq!(fs::read(run.stage.directory().result_file()).unwrap(), sealed);
}

#[test]
fn before_it_starts_it_is_not_started() {
    let stage = acted_by("exit 0");
    let directory = Directory::create(&stage.env.path("attempt"), &stage.spec).unwrap();
    assert_eq!(directory.standing().unwrap(), Standing::NotStarted);
    assert!(!directory.root().join("lock").exists(), "looking left something behind");
    assert_eq!(directory.end_leftovers().unwrap(), 0);
}

#[test]
fn nonsense_on_the_control_socket_harms_nobody() {
    let stage = acted_by("echo up; exec sleep 600");
    let started = stage.start();
    let socket = started.registered.sockets.join("control");
    let mut nonsense = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    std::io::Write::write_all(&mut nonsense, b"{\"command\":\"launch missiles\"}\n").unwrap();
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut nonsense, &mut rest).unwrap();
    assert!(!gone(&started.registered.process));
    process_tree::signal(&started.registered.process, Signal::TERM).unwrap();
    let run = stage.follow(started, |_| None);
    assert_eq!(run.sealed.ending, Ending::Failed(Outcome::Killed { by: Killer::Us }));
}

/// A stage whose agent is one of the ignored tests here.
pub fn played_by(test: &str) -> Stage {
    let this = std::env::current_exe().unwrap();
    acted_by(&format!("exec '{}' --ignored --exact {test} --nocapture", this.display()))
        .with(|spec| spec.sandbox.read.push(this))
}

#[test]
#[ignore = "the agent of another test"]
fn an_agent_that_speaks_to_the_control_socket() {
    // Only in the place of an agent: this is where its home is.
    let Some(home) =
        std::env::var_os("HOME").filter(|home| Path::new(home).ends_with("attempt/home"))
    else {
        return;
    };
    let attempt = Path::new(&home).parent().unwrap();
    until("it is registered", || attempt.join("process.json").exists());
    let Standing::Running(Some(registered)) = Directory::open(attempt).standing().unwrap() else {
        panic!("not running")
    };
    let mut heard = Vec::new();
    for command in [Command::Grant { grant: Budget::Unlimited }, Command::Stop] {
        let socket = registered.sockets.join("control");
        let mut control = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let mut line = serde_json::to_vec(&command).unwrap();
        line.push(b'\n');
        let _ = std::io::Write::write_all(&mut control, &line);
        let _ = std::io::Read::read_to_end(&mut control, &mut heard);
    }
    fs::write("spoken", &heard).unwrap();
}

#[test]
fn an_agent_that_speaks_to_the_control_socket_is_not_heard() {
    // In its sandbox it does not even find the socket; this is the wall behind.
    let run = played_by("lifecycle::an_agent_that_speaks_to_the_control_socket")
        .with(|spec| spec.sandbox.tier = Tier::Off)
        .run();
    assert_eq!(run.file("spoken").as_deref(), Some(""), "{}", run.story());
    // It left by itself: its own order to stop did not count.
    assert_eq!(
        (run.end(), run.sealed.exit.as_str()),
        ("crashed", "exit code 0"),
        "{}",
        run.story()
    );
}

#[test]
fn an_agent_sees_nothing_of_what_is_kept_about_it() {
    let run = acted_by("ls -A \"$HOME/..\" > hello.txt; ls -A /tmp >> hello.txt; exit 1").run();
    let root = run.stage.env.root().file_name().unwrap().to_str().unwrap().to_owned();
    let seen = run.file("hello.txt").unwrap();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.retain(|name| *name != root && !name.starts_with("blueflame-"));
    assert_eq!(seen, ["home", "system-prompt.md", "tmp"], "{}", run.story());
    // Outside there is more.
    assert!(run.stage.directory().audit_file().exists());
    assert!(run.stage.directory().spec_file().exists());
}

#[test]
fn the_agent_is_not_told_where_the_control_socket_is() {
    let run = acted_by("env > told; echo \"$@\" >> told; exit 1").run();
    let told = run.file("told").unwrap();
    let gateway = run.stage.directory().gateway_place().unwrap();
    assert!(told.contains(gateway.to_str().unwrap()), "{told}");
    let control = run.stage.directory().sockets().unwrap();
    let [parent, name] = [control.parent().unwrap(), Path::new(control.file_name().unwrap())];
    assert!(!told.contains(parent.to_str().unwrap()), "{told}");
    assert!(!told.contains(name.to_str().unwrap()), "{told}");
    for place in [gateway, control] {
        fs::remove_dir(place).unwrap();
    }
}

#[test]
fn without_an_attempt_process_nothing_is_launched() {
    let stage = acted_by("touch ran");
    let status = Program::new(BLUEFLAME)
        .args(["__launch", "1"])
        .arg(&stage.spec.program)
        .current_dir(stage.env.root())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    assert!(!stage.env.path("ran").exists());
}
