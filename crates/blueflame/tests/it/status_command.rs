//! `blueflame status` beside sessions in all their states.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use blueflame::file_system::Remote;
use blueflame::journal::Writer;
use blueflame::repo_lock::{Holder, RepoLock};
use blueflame::store::Store;
use blueflame_core::event::{End, Event};
use blueflame_core::ids::SessionId;
use blueflame_testkit::{Repository, TestEnv};

use crate::terminal::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_blueflame");
const SESSION: &str = "ses-20260202-024000";

/// A repository with a session of the samples, as it was after so many records,
/// and where its journal is.
pub fn repository(env: &TestEnv, seed: u64, records: usize) -> (Repository<'_>, PathBuf) {
    let repository = env.repository("project");
    repository.write("README.md", "# Project\n").commit("start");
    let session = repository.path().join(".git/blueflame/sessions").join(SESSION);
    std::fs::create_dir_all(&session).unwrap();
    let journal = session.join("journal.jsonl");
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/v1");
    let text = std::fs::read_to_string(format!("{samples}/seed-{seed}.jsonl")).unwrap();
    let part: String = text.split_inclusive('\n').take(records).collect();
    std::fs::write(&journal, part).unwrap();
    (repository, journal)
}

fn holder(session: &str) -> Holder {
    let since = blueflame_testkit::sim::world::timestamp(0);
    Holder::this_process(SessionId::new(session).unwrap(), since)
}

#[test]
fn a_session_at_each_stage() {
    for (name, records) in
        [("planning", 30), ("plan_gate", 16), ("developing", 60), ("merging", 150), ("ended", 999)]
    {
        let env = TestEnv::new();
        let (repository, _) = repository(&env, 5926, records);
        insta::assert_snapshot!(format!("status_{name}"), repository.run(PROGRAM, ["status"]));
    }
}

#[test]
fn who_is_there_is_told() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env, 391, 8);
    let line = |label: &str| {
        let page = repository.run(PROGRAM, ["status"]).success();
        let found = page.lines().find(|line| line.starts_with(label)).unwrap_or_default();
        found.replace(&std::process::id().to_string(), "[PID]")
    };
    assert_eq!(
        line("left"),
        format!("left      nobody is working on it; go on with `blueflame resume {SESSION}`")
    );
    let store = Store::find(repository.path()).unwrap().for_writing(Remote::Refuse).unwrap();
    let lock = RepoLock::take(&store, &holder(SESSION)).unwrap();
    let host = holder(SESSION).host;
    assert_eq!(
        line("running"),
        format!("running   in process [PID] on `{host}`, since 2026-02-02T02:40:00Z")
    );
    assert_eq!(line("left"), "");
    let document = repository.run(PROGRAM, ["status", "--json"]).success();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["orchestrator"]["state"], "running");
    assert_eq!(document["orchestrator"]["pid"], std::process::id());
    // Nobody looked at the lock in a way that would be in an orchestrator's way.
    lock.release().unwrap();
    let other = RepoLock::take(&store, &holder("ses-20260303-030303")).unwrap();
    assert_eq!(
        line("left"),
        format!(
            "left      process [PID] works on ses-20260303-030303 now; when that is done, go on \
             with `blueflame resume {SESSION}`"
        )
    );
    drop(other);
    assert!(line("left").contains("nobody is working on it"));
}

/// Scripts that read `status.json` can read this as well.
#[test]
fn the_document_has_all_of_status_json_and_more() {
    let env = TestEnv::new();
    let (repository, _) = repository(&env, 5926, 60);
    let document = repository.run(PROGRAM, ["status", "--json"]).success();
    assert_eq!(document.lines().count(), 1);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    repository.run(PROGRAM, ["replay", "--rebuild"]).success();
    let view = repository.path().join(".blueflame/status.json");
    let view: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(view).unwrap()).unwrap();
    for (key, value) in view.as_object().unwrap() {
        assert_eq!(&document[key], value, "{key}");
    }
}

#[test]
fn watching_shows_each_change_and_ends_with_the_session() {
    for json in [false, true] {
        let env = TestEnv::new();
        let (repository, journal) = repository(&env, 391, 54);
        let mut command = env.command(PROGRAM);
        command.args(["status", "--watch"]).current_dir(repository.path()).stdout(Stdio::piped());
        if json {
            command.arg("--json");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains(SESSION) && !first.contains("ended"), "{first}");
        let mut writer = Writer::open(&journal, |_| Ok(())).unwrap().writer;
        let now = blueflame_testkit::sim::world::timestamp(9_000_000);
        writer.append(&[(now, &Event::StopRequested)]).unwrap();
        writer.append(&[(now, &Event::SessionEnded { end: End::Stopped })]).unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success());
        let last: Vec<&String> = rest.iter().filter(|line| line.contains(SESSION)).collect();
        let ended = if json { "{\"ended\":\"stopped\"}" } else { "ended: the person stopped" };
        assert!(last.last().unwrap().contains(ended), "{rest:#?}");
        assert_eq!(rest.iter().any(String::is_empty), !json, "{rest:#?}");
    }
}

/// In a terminal the page stays where it is: the cursor goes up to where the
/// last one began, nothing is wider or higher than the screen, and the last
/// page stays.
#[test]
fn in_a_terminal_the_page_is_replaced_in_place() {
    let env = TestEnv::new();
    let (repository, journal) = repository(&env, 5926, 60);
    let mut command = env.command(PROGRAM);
    command.args(["status", "--watch"]).current_dir(repository.path());
    let mut terminal = Terminal::start(command, (50, 12));
    let first = terminal.read_until("shows all)\n");
    assert!(!first.contains('\x1b'), "{first}");
    assert_eq!(first.lines().count(), 11, "{first}");
    assert!(first.lines().all(|line| line.chars().count() <= 50), "{first}");
    let mut writer = Writer::open(&journal, |_| Ok(())).unwrap().writer;
    let now = blueflame_testkit::sim::world::timestamp(9_000_000);
    writer.append(&[(now, &Event::StopRequested)]).unwrap();
    let second = terminal.read_until("stopping\n");
    assert!(second.starts_with("\x1b[11A\x1b[Jsession"), "{second:?}");
}

#[test]
fn nothing_is_written_and_no_escape_comes_through() {
    let env = TestEnv::new();
    let (repository, journal) = repository(&env, 391, 20);
    let before = std::fs::read(&journal).unwrap();
    let page = repository.run(PROGRAM, ["status"]).success();
    assert!(!page.contains('\x1b'), "{page:?}");
    assert_eq!(std::fs::read(&journal).unwrap(), before);
    assert_eq!(std::fs::read_dir(repository.path().join(".git/blueflame")).unwrap().count(), 1);
    assert_eq!(repository.git(["status", "--porcelain"]), "");
}

#[test]
fn help_teaches() {
    let env = TestEnv::new();
    for command in ["status", "cost", "init"] {
        let repository = env.repository(command);
        insta::assert_snapshot!(
            format!("help_{command}"),
            repository.run(PROGRAM, [command, "--help"])
        );
    }
}
