//! Sixteen real claudes in a session, against the same sixteen without one.
//!
//! A session of 8 tasks, which is as many as it allows at a time, has 8 workers and 8
//! validators. Each of them is a claude with a scripted model. Then what these were
//! told (their prompts, arguments and tools) is told to 16 that are started bare:
//! without judging, sandbox, gateway, checks and merges. Once all at the same time, and
//! once each validator after its worker, as it has to be. The latter has as many
//! claudes at a time as the session; on a machine that does other work, more of them
//! get more of it.
//!
//! ```text
//! cargo bench -p blueflame --bench claudes
//! ```
//!
//! `BLUEFLAME_BENCH_ROUNDS` sets how often, once unless it is there.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

#[path = "../tests/agents/install.rs"]
#[expect(dead_code, reason = "other agents are not measured")]
mod install;
#[path = "parts/mod.rs"]
mod parts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blueflame::attempt::directory::Directory;
use blueflame::attempt::spec::Spec;
use blueflame_core::event::Work;
use serde_json::json;
use tempfile::TempDir;

use parts::bare::Place;
use parts::figures::{goal, load};
use parts::model::Model;
use parts::processor::{self, Cost, look};
use parts::project::BEGIN;
use parts::{bare, project, tasks};

const TASKS: u32 = 8;
/// Each task has a worker and a validator.
const CLAUDES: usize = 16;

fn main() {
    // What `cargo test --benches` asks for is not a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rounds = std::env::var("BLUEFLAME_BENCH_ROUNDS").map_or(1, |it| it.parse().unwrap());
    let Some(claude) = install::claude() else { return };
    println!(
        "{CLAUDES} claudes {}, half of them write and commit a file, half of them judge one; \
         load {}",
        install::CLAUDE,
        load()
    );
    println!("| | time | processor | orchestrator | its memory | attempt processes |");
    println!("|---|---|---|---|---|---|");
    let (mut ours, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let session = session(&claude);
        println!(
            "| a session | {:.1} s | {:.1} s | {:.2} s | {} MiB | \
             {:.2} s |",
            session.took.as_secs_f64(),
            session.cpu.as_secs_f64(),
            session.orchestrator.as_secs_f64(),
            session.peak_kib / 1024,
            session.attempts.as_secs_f64()
        );
        let runs = [Order::AtOnce, Order::InTurn].map(|order| bare(&session, order));
        for (run, how) in runs.iter().zip(["all at once", "validators after workers"]) {
            println!(
                "| bare, {how} | {:.1} s | {:.1} s | | | |",
                run.took.as_secs_f64(),
                run.cpu.as_secs_f64()
            );
        }
        ours.push(session);
        without.push(runs);
    }
    println!("load {}", load());
    tell(&ours, &without);
}

fn tell(ours: &[Session], bare: &[[Bare; 2]]) {
    let sum = |times: Vec<Duration>| times.iter().sum::<Duration>().as_secs_f64();
    let took = sum(ours.iter().map(|it| it.took).collect());
    let [at_once, in_turn] =
        [0, 1].map(|at| took / sum(bare.iter().map(|it| it[at].took).collect()));
    let agents = sum(bare.iter().map(|it| it[1].cpu).collect());
    let cpu = sum(ours.iter().map(|it| it.cpu).collect()) / agents;
    let orchestrator = 100.0 * sum(ours.iter().map(|it| it.orchestrator).collect()) / agents;
    let attempts = 100.0 * sum(ours.iter().map(|it| it.attempts).collect()) / agents;
    println!(
        "a session against bare: {at_once:.2} times the time of all at once, {in_turn:.2} times \
         that of validators after workers, {cpu:.2} times the processor"
    );
    println!(
        "of what the agents use, the orchestrator uses {orchestrator:.1} %, and the attempt \
         processes use {attempts:.1} %"
    );
    println!("{}", goal("within 1.1 times of bare, all at once", at_once <= 1.1));
    println!("{}", goal("within 1.1 times of bare, validators after workers", in_turn <= 1.1));
    println!("{}", goal("an orchestrator of at most 1 % of the agents", orchestrator <= 1.0));
}

/// What was seen of a session.
struct Session {
    took: Duration,
    /// Of everything that it did, agents included.
    cpu: Duration,
    /// Of the orchestrator alone, and of all attempt processes alone.
    orchestrator: Duration,
    attempts: Duration,
    /// The most memory that the orchestrator had.
    peak_kib: u64,
    /// What its claudes were told.
    specs: Vec<Spec>,
    directory: TempDir,
}

fn session(claude: &Path) -> Session {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("script.yaml"), tasks::script(TASKS)).unwrap();
    fs::write(directory.path().join("plan.yaml"), tasks::plan(TASKS)).unwrap();
    let project = project::begin(
        directory.path(),
        &format!(
            "schema_version: 2\n\
             project: {{name: bench, base_branch: main}}\n\
             executors: {{default: claude}}\n\
             gateway: {{upstream: 'script:../script.yaml'}}\n\
             concurrency: {{development: {TASKS}, validation: {TASKS}, adaptive: false}}\n\
             limits: {{max_session_cost_usd: 0}}\n\
             permissions:\n  allowed_paths: ['src/**']\n  bash_rules:\n    \
             allowed_commands: ['git add', 'git commit']\n\
             waves: {{mode: pipelined}}\n"
        ),
    );
    let path = std::env::var_os("PATH").unwrap();
    let places = std::iter::once(claude.parent().unwrap().to_owned());
    let path = std::env::join_paths(places.chain(std::env::split_paths(&path))).unwrap();
    let begun = Instant::now();
    let program = Command::new(env!("CARGO_BIN_EXE_blueflame"));
    let child = project::environment(program, directory.path())
        .args(["run", "--task", "bench", "--plan", "../plan.yaml", "--yes"])
        .env("PATH", path)
        .current_dir(&project)
        .stdin(Stdio::null())
        .stderr(fs::File::create(directory.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let (cost, attempts) = watch(child, &directory.path().join("log"));
    let took = begun.elapsed();
    Session {
        took,
        cpu: cost.own + cost.children,
        orchestrator: cost.own,
        attempts: attempts.values().sum(),
        peak_kib: cost.peak_kib,
        specs: specs(&project),
        directory,
    }
}

/// Until it ends: what it has used, and what its attempt processes have.
fn watch(mut child: Child, log: &Path) -> (Cost, BTreeMap<u32, Duration>) {
    let mut attempts = BTreeMap::new();
    let (status, cost) = processor::until_it_ends(&mut child, |pid| {
        for attempt in attempts_of(pid) {
            if let Some(cost) = look(attempt) {
                attempts.insert(attempt, cost.own);
            }
        }
    });
    assert!(status.success(), "{}", fs::read_to_string(log).unwrap());
    (cost, attempts)
}

fn attempts_of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads
        .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let children: Vec<u32> = children
        .flat_map(|it| it.split(' ').filter_map(|it| it.parse().ok()).collect::<Vec<_>>())
        .collect();
    let is_attempt = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"__attempt")
    };
    children.into_iter().filter(is_attempt).collect()
}

/// What the claudes of the session were told.
fn specs(project: &Path) -> Vec<Spec> {
    let sessions = fs::read_dir(project.join(".git/blueflame/sessions")).unwrap();
    let session = sessions.flatten().next().unwrap().path();
    let attempts = fs::read_dir(session.join("attempts")).unwrap().flatten();
    let specs = attempts.map(|attempt| Directory::open(&attempt.path()).spec().unwrap());
    let specs: Vec<Spec> = specs.collect();
    assert_eq!(specs.len(), CLAUDES);
    specs
}

struct Bare {
    took: Duration,
    cpu: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AtOnce,
    /// The validator of a task after its worker.
    InTurn,
}

/// The same claudes, each in a clone that is there before.
fn bare(session: &Session, order: Order) -> Bare {
    let root = session.directory.path();
    let model = Model::open(&tasks::script(TASKS)).answers_at_once();
    let mut rows: BTreeMap<String, Vec<(&Spec, PathBuf)>> = BTreeMap::new();
    for (number, spec) in session.specs.iter().enumerate() {
        let place = format!("{order:?}-{number}");
        let workspace = format!("{place}/workspace");
        project::git(root, &["clone", "-q", "-b", BEGIN, "project", &workspace]);
        let row = match (order, &spec.work) {
            (Order::InTurn, Work::Develop { task, .. } | Work::Validate { task, .. }) => {
                task.to_string()
            }
            _ => place.clone(),
        };
        rows.entry(row).or_default().push((spec, root.join(place)));
    }
    for row in rows.values_mut() {
        row.sort_by_key(|(spec, _)| matches!(spec.work, Work::Validate { .. }));
    }
    let before = look(std::process::id()).unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for row in rows.values() {
            scope.spawn(|| row.iter().for_each(|(spec, place)| one(spec, place, &model)));
        }
    });
    let took = begun.elapsed();
    let after = look(std::process::id()).unwrap();
    let wrote = rows.values().flatten().filter(|(_, it)| it.join("workspace/src").exists());
    assert_eq!(wrote.count(), TASKS as usize, "as many files as tasks");
    Bare { took, cpu: after.children.saturating_sub(before.children) }
}

fn one(spec: &Spec, root: &Path, model: &str) {
    let settings = json!({"permissions": {"allow": ["Read", "Write", "Edit", "Bash"]}});
    let (program, workspace) = (&spec.program, &root.join("workspace"));
    let model = bare::Model::At(model);
    let place = Place { program, root, workspace, model };
    let mut child = bare::start(&spec.order, &settings, &place);
    // Nothing more is said.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "{}", root.display());
}
