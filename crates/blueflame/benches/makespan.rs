//! How much longer a session takes than its agents need.
//!
//! Scripted agents take a known time each: the rest is what the program adds, for
//! workspaces, checks, git and waiting. The lower bound is what no orchestrator
//! could beat with as many places: the longest chain of dependencies, or all work
//! divided by the places, whichever is more, for workers and validators.
//!
//! ```text
//! cargo bench -p blueflame --bench makespan
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

#[path = "parts/mod.rs"]
mod parts;

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parts::processor::Cost;
use parts::{processor, project};

const WORKERS: u32 = 8;
const TASKS: u32 = 16;
const WORK: Duration = Duration::from_secs(4);
const VALIDATION: Duration = Duration::from_secs(2);

fn main() {
    println!(
        "{TASKS} tasks of {} s and validations of {} s, {WORKERS} at a time; every second task \
         needs the one before it",
        WORK.as_secs(),
        VALIDATION.as_secs()
    );
    println!(
        "waves      took    bound  ratio   orchestrator: cpu    peak memory   all below it: cpu"
    );
    for waves in ["strict", "pipelined"] {
        let (took, own) = session(waves);
        let bound = bound(waves);
        println!(
            "{waves:<9} {:>6.1} s {:>6.1} s  {:>5.2}   {:>17.2} s {:>9.1} MiB {:>18.1} s",
            took.as_secs_f64(),
            bound.as_secs_f64(),
            took.as_secs_f64() / bound.as_secs_f64(),
            own.own.as_secs_f64(),
            f64::from(u32::try_from(own.peak_kib).unwrap()) / 1024.0,
            own.children.as_secs_f64()
        );
    }
}

/// Chains of two tasks, enough places for all of the first ones: two rounds of
/// work. Validators come after everything, or after each task.
fn bound(waves: &str) -> Duration {
    let rounds = |agents: u32| agents.div_ceil(WORKERS);
    let work = WORK * rounds(TASKS).max(2);
    match waves {
        "strict" => work + VALIDATION * rounds(TASKS),
        // The second half of the work is validated when all of it is done; the
        // first half before it is built upon.
        _ => work + VALIDATION * 2,
    }
}

fn session(waves: &str) -> (Duration, Cost) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("script.yaml"), script()).unwrap();
    let config = format!(
        "schema_version: 2\n\
             project: {{name: bench, base_branch: main}}\n\
             planning: {{interactive: false}}\n\
             executors: {{default: embedded}}\n\
             gateway: {{upstream: 'script:../script.yaml'}}\n\
             concurrency: {{development: {WORKERS}, validation: {WORKERS}, adaptive: false}}\n\
             limits: {{max_session_cost_usd: 0}}\n\
             permissions:\n  allowed_paths: ['src/**']\n  bash_rules:\n    \
             allowed_commands: ['git add', 'git commit']\n\
             waves: {{mode: {waves}}}\n"
    );
    let project = project::begin(directory.path(), &config);
    let begun = Instant::now();
    let mut child =
        project::environment(Command::new(env!("CARGO_BIN_EXE_blueflame")), directory.path())
            .args(["run", "--task", "bench", "--yes"])
            .current_dir(&project)
            .stdin(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
    let (status, own) = processor::until_it_ends(&mut child, |_| {});
    let took = begun.elapsed();
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(status.success(), "{log}");
    (took, own)
}

/// One task after the other, each in a file of its own; every second one needs
/// the one before it.
fn script() -> String {
    let mut script =
        String::from("replies:\n  - when: {role: planner}\n    output:\n      tasks:\n");
    for number in 1..=TASKS {
        let needs = if number % 2 == 0 { format!("task-{:03}", number - 1) } else { String::new() };
        let _ = writeln!(
            script,
            "        - {{id: task-{number:03}, title: Task {number}, description: Do it, priority: \
             {}, cohesion_group: all, dependencies: [{needs}], file_locks: [src/{number}.txt]}}",
            2 - number % 2
        );
    }
    for number in 1..=TASKS {
        let task = format!("task-{number:03}");
        let commit = format!("git add src && git commit -q -m 'feat({task}): do it'");
        let _ = write!(
            script,
            "  - when: {{role: worker, task: {task}, turn: 0}}\n    delay: {}s\n    call: [{{tool: \
             Write, input: {{file_path: src/{number}.txt, content: x}}}}, {{tool: Bash, input: \
             {{command: \"{commit}\"}}}}]\n",
            WORK.as_secs()
        );
    }
    let _ = write!(
        script,
        "  - when: {{role: worker}}\n    say: Done.\n  - when: {{role: validator}}\n    delay: {}s\n    \
         output: {{status: pass, notes: fine, issues: []}}\n",
        VALIDATION.as_secs()
    );
    script
}
