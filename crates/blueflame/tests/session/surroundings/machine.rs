//! What the person's shell gives a session: homes, temporary files, limits.

use std::fs;

use super::{everything_landed, stage};
use crate::script::{Script, plan, task};
use crate::stage::{BLUEFLAME, Stage};

#[test]
fn without_a_home_of_the_person_it_works() {
    for home in ["env -u HOME", "env HOME=/proc/nothing"] {
        let stage = stage();
        let wrapper: Vec<String> = home.split(' ').map(str::to_owned).collect();
        stage.start_under(&wrapper, &stage.run_arguments()).end().exits(0);
        everything_landed(&stage);
    }
}

#[test]
fn a_place_for_temporary_files_that_does_not_do_is_named() {
    let stage = stage();
    let missing = stage.env.path("missing").display().to_string();
    let long = stage.env.path("x".repeat(150));
    fs::create_dir(&long).unwrap();
    let rows = [
        (missing, "(TMPDIR) is not a directory"),
        (long.display().to_string(), "(TMPDIR) is too long a path for sockets"),
        ("/proc".to_owned(), "(TMPDIR) cannot be written"),
    ];
    for (place, words) in rows {
        let variables = [("TMPDIR", place.as_str())];
        let told = stage.begin_with(&variables).end().exits(3).says(words);
        told.says("hint: export TMPDIR=/tmp");
        let doctor = stage.start_with(&["doctor"], &variables).end().exits(3);
        assert!(doctor.stdout.contains(words), "{doctor}");
    }
    assert!(stage.sessions().is_empty());
    stage.run().exits(0);
    everything_landed(&stage);
}

/// The program under a limit of its shell.
fn limited(limit: &str) -> Vec<String> {
    let script = format!("ulimit {limit}; exec \"$@\"");
    ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
}

#[test]
fn too_few_open_files_are_refused_and_not_taken_for_a_weak_sandbox() {
    for limit in ["-n 24", "-n 64", "-n 200"] {
        let stage = stage();
        let wrapper = limited(limit);
        let told = stage.start_under(&wrapper, &stage.run_arguments()).end().exits(3);
        told.says("may be open at once").says("hint: ulimit -n 1024");
        assert!(stage.sessions().is_empty());
    }
}

#[test]
fn as_many_open_files_as_there_may_be_are_taken() {
    let stage = stage();
    // The limit that is in force is far too low, and may be raised.
    let wrapper = limited("-S -n 24; ulimit -H -n 512");
    let told = stage.start_under(&wrapper, &stage.run_arguments()).end().exits(0);
    assert!(!told.stderr.contains("a weaker sandbox"), "{told}");
    everything_landed(&stage);
}

#[test]
fn too_few_processes_are_refused() {
    // The kernel holds only ordinary users to it, and only root can become one.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = stage();
    let program = stage.env.path("blueflame");
    fs::copy(BLUEFLAME, &program).unwrap();
    let mut chown = stage.env.command("chown");
    chown.args(["-R", "12345:12345"]).arg(stage.env.root());
    stage.env.run(chown).success();
    let mut command = stage.env.command("setpriv");
    command.args(["--reuid=12345", "--regid=12345", "--clear-groups", "prlimit", "--nproc=40"]);
    command.arg(&program).args(stage.run_arguments()).current_dir(stage.repository());
    let ran = stage.env.run(command);
    assert_eq!(ran.code(), Some(3), "{ran}");
    assert!(ran.stderr.contains("processes: you may have only 40"), "{ran}");
    assert!(ran.stderr.contains("hint: ulimit -u 4096"), "{ran}");
}

/// The most agents that were at work at the same time.
fn at_once(config: &str) -> usize {
    let names = ["1", "2", "3"].map(|it| (format!("task-00{it}"), format!("src/{it}.txt")));
    let tasks = names.each_ref().map(|(id, file)| task(id, "one", file));
    let works = |script: Script, (id, file): &(String, String)| script.works(id, &[(file, "x\n")]);
    let script = names.iter().fold(Script::new(), works);
    let stage =
        Stage::new(config).plan(&plan(&tasks)).script(&script.passes()).decisions(super::APPROVE);
    stage.run().exits(0);
    let journal = stage.journal();
    let step = |(now, most): (usize, usize), event: &serde_json::Value| match &event["t"] {
        it if it == "agent.claimed" => (now + 1, most.max(now + 1)),
        it if it == "agent.exited" => (now - 1, most),
        _ => (now, most),
    };
    journal.iter().fold((0, 0), step).1
}

/// The memory of the machine is looked at, and counts.
#[test]
fn little_memory_means_fewer_agents_in_a_real_session() {
    let config = |each: u64| {
        format!("concurrency: {{development: 3, adaptive_min_ram_per_agent_mb: {each}}}\n")
    };
    assert_eq!(at_once(&config(16_000_000)), 1);
    assert_eq!(at_once(&config(1)), 3);
}
