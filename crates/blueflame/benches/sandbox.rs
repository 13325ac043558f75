//! What it costs to start a program in the sandbox.
//!
//! `/bin/true` is started bare, in both tiers, and, where they are installed, in
//! bubblewrap with the very same mounts and in `srt`, the sandbox of
//! `@anthropic-ai/sandbox-runtime`; turn by turn in one run, because the machine
//! changes its mind. The plan is that of an agent in a small repository.
//!
//! ```text
//! BLUEFLAME_BENCH_SRT=/path/to/srt cargo bench -p blueflame --bench sandbox
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blueflame::sandbox::{self, Boundary, Occupant, Plan, Tier, View};
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::Reach;
use blueflame_testkit::TestEnv;

const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");
const PROGRAM: &str = "/bin/true";

/// Turns before those that count, and those.
const WARM: usize = 20;
const ROUNDS: usize = 300;
/// `srt` takes a hundred times as long.
const FEW_ROUNDS: usize = 20;

/// One way to start the program, and how long each start took.
struct Way {
    name: &'static str,
    command: Command,
    rounds: usize,
    times: Vec<Duration>,
}

fn main() {
    let env = TestEnv::new();
    let repository = env.repository("repo");
    repository.write("src/lib.rs", "pub fn f() {}\n");
    repository.git(["add", "."]);
    repository.git(["commit", "-q", "-m", "start"]);
    let mut clone = env.command("git");
    clone.args(["clone", "-q", "--shared", "repo", "agent"]);
    assert!(clone.status().unwrap().success());
    let plan = |tier| plan(&env, tier);

    let mut ways = vec![
        Way::new("bare", ROUNDS, Command::new(PROGRAM)),
        Way::new("namespaces", ROUNDS, launcher(&plan(Tier::Namespaces))),
        Way::new("landlock", ROUNDS, launcher(&plan(Tier::Landlock))),
    ];
    if Path::new("/usr/bin/bwrap").exists() {
        ways.push(Way::new("bubblewrap", ROUNDS, bubblewrap(&plan(Tier::Namespaces))));
    }
    if let Some(srt) = std::env::var_os("BLUEFLAME_BENCH_SRT") {
        let mut command = Command::new(srt);
        command.arg(PROGRAM);
        ways.push(Way::new("srt", FEW_ROUNDS, command));
    }
    for way in &mut ways {
        way.command.current_dir(env.path("agent")).stdin(Stdio::null());
    }
    for round in 0..WARM + ROUNDS {
        for way in &mut ways {
            if round < WARM + way.rounds {
                let took = way.start();
                way.times.extend((round >= WARM).then_some(took));
            }
        }
    }
    let mounts = plan(Tier::Namespaces).views.len();
    println!("{ROUNDS} starts of {PROGRAM} each ({FEW_ROUNDS} of srt), {mounts} views");
    println!("            median      min  10 to 90 percent   to bubblewrap");
    let reference = ways.iter().find(|way| way.name == "bubblewrap").map(|way| way.at(50));
    for way in &ways {
        let ratio = reference.map_or_else(String::new, |it| {
            format!("{:.2}", way.at(50).as_secs_f64() / it.as_secs_f64())
        });
        println!(
            "{:<10} {} {}  {} {}   {ratio:>13}",
            way.name,
            milliseconds(way.at(50)),
            milliseconds(way.at(0)),
            milliseconds(way.at(10)),
            milliseconds(way.at(90)),
        );
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:>5.1} ms", time.as_secs_f64() * 1e3)
}

impl Way {
    fn new(name: &'static str, rounds: usize, command: Command) -> Way {
        Way { name, command, rounds, times: Vec::new() }
    }

    fn start(&mut self) -> Duration {
        let begun = Instant::now();
        let status = self.command.status().unwrap();
        let took = begun.elapsed();
        assert!(status.success(), "{}: {status}", self.name);
        took
    }

    /// The time that so many percent of starts did not exceed.
    fn at(&self, percent: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort();
        times[(times.len() - 1) * percent / 100]
    }
}

fn plan(env: &TestEnv, tier: Tier) -> Plan {
    let config = blueflame_core::config::read(b"schema_version: 2\n").config.unwrap();
    let boundary = Boundary { tier, ..Boundary::default() };
    let path = std::env::var("PATH").unwrap();
    let terms = sandbox::terms(&config.sandbox, boundary, &path);
    let (home, tmp) = (env.path("home"), env.path("tmp"));
    let lock = |name: &str| LockPath::new(name).unwrap();
    let occupant = Occupant {
        ground: &env.path("agent"),
        reach: Reach::Only { locks: vec![lock("src")], scratch: vec![lock("target")] },
        home: &home,
        tmp: &tmp,
        programs: vec![Path::new(BLUEFLAME)],
        files: Vec::new(),
        gateway: None,
    };
    sandbox::draw(&terms, &occupant).unwrap()
}

fn launcher(plan: &Plan) -> Command {
    let mut command = Command::new(BLUEFLAME);
    command
        .args(["__launch", &std::process::id().to_string(), PROGRAM])
        .env(sandbox::PLAN, serde_json::to_string(plan).unwrap());
    command
}

/// The same files at the same places, in the same namespaces.
fn bubblewrap(plan: &Plan) -> Command {
    let mut command = Command::new("/usr/bin/bwrap");
    command.args(["--unshare-all", "--die-with-parent", "--uid", "1000", "--gid", "1000"]);
    command.args(["--proc", "/proc", "--dev", "/dev"]);
    for (path, view) in &plan.views {
        let (how, from): (&str, Option<&PathBuf>) = match view {
            View::Read(from) => ("--ro-bind", Some(from)),
            View::Write(from) => ("--bind", Some(from)),
            View::Link(target) => ("--symlink", Some(target)),
            View::Fresh(_) => ("--tmpfs", None),
        };
        command.arg(how).args(from).arg(path);
    }
    command.arg(PROGRAM);
    command
}
