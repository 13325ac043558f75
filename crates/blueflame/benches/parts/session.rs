//! A whole session of scripted agents, from the command to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::processor::{self, Cost};
use super::{project, tasks};

/// What was seen of it.
pub struct Session {
    pub project: PathBuf,
    pub took: Duration,
    /// Of the orchestrator.
    pub cost: Cost,
}

/// Work for so many workers at once, validated, checked and merged.
pub fn run(directory: &Path, workers: u32) -> Session {
    fs::write(directory.join("script.yaml"), tasks::script(workers)).unwrap();
    fs::write(directory.join("plan.yaml"), tasks::plan(workers)).unwrap();
    let config = format!(
        "schema_version: 2\n\
         project: {{name: bench, base_branch: main}}\n\
         executors: {{default: embedded}}\n\
         gateway: {{upstream: 'script:../script.yaml'}}\n\
         concurrency: {{development: {workers}, validation: {workers}, adaptive: false}}\n\
         limits: {{max_session_cost_usd: 0}}\n\
         permissions:\n  allowed_paths: ['src/**']\n  bash_rules:\n    \
         allowed_commands: ['git add', 'git commit']\n\
         merge: {{verify: ['test -e src/{workers}.txt']}}\n"
    );
    let project = project::begin(directory, &config);
    let program = Command::new(env!("CARGO_BIN_EXE_blueflame"));
    let mut command = project::environment(program, directory);
    command.args(["run", "--task", "bench", "--plan", "../plan.yaml", "--yes"]);
    command.current_dir(&project).stdin(Stdio::null());
    command.stderr(fs::File::create(directory.join("log")).unwrap());
    let begun = Instant::now();
    let (status, cost) = processor::until_it_ends(&mut command.spawn().unwrap(), |_| {});
    let took = begun.elapsed();
    let log = fs::read_to_string(directory.join("log")).unwrap();
    assert!(status.success(), "{log}");
    Session { project, took, cost }
}
