//! What workers leave behind, and what becomes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::script::{Script, bash, commit, plan, subject, task, write};
use crate::stage::{MANY, Stage};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [stop]\n";

fn one_task(script: Script) -> Stage {
    Stage::new(MANY)
        .plan(&plan(&[task("task-001", "only", "src/a.txt")]))
        .script(&script.works("task-001", &[("src/a.txt", "a\n")]).passes())
        .decisions(APPROVE)
}

#[test]
fn uncommitted_work_is_in_place_again_and_is_committed() {
    let script = Script::new()
        .attempt("task-001", 1, &[write("src/a.txt", "kept\n")])
        // It writes nothing: what it commits is what the first one left.
        .attempt(
            "task-001",
            2,
            &[bash(&format!("git add src/a.txt && git commit -q -m '{}'", subject("task-001")))],
        );
    let stage = one_task(script);
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["uncommitted", "finished"]);
    assert_eq!(stage.read("src/a.txt"), "kept\n");
    assert_eq!(stage.landed(), [subject("task-001")]);
    // What is finished needs no snapshot.
    let saved =
        |attempt: &str| stage.session().join("attempts").join(attempt).join("snapshots.git");
    assert!(saved("task-001.a1").exists() && !saved("task-001.a2").exists());
    stage.assert_tidy();
}

#[test]
fn where_unfinished_work_cannot_be_saved_that_is_said_and_the_task_is_done_again() {
    let first = [write("src/a.txt", "half of it\n"), bash("sh wait.sh go")];
    let stage = one_task(Script::new().attempt("task-001", 1, &first));
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 1);
    // Snapshots that cannot be read would be put aside, where something else is.
    let attempt = stage.session().join("attempts/task-001.a1");
    fs::create_dir(attempt.join("snapshots.git")).unwrap();
    fs::write(attempt.join("snapshots.broken"), "").unwrap();
    stage.signal("go");
    running.end().exits(0).says("unfinished work is not saved: cannot prepare snapshots");
    assert_eq!(stage.outcomes("task-001"), ["uncommitted", "finished"]);
    assert_eq!(stage.events("agent.snapshot").len(), 0);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    stage.assert_tidy();
}

#[test]
fn what_is_left_beside_commits_is_not_dropped() {
    let mut calls = commit("task-001", &[("src/a.txt", "first half\n")]);
    calls.push(write("src/b.txt", "second half\n"));
    let second = bash(&format!("git add src && git commit -q -m '{}'", subject("task-001")));
    let script =
        Script::new().attempt("task-001", 1, &calls).attempt("task-001", 2, &[second]).passes();
    let both = task("task-001", "only", "src/a.txt").locks(&["src/a.txt", "src/b.txt"]);
    let stage = Stage::new(MANY).plan(&plan(&[both])).script(&script).decisions(APPROVE);
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["uncommitted", "finished"]);
    // The second attempt writes nothing: it finds the commit and the rest.
    let halves = [("src/a.txt", "first half"), ("src/b.txt", "second half")];
    assert_eq!(stage.sources(), halves.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
    stage.assert_tidy();
}

#[test]
fn what_could_never_be_committed_may_lie_around() {
    let mut calls = commit("task-001", &[("src/a.txt", "a\n")]);
    calls.push(bash("sh build.sh"));
    let stage = one_task(Script::new().attempt("task-001", 1, &calls))
        .with_file("build.sh", "#!/bin/sh\necho built > report.xml\n");
    let config = stage.read("blueflame.yaml").replace("\"sh wait.sh\"", "\"sh build.sh\"");
    let stage = stage.with_file("blueflame.yaml", &config);
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn a_merger_that_leaves_changes_uncommitted_is_not_done() {
    let tasks =
        [task("task-001", "one", "src/shared.txt"), task("task-002", "two", "src/shared.txt")];
    let mut calls = commit("task-002", &[("src/shared.txt", "one\n")]);
    // The first merger forgets the rest, the second does not.
    calls.extend([write("src/shared.txt", "one and two\n"), bash("sh settle.sh")]);
    let output = json!({"status": "resolved", "notes": "Both.", "issues": []});
    let script = Script::new()
        .works("task-001", &[("src/shared.txt", "one\n")])
        .works("task-002", &[("src/shared.txt", "two\n")])
        .reply(json!({"when": {"role": "merger", "turn": 0}, "call": calls}))
        .reply(json!({"when": {"role": "merger"}, "output": output}))
        .passes();
    let stage = Stage::new(MANY);
    let marker = stage.env.path("settled").display().to_string();
    let settle = format!("test -e {marker} && git commit -q --all -m 'feat: x'; touch {marker}\n");
    // It remembers, which nothing in a sandbox does.
    let config = stage.read("blueflame.yaml").replace("\"sh wait.sh\"", "\"sh settle.sh\"");
    let config = config.replace("sandbox: {", "sandbox: {mode: off, ");
    let stage = stage
        .with_file("settle.sh", &settle)
        .with_file("blueflame.yaml", &config)
        .with_file("src/shared.txt", "none\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.run().exits(0);
    let ends = stage.events("agent.exited").into_iter();
    let mergers = ends.filter(|it| it["agent"].as_str().unwrap().starts_with("merger"));
    let kinds: Vec<_> = mergers.map(|it| it["outcome"]["kind"].clone()).collect();
    assert_eq!(kinds, ["uncommitted", "finished"]);
    assert_eq!(stage.read("src/shared.txt"), "one and two\n");
    stage.assert_tidy();
}

/// Its commits do not land, but its files do: they are looked over like any other's.
#[test]
fn what_a_merger_leaves_is_inspected() {
    let tasks =
        [task("task-001", "one", "src/shared.txt"), task("task-002", "two", "src/shared.txt")];
    let output = json!({"status": "resolved", "notes": "Both.", "issues": []});
    let script = Script::new()
        .works("task-001", &[("src/shared.txt", "one\n")])
        .works("task-002", &[("src/shared.txt", "two\n")])
        .reply(json!({"when": {"role": "merger", "turn": 0}, "call": [bash("sh settle.sh")]}))
        .reply(json!({"when": {"role": "merger"}, "output": output}))
        .passes();
    let stage = Stage::new(MANY);
    let marker = stage.env.path("settled").display().to_string();
    let key = concat!("AKIA", "Z7Q2N4KD83HFMW5T");
    // The first merger leaves a key, the second does not.
    let settle = format!(
        "test -e {marker} && text='one and two' || text={key}; touch {marker}\n\
         echo \"$text\" > src/shared.txt; git commit -q --all -m 'feat: x'\n"
    );
    let config = stage.read("blueflame.yaml").replace("\"sh wait.sh\"", "\"sh settle.sh\"");
    let config = config.replace("sandbox: {", "sandbox: {mode: off, ");
    let stage = stage
        .with_file("settle.sh", &settle)
        .with_file("blueflame.yaml", &config)
        .with_file("src/shared.txt", "none\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.run().exits(0);
    let ends = stage.events("agent.exited").into_iter();
    let mergers = ends.filter(|it| it["agent"].as_str().unwrap().starts_with("merger"));
    let outcomes: Vec<_> = mergers.map(|it| it["outcome"].clone()).collect();
    let kinds: Vec<_> = outcomes.iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["violated", "finished"], "{outcomes:?}");
    let violation = outcomes[0]["violations"][0].as_str().unwrap();
    assert!(violation.starts_with("changes.secret: `src/shared.txt` line 1"), "{violation}");
    assert_eq!(stage.read("src/shared.txt"), "one and two\n");
    assert!(!stage.git(&["log", "-p", "main"]).contains(&format!("+{key}")));
}

#[test]
fn a_worker_without_a_commit_is_tried_again() {
    let stage = one_task(Script::new().idles("task-001", 1));
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["no_op", "finished"]);
    stage.assert_tidy();
}

#[test]
fn commits_that_change_nothing_are_no_work() {
    let mut calls = commit("task-001", &[("src/a.txt", "new\n")]);
    calls.extend(commit("task-001", &[("src/a.txt", "old\n")]));
    let empty = [bash("git commit -q --allow-empty -m 'feat(task-001): nothing'")];
    let script = Script::new().attempt("task-001", 1, &calls).attempt("task-001", 2, &empty);
    let stage = one_task(script).with_file("src/a.txt", "old\n");
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["no_op", "no_op", "finished"]);
    assert_eq!(stage.landed(), [subject("task-001")]);
    stage.assert_tidy();
}

#[test]
fn what_went_around_the_judge_is_found_by_the_inspection() {
    // Neither command names a path that the policy could refuse.
    let calls = [write("src/a.txt", "a\n"), bash("sh plumbing.sh")];
    let plumbing = "#!/bin/sh\nset -e\nblob=$(echo evil | git hash-object -w --stdin)\n\
                    git update-index --add --cacheinfo 100644,$blob,.github/ci.yml\n\
                    git add src/a.txt\ngit commit -q -m 'feat(task-001): write it'\n";
    let stage =
        one_task(Script::new().attempt("task-001", 1, &calls)).with_file("plumbing.sh", plumbing);
    let config = stage.read("blueflame.yaml").replace("\"sh wait.sh\"", "\"sh plumbing.sh\"");
    let stage = stage.with_file("blueflame.yaml", &config);
    stage.run().exits(0);
    let inspections = stage.events("inspection.finished");
    let violations = inspections[0]["violations"].to_string();
    assert!(violations.contains(".github/ci.yml"), "{violations}");
    assert_eq!(inspections[1]["violations"], json!([]));
    assert_eq!(stage.git(&["ls-tree", "-r", "--name-only", "main", ".github"]), "");
    assert_eq!(stage.landed(), [subject("task-001")]);
    stage.assert_tidy();
}

/// A lock on a file opens its directory for new names: what the sandbox cannot
/// hold, the policy denies, and where a program does it, the inspection refuses.
#[test]
fn a_new_file_beside_a_locked_one_does_not_land() {
    let beside = "#!/bin/sh\nset -e\necho x > src/beside.txt\ngit add src\n\
                  git commit -q -m 'feat(task-001): write it'\n";
    let calls = [write("src/denied.txt", "x\n"), write("src/a.txt", "a\n"), bash("sh plumbing.sh")];
    let stage =
        one_task(Script::new().attempt("task-001", 1, &calls)).with_file("plumbing.sh", beside);
    let config = stage.read("blueflame.yaml").replace("\"sh wait.sh\"", "\"sh plumbing.sh\"");
    let stage = stage.with_file("blueflame.yaml", &config);
    stage.run().exits(0);
    let violations = stage.events("inspection.finished")[0]["violations"].to_string();
    assert!(violations.contains("src/beside.txt"), "{violations}");
    assert!(!violations.contains("src/denied.txt"), "{violations}");
    assert_eq!(stage.git(&["ls-tree", "-r", "--name-only", "main", "src"]).trim(), "src/a.txt");
    stage.assert_tidy();
}

/// A git that has no room for what it takes in, as long as the file `full` is
/// there; with `once` in it, that is removed at the first time.
fn with_a_full_disk(stage: &Stage, full: &str) -> String {
    let marker = stage.env.path("full");
    let git = stage.env.path("bin/git");
    let real = std::env::var("PATH").unwrap();
    fs::create_dir(git.parent().unwrap()).unwrap();
    let wrapper = format!(
        "#!/bin/sh\nfor word; do\nif test \"$word\" = index-pack && test -e {marker}; then\n\
         grep -q once {marker} && rm {marker}\n\
         echo 'fatal: write error: No space left on device' >&2; exit 128\nfi\ndone\n\
         PATH='{real}'; exec git \"$@\"\n",
        marker = marker.display()
    );
    fs::write(&git, wrapper).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&marker, full).unwrap();
    format!("{}:{real}", git.parent().unwrap().display())
}

#[test]
fn a_full_disk_is_not_the_workers_fault_and_its_work_is_taken_over_later() {
    let stage = one_task(Script::new());
    let config = format!("{}limits: {{max_retries: 0}}\n", stage.read("blueflame.yaml"));
    let stage = stage.with_file("blueflame.yaml", &config);
    let path = with_a_full_disk(&stage, "");
    let told = stage.begin_with(&[("PATH", &path)]).end();
    told.exits(3).says("No space left on device").says("blueflame resume");
    assert_eq!(stage.outcomes("task-001"), Vec::<String>::new());

    fs::remove_file(stage.env.path("full")).unwrap();
    stage.resume().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    assert_eq!(stage.requests().keys().filter(|it| it.starts_with("task-001.a")).count(), 1);
    assert_eq!(stage.landed(), [subject("task-001")]);
    stage.assert_tidy();
}

#[test]
fn what_cannot_be_taken_over_once_is_tried_again() {
    let stage = one_task(Script::new());
    let path = with_a_full_disk(&stage, "once");
    stage.begin_with(&[("PATH", &path)]).end().exits(0);
    assert!(!stage.env.path("full").exists());
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn a_crash_costs_a_retry() {
    let crash = json!({
        "when": {"role": "worker", "task": "task-001", "attempt": 1},
        "fail": {"status": 401},
    });
    let stage = one_task(Script::new().reply(crash));
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["crashed", "finished"]);
    stage.assert_tidy();
}

#[test]
fn after_the_last_retry_it_has_failed_and_what_needs_it_is_blocked() {
    let tasks = [
        task("task-001", "first", "src/a.txt"),
        task("task-002", "first", "src/b.txt").needs(&["task-001"]),
        task("task-003", "second", "src/c.txt").needs(&["task-002"]),
        task("task-004", "third", "src/d.txt"),
    ];
    let script = Script::new()
        .idles("task-001", 1)
        .idles("task-001", 2)
        .works("task-004", &[("src/d.txt", "d\n")])
        .passes();
    let stage = Stage::new(&format!("{MANY}limits: {{max_retries: 1}}\n"))
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.run().exits(1);
    assert_eq!(stage.outcomes("task-001"), ["no_op", "no_op"]);
    assert_eq!(stage.outcomes("task-002"), Vec::<String>::new());
    // The rest goes on without them.
    assert_eq!(stage.landed(), [subject("task-004")]);
    let status = stage.blueflame(&["status", "--json"]).exits(0);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    let text = status.to_string();
    assert!(text.contains("blocked"), "{text}");
    // What failed can be looked at.
    assert_eq!(stage.workspaces(), ["task-001.a1", "task-001.a2"]);
}

#[test]
fn a_workspace_that_cannot_be_prepared_starts_nobody() {
    let stage = one_task(Script::new());
    let config = format!(
        "{}worktree: {{prepare: [\"echo no such thing; exit 7\"]}}\nlimits: {{max_retries: 1}}\n",
        stage.read("blueflame.yaml").replace("embedded}", "embedded, fallback: [claude]}")
    );
    let stage = stage.with_file("blueflame.yaml", &config);
    stage.run().exits(1).says("no such thing");
    assert_eq!(stage.events("agent.start_failed").len(), 2);
    assert_eq!(stage.events("agent.started").len(), 0);
    // No other executor would have found a better place.
    let claimed = stage.events("agent.claimed");
    assert!(claimed.iter().all(|it| it["executor"] == "embedded"), "{claimed:?}");
    assert_eq!(stage.landed(), Vec::<String>::new());
}
