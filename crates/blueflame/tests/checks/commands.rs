//! The project's commands: how they end, what is kept of them, and that
//! nothing of them stays.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use blueflame::checks::command::{self, CommandExit, CommandResult, Order, Surroundings};
use blueflame::process_tree;
use blueflame::sandbox::{Limits, Terms, Tier};
use blueflame_core::event::Process;
use blueflame_testkit::env::TestEnv;
use tokio::sync::watch;

pub fn surroundings(env: &TestEnv) -> Surroundings {
    Surroundings {
        program: env!("CARGO_BIN_EXE_blueflame").into(),
        home: env.path("home"),
        tmp: env.path("tmp"),
        path: std::env::var_os("PATH").unwrap_or_default(),
        sandbox: Terms { tier: Tier::Namespaces, ..Terms::default() },
        variables: BTreeMap::new(),
    }
}

fn order<'a>(env: &'a TestEnv, command: &'a str, timeout: Duration) -> Order<'a> {
    Order { command, directory: env.root(), timeout, keep: None }
}

async fn run(env: &TestEnv, command: &str, timeout: Duration) -> CommandResult {
    let mut stop = watch::channel(false).1;
    command::run(order(env, command, timeout), &surroundings(env), &mut stop).await
}

const LONG: Duration = Duration::from_secs(60);

/// A process that left its parent, its group and its session, does not listen,
/// and holds the pipe. Its number is in `stray`.
const STRAY: &str = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > stray.new; mv stray.new stray; \
                     while :; do sleep 1; done' &)\nwhile [ ! -e stray ]; do sleep 0.01; done\n";

/// Its number is one of the sandbox's; here it is known by its home and words.
fn stray(env: &TestEnv) -> Option<Process> {
    let home = env.path("home");
    let marked = process_tree::with_environment("HOME", home.to_str().unwrap());
    marked.into_iter().find(|process| {
        let line = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with("sh\0-c\0trap")
    })
}

#[tokio::test]
async fn every_way_to_end_is_told() {
    let env = TestEnv::new();
    let failed = |code| CommandExit::Failed { code };
    for (command, exit, output) in [
        ("echo a; echo b >&2; echo c", CommandExit::Passed, "a\nb\nc\n"),
        ("exit 3", failed(3), ""),
        ("-x", failed(127), "sh: 1: -x: not found\n"),
        ("no-such-command", failed(127), "sh: 1: no-such-command: not found\n"),
        ("kill -9 $$", CommandExit::Killed { signal: 9 }, ""),
        ("cat; tty", failed(1), "not a tty\n"),
        ("printf '\\377ok\\n'", CommandExit::Passed, "\u{fffd}ok\n"),
    ] {
        let result = run(&env, command, LONG).await;
        // Shells differ in how they complain.
        let told = result.output.replace("line 1: ", "1: ").replace("command not", "not");
        let told = told.replace("/bin/sh: 1: ", "sh: 1: ").replace("--: 1: ", "sh: 1: ");
        let told = (result.command.as_str(), result.exit, told.as_str());
        assert_eq!(told, (command, exit, output));
    }
}

/// The same limits as for agents, each with the command and without.
#[tokio::test]
async fn commands_have_limits_and_these_are_named() {
    let none = Limits::default;
    let fill = "for i in $(seq 40); do head -c 4000000 /dev/zero > f$i; sleep 0.05; done; rm f*";
    for (what, limits, command, told) in [
        (
            "memory",
            Limits { memory_mb: Some(64), ..none() },
            "head -c 100000000 /dev/zero | tail -c 100000000 > /dev/null",
            "memory",
        ),
        (
            "processor time",
            Limits { cpu_seconds: Some(1), ..none() },
            "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done",
            "sandbox.max_cpu_seconds",
        ),
        (
            "the size of a file",
            Limits { file_mb: Some(1), ..none() },
            "head -c 2000000 /dev/zero > big",
            "sandbox.max_file_size_mb",
        ),
        (
            "open files",
            Limits { open_files: Some(20), ..none() },
            "bash -c 'exec 30< /dev/null'",
            "",
        ),
        ("the disk", Limits { disk_mb: Some(32), ..none() }, fill, "sandbox.max_disk_mb"),
        (
            "processes",
            Limits { processes: Some(5), ..none() },
            "for i in $(seq 60); do sleep 1 & done; wait",
            "",
        ),
    ] {
        for tier in [Tier::Namespaces, Tier::Landlock] {
            let env = TestEnv::new();
            let sandbox = Terms { tier, limits: limits.clone(), ..Terms::default() };
            let confined = Surroundings { sandbox, ..surroundings(&env) };
            let mut stop = watch::channel(false).1;
            let result = command::run(order(&env, command, LONG), &confined, &mut stop).await;
            let said = format!("{} {}", result.exit, result.output);
            assert!(!result.passed(), "{what}, {tier:?}: {said}");
            assert!(said.contains(told), "{what}, {tier:?}: {said}");
        }
        let env = TestEnv::new();
        let result = run(&env, command, LONG).await;
        assert!(result.passed(), "without a limit: {what}: {result:?}");
    }
}

#[tokio::test]
async fn a_command_cannot_kill_its_runner() {
    let env = TestEnv::new();
    let command = "kill -9 $PPID 2>/dev/null; sleep 0.1; echo on";
    let result = run(&env, command, LONG).await;
    assert_eq!((result.exit, result.output.as_str()), (CommandExit::Passed, "on\n"));
    // Without a sandbox it can, and that is told.
    let unconfined = Surroundings { sandbox: Terms::default(), ..surroundings(&env) };
    let mut stop = watch::channel(false).1;
    let result = command::run(order(&env, command, LONG), &unconfined, &mut stop).await;
    assert_eq!(result.exit, CommandExit::Killed { signal: 9 });
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let env = TestEnv::new();
    let mut stop = watch::channel(false).1;
    let gone = Order { directory: Path::new("/nonexistent"), ..order(&env, "true", LONG) };
    let result = command::run(gone, &surroundings(&env), &mut stop).await;
    let why = "`/nonexistent` is no directory".to_owned();
    assert_eq!(result.exit, CommandExit::NotStarted { why });
    for (program, expected) in [
        ("/nonexistent/blueflame", "No such file or directory (os error 2)"),
        ("/bin/false", "its runner ended: exit status: 1"),
    ] {
        let surroundings = Surroundings { program: program.into(), ..surroundings(&env) };
        let result = command::run(order(&env, "true", LONG), &surroundings, &mut stop).await;
        assert_eq!(result.exit, CommandExit::NotStarted { why: expected.to_owned() });
    }
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let env = TestEnv::new();
    let mut surroundings = surroundings(&env);
    surroundings.path = "/usr/bin:/bin".into();
    surroundings.variables = [("CI", "true"), ("HOME", "/root"), ("KEY", "a b")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let mut stop = watch::channel(false).1;
    let result = command::run(order(&env, "env", LONG), &surroundings, &mut stop).await;
    let shell = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    let mut lines: Vec<&str> = result.output.lines().collect();
    lines.retain(|line| !shell.iter().any(|name| line.starts_with(name)));
    lines.sort_unstable();
    let home = format!("HOME={}", env.path("home").display());
    let tmp = format!("TMPDIR={}", env.path("tmp").display());
    let expected =
        ["CI=true", &home, "KEY=a b", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TERM=dumb", &tmp];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_command_that_takes_too_long_goes_with_all_that_it_started() {
    let env = TestEnv::new();
    let command = format!("{STRAY} echo begun; trap '' TERM; sleep 100; echo never");
    let limit = Duration::from_secs(2);
    let begun = Instant::now();
    let result = run(&env, &command, limit).await;
    assert_eq!(result.exit, CommandExit::TimedOut { after: limit });
    assert_eq!(result.output, "begun\n");
    assert!(result.took >= limit && begun.elapsed() < Duration::from_secs(12));
    assert_eq!(stray(&env), None, "it got away");
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let env = TestEnv::new();
    let result = run(&env, &format!("{STRAY} echo done"), LONG).await;
    assert_eq!((result.exit, result.output.as_str()), (CommandExit::Passed, "done\n"));
    assert!(result.took < Duration::from_secs(10), "{:?}", result.took);
    assert_eq!(stray(&env), None, "it got away");
}

#[tokio::test]
async fn a_stop_ends_the_tree_before_it_returns() {
    let env = TestEnv::new();
    let (tell, mut stop) = watch::channel(false);
    let command = format!("{STRAY} echo begun; sleep 100");
    let surroundings = surroundings(&env);
    let telling = async {
        while !env.path("stray").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tell.send(true).unwrap();
    };
    let running = command::run(order(&env, &command, LONG), &surroundings, &mut stop);
    let (result, ()) = tokio::join!(running, telling);
    assert_eq!(result.exit, CommandExit::Stopped);
    assert_eq!(stray(&env), None, "it got away");
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_the_tree_as_well() {
    let env = TestEnv::new();
    let command = format!("{STRAY} sleep 100");
    let dropped = async {
        while !env.path("stray").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        result = run(&env, &command, LONG) => panic!("{result:?}"),
        () = dropped => {}
    }
    let deadline = Instant::now() + Duration::from_secs(15);
    while stray(&env).is_some() {
        assert!(Instant::now() < deadline, "it got away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_flood_stays_bounded_in_memory_and_on_the_disk() {
    let env = TestEnv::new();
    let file = env.path("output");
    let command = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last";
    let mut stop = watch::channel(false).1;
    let order = Order { keep: Some(&file), ..order(&env, command, LONG) };
    let result = command::run(order, &surroundings(&env), &mut stop).await;
    assert_eq!(result.exit, CommandExit::Passed);
    assert!(result.output.starts_with("first\nxxx") && result.output.ends_with("xxx\nlast\n"));
    assert!(result.output.contains("\n… (99934476 bytes left out) …\n"), "{}", result.output.len());
    assert!(result.output.len() < (64 << 10) + 100);
    let kept = std::fs::read(&file).unwrap();
    let end = "\n… (32891148 bytes left out) …\n".as_bytes();
    assert_eq!((kept.len() - end.len(), &kept[kept.len() - end.len()..]), (64 << 20, end));
}

#[tokio::test]
async fn a_command_cannot_report_in_the_place_of_its_runner() {
    let env = TestEnv::new();
    let command = "printf '{\"exited\":{\"code\":0}}\\n' > /proc/$PPID/fd/0; exit 1";
    let result = run(&env, command, LONG).await;
    assert_eq!(result.exit, CommandExit::Failed { code: 1 }, "{}", result.output);
}
