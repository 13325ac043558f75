//! Cleaning up: what nobody needs goes, what did not land stays, and whoever can
//! go on is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::script::{Script, bash, commit, plan, subject, task};
use crate::stage::{MANY, Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// A session that landed one task and gave up on another.
fn ended() -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let idle: Vec<u32> = (1..=4).collect();
    let mut script = Script::new().works("task-001", &[("src/a.txt", "a\n")]);
    for attempt in idle {
        script = script.idles("task-002", attempt);
    }
    let stage = Stage::new("").plan(&plan(&tasks)).script(&script.passes()).decisions(APPROVE);
    stage.run().exits(1);
    assert_eq!(stage.landed(), [subject("task-001")]);
    wait_until("no process is left", || stage.processes().is_empty());
    stage
}

/// Everything below a directory, with all that would tell of a change.
fn listing(root: &Path) -> BTreeMap<PathBuf, (u64, u32, i64, i64)> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap()) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            // What the program says goes here.
            if directory == root && (name.starts_with("out.") || name.starts_with("err.")) {
                continue;
            }
            let found = fs::symlink_metadata(&path).unwrap();
            let row = (found.len(), found.mode(), found.mtime(), found.mtime_nsec());
            if found.is_dir() {
                open.push(path.clone());
            }
            all.insert(path, row);
        }
    }
    all
}

fn refs(stage: &Stage) -> Vec<String> {
    let all = stage.git(&["for-each-ref", "--format=%(refname)", "refs/blueflame/"]);
    let id = stage.session_id();
    let prefix = format!("refs/blueflame/{id}/");
    all.lines().map(|name| name.strip_prefix(&prefix).unwrap_or(name).to_owned()).collect()
}

fn homes(stage: &Stage) -> usize {
    let attempts = fs::read_dir(stage.session().join("attempts")).unwrap();
    attempts.filter(|entry| entry.as_ref().unwrap().path().join("home").exists()).count()
}

/// A socket that its process left, as a killed attempt does.
fn dead_socket(stage: &Stage) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let place = stage.env.path(format!("tmp/blueflame-control-{user}/0123456789abcdef"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&place).unwrap();
    drop(UnixListener::bind(place.join("control")).unwrap());
    place
}

#[test]
fn a_dry_run_lists_and_touches_nothing_and_then_unlanded_work_stays() {
    let stage = ended();
    let socket = dead_socket(&stage);
    let before = listing(stage.env.root());
    let told = stage.blueflame(&["cleanup", "--dry-run"]).exits(0);
    let told = told.says("would remove  homes and temporary files").says("refs of ses-");
    let told = told.says("would remove  sockets of an attempt that is dead");
    let told = told.says("kept          workspace task-002.a").says("it did not land");
    told.says("nothing was removed; it would free").says("cleanup --unlanded");
    assert_eq!(listing(stage.env.root()), before);

    let kept = stage.workspaces();
    assert!(!kept.is_empty() && kept.iter().all(|name| name.starts_with("task-002.a")), "{kept:?}");
    assert!(homes(&stage) > 0);
    let told = stage.blueflame(&["cleanup"]).exits(0).says("removed       homes");
    told.says("freed ").says("kept          workspace task-002.a");
    assert_eq!(stage.workspaces(), kept);
    assert_eq!(homes(&stage), 0);
    assert!(!socket.exists());
    let left = refs(&stage);
    assert!(!left.is_empty() && left.iter().all(|name| name.contains("/task-002.a")), "{left:?}");
    let log = stage.blueflame(&["log"]).exits(0);
    assert!(log.stdout.contains("cleaned up, "), "{log}");
    let replay = stage.blueflame(&["replay"]).exits(0);
    replay.says("decisions all as this version takes them");
    stage.blueflame(&["cleanup"]).exits(0).says("there is nothing to remove");

    stage.blueflame(&["cleanup", "--unlanded"]).exits(0).says("removed       workspace task-002.a");
    assert_eq!((stage.workspaces(), refs(&stage)), (Vec::new(), Vec::new()));
    // What landed can be taken back without any of it.
    stage.blueflame(&["revert", "--yes", "one.c1"]).exits(0);
    assert!(!stage.repository().join("src/a.txt").exists());
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
}

#[test]
fn work_that_broke_a_rule_is_kept_where_it_is_said_to_be_until_the_cleanup() {
    let leak = concat!("AKIA", "Z7Q2N4KD83HFMW5T\n");
    let script = Script::new()
        .attempt("task-001", 1, &commit("task-001", &[("src/a.txt", leak)]))
        .works("task-001", &[("src/a.txt", "a\n")])
        .passes();
    let plan = plan(&[task("task-001", "one", "src/a.txt")]);
    let stage = Stage::new("").plan(&plan).script(&script).decisions(APPROVE);
    stage.run().exits(0);
    assert_eq!(stage.landed(), [subject("task-001")]);
    let found = stage.events("inspection.finished");
    let violations = found[0]["violations"].as_array().unwrap();
    let [secret, kept] = &violations[..] else { panic!("{violations:?}") };
    assert!(secret.as_str().unwrap().starts_with("changes.secret: `src/a.txt` line 1 holds"));
    assert!(!secret.as_str().unwrap().contains(leak.trim()), "the key itself was told");
    let name = format!("refs/blueflame/{}/attempts/task-001.a1", stage.session_id());
    assert!(kept.as_str().unwrap().contains(&format!("`{name}`")), "{kept}");
    assert!(stage.git(&["show", &name]).contains(leak.trim()));
    let log = stage.blueflame(&["log"]).exits(0);
    assert!(log.stdout.contains(&name), "{log}");
    // The task landed in another way, and nobody needs this one any more.
    stage.blueflame(&["cleanup"]).exits(0);
    assert_eq!(stage.git(&["for-each-ref", &name]), "");
}

#[test]
fn commits_on_another_branch_are_kept_until_the_cleanup() {
    let mut calls = commit("task-001", &[("src/a.txt", "a\n")]);
    calls.push(bash("sh aside.sh"));
    let script = Script::new()
        .attempt("task-001", 1, &calls)
        .works("task-001", &[("src/a.txt", "a\n")])
        .passes();
    let stage = Stage::new("");
    let config = stage.read("blueflame.yaml").replace("\"sh wait.sh\"", "\"sh aside.sh\"");
    let aside = "git checkout -qb aside && git commit -q --allow-empty -m 'feat: aside'\n\
                 git checkout -q -\n";
    let stage = stage
        .with_file("aside.sh", aside)
        .with_file("blueflame.yaml", &config)
        .plan(&plan(&[task("task-001", "one", "src/a.txt")]))
        .script(&script)
        .decisions(APPROVE);
    stage.run().exits(0);
    assert_eq!(stage.outcomes("task-001"), ["violated", "finished"]);
    let name = format!("refs/blueflame/{}/elsewhere/task-001.a1/1", stage.session_id());
    assert_eq!(stage.git(&["log", "-1", "--format=%s", &name]).trim(), "feat: aside");
    stage.blueflame(&["cleanup"]).exits(0);
    assert_eq!(stage.git(&["for-each-ref", &name]), "");
    assert_eq!(stage.read("src/a.txt"), "a\n");
}

#[test]
fn a_session_that_can_go_on_keeps_everything_and_goes_on() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let mut calls = vec![bash("sh wait.sh go")];
    calls.extend(commit("task-001", &[("src/a.txt", "a\n")]));
    let script = Script::new()
        .attempt("task-001", 1, &calls)
        .works("task-001", &[("src/a.txt", "a\n")])
        .passes();
    let stage = Stage::new(MANY).plan(&plan(&tasks)).script(&script).decisions(APPROVE);
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 1);
    for arguments in [&["cleanup"][..], &["cleanup", "--dry-run"], &["cleanup", "--unlanded"]] {
        stage.blueflame(arguments).exits(6).says("holds this repository");
    }
    // From another repository only the dead are seen.
    let other = stage.env.repository("other");
    other.write("blueflame.yaml", &stage.read("blueflame.yaml")).commit("chore: another");
    let user = rustix::process::geteuid().as_raw();
    let sockets = stage.env.path(format!("tmp/blueflame-control-{user}"));
    let alive = listing(&sockets);
    assert!(!alive.is_empty());
    let dead = dead_socket(&stage);
    let mut command = stage.command(&["cleanup"]);
    command.current_dir(other.path());
    assert!(stage.env.run(command).status.success());
    assert!(!dead.exists());
    assert_eq!(listing(&sockets), alive);

    running.kill();
    let (trees, session) = (stage.repository().join(".trees"), stage.session());
    let names = |root: &Path| listing(root).into_keys().collect::<Vec<PathBuf>>();
    let before = names(&trees);
    let told = stage.blueflame(&["cleanup", "--unlanded", "--keep-logs", "0"]).exits(0);
    told.says("kept          everything of ses-").says("`blueflame resume ses-");
    assert_eq!(names(&trees), before);
    assert!(session.join("attempts/task-001.a1/home").exists());
    stage.signal("go");
    stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001")]);
}

#[test]
fn what_landed_and_is_not_on_the_base_branch_stays_whatever_is_asked() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let script = Script::new().works("task-001", &[("src/a.txt", "a\n")]).passes();
    let stage = Stage::new("")
        .with_file("src/a.txt", "as committed\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE);
    stage.write("src/a.txt", "not committed\n");
    stage.run().exits(0);
    let told = stage.blueflame(&["cleanup", "--unlanded", "--keep-logs", "0"]).exits(0);
    told.says("refs of landed work of ses-")
        .says("not on the base branch: `blueflame publish ses-");
    assert!(refs(&stage).contains(&"integration".to_owned()));
    assert_eq!(stage.read("src/a.txt"), "not committed\n");
    stage.git(&["restore", "src/a.txt"]);
    stage.blueflame(&["publish"]).exits(0);
    assert_eq!(stage.read("src/a.txt"), "a\n");
    stage.blueflame(&["cleanup"]).exits(0);
    assert_eq!(refs(&stage), Vec::<String>::new());
    stage.assert_tidy();
}

#[test]
fn logs_go_when_they_are_old_and_the_history_stays() {
    let stage = ended();
    let logs = || stage.session().join("attempts/task-001.a1/audit.jsonl").exists();
    let cost = stage.blueflame(&["cost", "--json"]).exits(0).stdout;
    stage.blueflame(&["cleanup"]).exits(0);
    assert!(logs());
    stage.blueflame(&["cleanup", "--keep-logs", "0"]).exits(0).says("removed       old logs");
    assert!(!logs());
    assert_eq!(stage.blueflame(&["cost", "--json"]).exits(0).stdout, cost);
    stage.blueflame(&["status"]).exits(0);
    // What a killed `run` leaves before its journal begins goes too.
    let never = stage.repository().join(".git/blueflame/sessions/ses-20200101-000000/attempts");
    fs::create_dir_all(&never).unwrap();
    stage.blueflame(&["cleanup"]).exits(0).says("session that never began");
    assert!(!never.exists());
}

#[test]
fn logs_go_when_there_are_too_many_the_oldest_first() {
    let stage = ended();
    let first = stage.session();
    let tasks = [task("task-003", "three", "src/c.txt")];
    let script = Script::new().works("task-003", &[("src/c.txt", "c\n")]).passes();
    let stage = stage.plan(&plan(&tasks)).script(&script);
    stage.run().exits(0);
    let second = stage.session();
    // The first session has much to say, the second one a little less.
    let logs = [first.join("attempts/task-001.a1"), second.join("attempts/task-003.a1")];
    for (directory, size) in logs.iter().zip([5_000_000, 3_000_000]) {
        fs::write(directory.join("output.jsonl"), vec![b'x'; size]).unwrap();
    }
    let there = || logs.each_ref().map(|it| it.join("output.jsonl").exists());
    stage.blueflame(&["cleanup", "--keep-logs-mb", "10"]).exits(0);
    assert_eq!(there(), [true, true]);

    let told = stage.blueflame(&["cleanup", "--dry-run", "--keep-logs-mb", "7"]).exits(0);
    told.says("would remove  logs beyond the room for them of ses-").says("5.");
    assert_eq!(there(), [true, true]);
    stage.blueflame(&["cleanup", "--keep-logs-mb", "7"]).exits(0).says("logs beyond the room");
    assert_eq!(there(), [false, true]);
    stage.blueflame(&["cleanup", "--keep-logs-mb", "1"]).exits(0);
    assert_eq!(there(), [false, false]);
    // Journals are no logs.
    for session in [&first, &second] {
        let id = session.file_name().unwrap().to_str().unwrap();
        stage.blueflame(&["log", id]).exits(0);
        stage.blueflame(&["cost", id]).exits(0);
    }
}

#[test]
fn workspaces_of_nobody_stay_until_the_person_says_so() {
    let stage = ended();
    let stray = stage.repository().join(".trees/ses-20200101-000000/task-001.a1/work.txt");
    fs::create_dir_all(stray.parent().unwrap()).unwrap();
    fs::write(&stray, "somebody's\n").unwrap();
    stage.blueflame(&["cleanup"]).exits(0).says("nothing is known of that session");
    assert!(stray.exists());
    stage.blueflame(&["cleanup", "--unlanded"]).exits(0);
    assert!(!stray.exists());
}

/// What was left of checkouts by somebody who was killed.
#[test]
fn checkouts_that_nobody_needs_go_with_their_seals() {
    let stage = ended();
    let place = stage.repository().join(".trees/.bases");
    let in_use: Vec<PathBuf> =
        fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
    let unused = place.join(format!("{}-9", "a".repeat(40)));
    fs::create_dir_all(unused.join("src")).unwrap();
    for seal in [unused.with_extension("seal"), place.join("gone-1.seal")] {
        fs::write(seal, "mark").unwrap();
    }
    let told = stage.blueflame(&["cleanup", "--dry-run"]).exits(0);
    told.says("would remove  checkouts that no workspace is laid over");
    stage.blueflame(&["cleanup"]).exits(0);
    let mut left: Vec<PathBuf> =
        fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let mut expected = in_use;
    expected.sort();
    assert_eq!(left, expected, "the workspace that is kept needs its own");
}
