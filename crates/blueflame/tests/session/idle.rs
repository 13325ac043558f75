//! While an agent thinks, nobody else has anything to do, and nobody looks whether
//! there is: each process of ours waits until it is told of something.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use crate::script::{Script, bash, commit, plan, task};
use crate::stage::{Stage, wait_until};

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(10);

/// How often a process may come to itself in that time: for signs of life, and for a
/// snapshot of the agent's work.
const MOST: u64 = 30;

/// The first process in a sandbox has to see in time that memory or disk run out. With as
/// much as this, they cannot for a while, however many processors there are.
const MUCH: &str = "sandbox: {max_memory_mb: 65536, max_disk_mb: 1048576, ";

#[test]
fn nobody_wakes_up_for_nothing_while_an_agent_works() {
    let mut calls = vec![bash("sh wait.sh go")];
    calls.extend(commit("task-001", &[("src/one.txt", "done\n")]));
    let script = Script::new().attempt("task-001", 1, &calls).passes();
    let stage = Stage::new("").plan(&plan(&[task("task-001", "g", "src/one.txt")]));
    let stage = stage.script(&script);
    let stage = stage.decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    let config = stage.read("blueflame.yaml").replace("sandbox: {", MUCH);
    let stage = stage.with_file("blueflame.yaml", &config);
    let running = stage.begin();
    let works = || stage.processes().iter().any(|it| it.contains("wait.sh"));
    wait_until("the agent works", works);
    // What it began with is written down, and seen to.
    std::thread::sleep(Duration::from_secs(2));

    let mut watched = vec![("orchestrator", running.pid())];
    for (pid, line) in stage.running() {
        let pid = u32::try_from(pid).unwrap();
        if line.contains("__attempt") {
            watched.push(("attempt", pid));
        } else if line.contains("__launch") {
            watched.push(("sandbox", pid));
        }
    }
    for who in ["attempt", "sandbox"] {
        assert!(watched.iter().any(|it| it.0 == who), "{:?}", stage.running());
    }
    let before: Vec<_> = watched.iter().map(|(_, pid)| wake_ups(*pid)).collect();
    std::thread::sleep(WATCHED);
    for ((name, pid), before) in watched.iter().zip(before) {
        // One that had nothing to do for long may have ended meanwhile.
        let since = |(thread, count): (OsString, u64)| {
            count - before.get(&thread).copied().unwrap_or_default()
        };
        let times: u64 = wake_ups(*pid).into_iter().map(since).sum();
        println!("{name}: woke up {times} times in {} s", WATCHED.as_secs());
        assert!(times <= MOST, "{name}: {times} times");
    }
    stage.signal("go");
    running.end().exits(0);
}

/// How often each thread of a process had waited for something, and went on.
fn wake_ups(pid: u32) -> BTreeMap<OsString, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let count = |status: String| -> u64 {
        let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    };
    threads
        .filter_map(|it| {
            // It may end just now.
            let status = fs::read_to_string(it.path().join("status")).ok()?;
            Some((it.file_name(), count(status)))
        })
        .collect()
}
