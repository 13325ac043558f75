//! `blueflame log` and `blueflame replay` on a real journal.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use blueflame::journal::{Header, Writer};
use blueflame_core::event::Event;
use blueflame_core::ids::SessionId;
use blueflame_testkit::{Ran, Repository, TestEnv};

const PROGRAM: &str = env!("CARGO_BIN_EXE_blueflame");
const SESSION: &str = "ses-20260202-024000";

/// A repository in which a session has been, and where its journal is.
fn repository(env: &TestEnv) -> (Repository<'_>, PathBuf) {
    let repository = env.repository("project");
    repository.write("README.md", "# Project\n").commit("start");
    let session = repository.path().join(".git/blueflame/sessions").join(SESSION);
    std::fs::create_dir_all(&session).unwrap();
    let journal = session.join("journal.jsonl");
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/v1/seed-391.jsonl");
    std::fs::copy(sample, &journal).unwrap();
    (repository, journal)
}

fn first_lines(ran: &Ran, count: usize) -> String {
    ran.stdout.lines().take(count).collect::<Vec<_>>().join("\n")
}

#[test]
fn log_tells_what_happened() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    let log = repository.run(PROGRAM, ["log"]);
    assert_eq!(log.code(), Some(0));
    insta::assert_snapshot!(log);
}

#[test]
fn log_picks_out_a_task_or_an_agent() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    insta::assert_snapshot!(repository.run(PROGRAM, ["log", "--task", "task-001"]));
    let all = repository.run(PROGRAM, ["log"]).success();
    let worker = all.split_whitespace().find(|word| word.starts_with("worker-")).unwrap();
    let of_worker = repository.run(PROGRAM, ["log", "--agent", worker]).success();
    assert!(!of_worker.is_empty());
    assert!(of_worker.lines().all(|line| line.contains(worker)), "{of_worker}");
}

/// Tells the story of a journal anew, with some of its words replaced.
fn retell(journal: &Path, words: &[&str], by: &str) {
    let by = serde_json::to_string(by).unwrap();
    let mut told = std::fs::read_to_string(journal).unwrap();
    for word in words {
        assert!(told.contains(word), "{word}");
        told = told.replace(word, by.trim_matches('"'));
    }
    std::fs::remove_file(journal).unwrap();
    let header = Header::new(SessionId::new(SESSION).unwrap());
    let now = blueflame_testkit::sim::world::timestamp(0);
    let mut writer = Writer::create::<Event>(journal, &header, now, &[]).unwrap();
    for line in told.lines().skip(1) {
        let event: Event = serde_json::from_str(line).unwrap();
        writer.append(&[(now, &event)]).unwrap();
    }
}

#[test]
fn what_agents_say_stays_on_its_line() {
    let env = TestEnv::new();
    let (repository, journal) = repository(&env);
    let lines = repository.run(PROGRAM, ["log"]).success().lines().count();
    let page = repository.run(PROGRAM, ["replay"]).stderr.lines().count();
    let words = ["whatever seed 391 asks for", "simulated task-001"];
    retell(&journal, &words, "boom\x1b[2J\x1b]0;x\x07\n  999  2026-01-01 forged");
    let log = repository.run(PROGRAM, ["log"]);
    let replay = repository.run(PROGRAM, ["replay"]);
    for shown in [&log.stdout, &replay.stderr] {
        assert!(shown.contains("boom\\u{1b}[2J\\u{1b}]0;x\\u{7}"), "{shown}");
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }
    assert_eq!(log.stdout.lines().count(), lines, "{log}");
    assert_eq!(replay.stderr.lines().count(), page, "{replay}");
}

#[test]
fn log_as_json_is_one_event_a_line() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    let log = repository.run(PROGRAM, ["log", "--json", SESSION]);
    insta::assert_snapshot!(first_lines(&log, 4));
    for line in log.success().lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let members: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert!(members.starts_with(&[&"q".into(), &"ts".into(), &"e".into(), &"t".into()]));
    }
}

#[test]
fn follow_goes_on_until_the_session_ends() {
    let env = TestEnv::new();
    let (repository, journal) = repository(&env);
    // Take the end back, as if the session were still running.
    let text = std::fs::read_to_string(&journal).unwrap();
    let running = text.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    std::fs::write(&journal, running).unwrap();
    let mut command = env.command(PROGRAM);
    command.args(["log", "--follow"]).current_dir(repository.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let before = text.lines().count() - 2;
    for _ in 0..before {
        lines.next().unwrap().unwrap();
    }
    let mut writer = Writer::open(&journal, |_| Ok(())).unwrap().writer;
    let now = blueflame_testkit::sim::world::timestamp(9_000_000);
    let end = Event::SessionEnded { end: blueflame_core::event::End::Stopped };
    writer.append(&[(now, &Event::StopRequested)]).unwrap();
    writer.append(&[(now, &end)]).unwrap();
    let news: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(news[1].ends_with("the person stopped with work left"), "{news:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn follow_of_a_session_that_is_over_returns() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    let mut command = env.command("timeout");
    command.args(["20", PROGRAM, "log", "--follow"]).current_dir(repository.path());
    let followed = env.run(command).success();
    assert_eq!(followed, repository.run(PROGRAM, ["log"]).success());
}

#[test]
fn output_that_cannot_be_written_is_a_failure_and_a_reader_that_left_is_none() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    for arguments in ["log", "replay --json"] {
        let shell = |script: String| {
            let mut command = env.command("bash");
            command.args(["-c", &script]).current_dir(repository.path());
            env.run(command)
        };
        let full = shell(format!("'{PROGRAM}' {arguments} > /dev/full"));
        assert_eq!(full.code(), Some(70), "{full}");
        assert!(full.stderr.contains("standard output cannot be written"), "{full}");
        let left = shell(format!("'{PROGRAM}' {arguments} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(left.code(), Some(0), "{left}");
    }
}

#[test]
fn replay_shows_the_state_and_proves_it() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    insta::assert_snapshot!(repository.run(PROGRAM, ["replay"]));
    insta::assert_snapshot!(repository.run(PROGRAM, ["replay", SESSION, "--at", "8"]));
    let document = repository.run(PROGRAM, ["replay", "--json"]).success();
    let state: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(state["session"], SESSION);
    let again = repository.run(PROGRAM, ["replay", "--json"]).success();
    assert_eq!(document, again);
}

#[test]
fn replay_writes_the_views_anew_and_git_does_not_see_them() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    insta::assert_snapshot!(repository.run(PROGRAM, ["replay", "--rebuild"]));
    let read = |name: &str| {
        std::fs::read_to_string(repository.path().join(".blueflame").join(name)).unwrap()
    };
    insta::assert_snapshot!(read("tasks.yaml"));
    insta::assert_snapshot!(read("agents.json"));
    insta::assert_snapshot!(read("status.json"));
    assert_eq!(repository.git(["status", "--porcelain"]), "");
    let before = read("tasks.yaml");
    std::fs::write(repository.path().join(".blueflame/tasks.yaml"), "scribbled over").unwrap();
    repository.run(PROGRAM, ["replay", "--rebuild"]);
    assert_eq!(read("tasks.yaml"), before);
    let exclude = std::fs::read_to_string(repository.path().join(".git/info/exclude")).unwrap();
    assert_eq!(exclude.matches("/.blueflame/").count(), 1, "{exclude}");
}

#[test]
fn a_named_configuration_says_which_repository() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    let log = repository.run(PROGRAM, ["log"]).success();
    let elsewhere = env.repository("elsewhere");
    elsewhere.write("flame.yaml", "project: {repo: ../project, tasks_file: .blueflame/t.yaml}\n");
    assert_eq!(elsewhere.run(PROGRAM, ["log", "--config", "flame.yaml"]).success(), log);
    elsewhere.run(PROGRAM, ["replay", "--rebuild", "--config", "flame.yaml"]).success();
    assert!(repository.path().join(".blueflame/t.yaml").exists());
    assert!(!elsewhere.path().join(".blueflame").exists());
}

#[test]
fn a_task_file_elsewhere_is_ignored_by_git_and_never_replaces_what_is_not_ours() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    repository
        .write("blueflame.yaml", "project: {tasks_file: ./docs/NOTES.md}\n")
        .write("docs/NOTES.md", "my notes\n")
        .commit("notes");
    let exclude = repository.path().join(".git/info/exclude");
    let before = std::fs::read_to_string(&exclude).unwrap_or_default();
    let refused = repository.run(PROGRAM, ["replay", "--rebuild"]);
    let said: Vec<&str> = refused.stderr.lines().rev().take(2).collect();
    insta::assert_snapshot!(said.into_iter().rev().collect::<Vec<_>>().join("\n"), @"
    error: `$ROOT/project/docs/NOTES.md` is not a task list of Blue Flame, and is left alone
    hint: give `project.tasks_file` a name of its own, or move the file away
    ");
    assert_eq!(refused.code(), Some(2));
    assert_eq!(repository.git(["status", "--porcelain"]), "");
    assert!(!repository.path().join(".blueflame").exists());
    assert_eq!(std::fs::read_to_string(&exclude).unwrap_or_default(), before);

    repository.write("blueflame.yaml", "project: {tasks_file: ./docs/tasks.yaml}\n").commit("own");
    for _ in 0..2 {
        repository.run(PROGRAM, ["replay", "--rebuild"]).success();
        assert_eq!(repository.git(["status", "--porcelain"]), "");
    }
    let exclude = std::fs::read_to_string(&exclude).unwrap();
    assert!(exclude.ends_with("/.blueflame/\n/docs/tasks.yaml\n"), "{exclude}");
}

/// Seed row 5: whoever reads a view while it is written sees it whole.
#[test]
fn row_05_views_are_replaced_as_a_whole() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    repository.run(PROGRAM, ["replay", "--rebuild"]);
    let view = repository.path().join(".blueflame/tasks.yaml");
    let whole = std::fs::read_to_string(&view).unwrap();
    let mut command = env.command("sh");
    let script = format!("for i in 1 2 3 4 5 6 7 8; do '{PROGRAM}' replay --rebuild; done");
    command.args(["-c", &script]).current_dir(repository.path()).stderr(Stdio::null());
    let mut writer = command.spawn().unwrap();
    let mut looks = 0;
    while writer.try_wait().unwrap().is_none() {
        assert_eq!(std::fs::read_to_string(&view).unwrap(), whole);
        looks += 1;
    }
    assert!(looks > 0);
    let left: Vec<_> = std::fs::read_dir(repository.path().join(".blueflame"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_forged_decision_is_found_out() {
    let env = TestEnv::new();
    let (repository, journal) = repository(&env);
    let text = std::fs::read_to_string(&journal).unwrap();
    let running = text.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    std::fs::write(&journal, running).unwrap();
    let mut writer = Writer::open(&journal, |_| Ok(())).unwrap().writer;
    let now = blueflame_testkit::sim::world::timestamp(9_000_000);
    // The chain is right and the event is possible, but nobody would decide it.
    let early = Event::SessionEnded { end: blueflame_core::event::End::Budget };
    writer.append(&[(now, &early)]).unwrap();
    let ran = repository.run(PROGRAM, ["replay"]);
    assert_eq!(ran.code(), Some(70), "{ran}");
    let said: Vec<&str> = ran.stderr.lines().rev().take(3).collect();
    insta::assert_snapshot!(said.into_iter().rev().collect::<Vec<_>>().join("\n"));
}

#[test]
fn damage_is_reported_with_its_place() {
    let env = TestEnv::new();
    let (repository, journal) = repository(&env);
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("approve", "aqqrove", 1)).unwrap();
    insta::assert_snapshot!(repository.run(PROGRAM, ["replay"]));
}

#[test]
fn what_is_not_there_is_explained() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    insta::assert_snapshot!(repository.run(PROGRAM, ["replay", "--at", "4711"]));
    insta::assert_snapshot!(repository.run(PROGRAM, ["log", "ses-1999"]));
    insta::assert_snapshot!(repository.run(PROGRAM, ["log", "--task", "a/b"]));
    let empty = env.repository("empty");
    insta::assert_snapshot!(empty.run(PROGRAM, ["log"]));
    let mut outside = env.command(PROGRAM);
    outside.arg("log");
    insta::assert_snapshot!(env.run(outside));
}

#[test]
fn a_name_that_is_not_there_is_no_empty_list() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env);
    insta::assert_snapshot!(repository.run(PROGRAM, ["log", "--task", "tsk-001"]), @"
    $ blueflame log --task tsk-001
    exit 2
    --- stderr
    error: the session has no task `tsk-001`
    hint: did you mean `task-001`?
    ");
    insta::assert_snapshot!(repository.run(PROGRAM, ["log", "--agent", "merger-00000000", "--json"]), @"
    $ blueflame log --agent merger-00000000 --json
    exit 2
    --- stderr
    error: the session has no agent `merger-00000000`
    hint: it has `planner-af2df655`, `validator-b5eabca2`, `validator-d3cafb1d`, `worker-b470db75`
    ");
}
