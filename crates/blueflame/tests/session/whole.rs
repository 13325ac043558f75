//! A whole session in which everything goes well.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::script::{Script, subject, task};
use crate::stage::{MANY, Stage};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: []\n";

fn three_tasks(stage: Stage) -> Stage {
    let tasks = [
        task("task-001", "greeting", "src/hello.txt"),
        task("task-002", "greeting", "src/again.txt").needs(&["task-001"]),
        task("task-003", "farewell", "src/bye.txt"),
    ];
    let script = Script::new()
        .plans(&tasks)
        .works("task-001", &[("src/hello.txt", "hello\n")])
        .idles("task-002", 1)
        .works("task-002", &[("src/again.txt", "hello again\n")])
        .works("task-003", &[("src/bye.txt", "bye\n")])
        .passes();
    stage.script(&script).decisions(APPROVE)
}

#[test]
fn a_whole_session_lands_everything() {
    let stage = three_tasks(Stage::new(&format!(
        "{MANY}validation: {{acceptance: [\"test -e README.md\"]}}\nmerge: {{verify: [\"test -d src\"]}}\n"
    )));
    // A person has settings, a stash and hooks.
    stage.git(&["config", "alias.st", "status"]);
    stage.write("README.md", "Something else.\n");
    stage.git(&["stash", "-q"]);
    stage.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    stage
        .write(".git/hooks/post-checkout", "#!/bin/sh\ntouch \"$(git rev-parse --git-dir)/ran\"\n");
    for hook in ["pre-commit", "post-checkout"] {
        let path = stage.repository().join(".git/hooks").join(hook);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let files = [".git/config", ".git/hooks/pre-commit", ".git/hooks/post-checkout"];
    let before = files.map(|name| stage.read(name));
    let stash = stage.git(&["stash", "list", "--format=%H %s"]);

    stage.run().exits(0).says("everything landed");

    let expected = ["task-001", "task-002", "task-003"];
    assert_eq!(stage.landed(), expected.map(subject));
    for (back, task) in [(2, "task-001"), (1, "task-002"), (0, "task-003")] {
        let group = if task == "task-003" { "farewell.c1" } else { "greeting.c1" };
        let trailers = trailers(&stage, &format!("main~{back}"));
        let value = |key: &str| {
            trailers.iter().find_map(|line| line.strip_prefix(&format!("{key}: "))).unwrap()
        };
        assert_eq!(value("Blueflame-Session"), stage.session_id());
        assert_eq!(value("Blueflame-Task"), task);
        assert_eq!(value("Blueflame-Changeset"), group);
        assert_eq!(value("Blueflame-Validation"), "passed");
        assert!(value("Blueflame-Agent").starts_with("worker-"));
        assert!(value("Blueflame-Cost").starts_with('$'));
        assert_eq!(trailers.len(), 6, "{trailers:?}");
    }
    assert_eq!(stage.read("src/hello.txt"), "hello\n");
    assert_eq!(stage.outcomes("task-002"), ["no_op", "finished"]);
    assert_eq!(stage.gates(), ["plan", "changeset:greeting.c1", "changeset:farewell.c1"]);

    assert_eq!(files.map(|name| stage.read(name)), before);
    assert_eq!(stage.git(&["stash", "list", "--format=%H %s"]), stash);
    assert_eq!(stage.git(&["branch", "--list"]), "* main");
    stage.assert_tidy();
}

/// The trailers of a commit as git understands them.
fn trailers(stage: &Stage, commit: &str) -> Vec<String> {
    let message = stage.env.path("message");
    std::fs::write(&message, stage.git(&["log", "-1", "--format=%B", commit])).unwrap();
    let parsed = stage.git(&["interpret-trailers", "--parse", message.to_str().unwrap()]);
    parsed.lines().map(str::to_owned).collect()
}

fn all(requests: &BTreeMap<String, usize>) -> usize {
    requests.values().sum()
}

#[test]
fn a_recorded_session_can_be_had_again_without_a_model() {
    let stage = three_tasks(Stage::new(MANY));
    stage.run().exits(0);
    let recorded = stage.session_id();
    let (subjects, sources, requests) = (stage.landed(), stage.sources(), all(&stage.requests()));

    // Everything but the recording is taken away.
    std::fs::remove_file(stage.env.path("script.yaml")).unwrap();
    stage.git(&["reset", "-q", "--hard", "main~3"]);
    let config = stage.read("blueflame.yaml");
    let replaying = config.replace("script:../script.yaml", &format!("replay:{recorded}"));
    stage.write("blueflame.yaml", &replaying);
    stage.git(&["commit", "-q", "--amend", "--all", "--no-edit"]);

    stage.run().exits(0).says("everything landed");
    assert_ne!(stage.session_id(), recorded);
    assert_eq!(stage.landed(), subjects);
    assert_eq!(stage.sources(), sources);
    assert_eq!(all(&stage.requests()), requests);
    stage.assert_tidy();
}

#[test]
fn the_first_script_of_the_documentation_does_what_it_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripted-model.md");
    let page = std::fs::read_to_string(page).unwrap();
    let script = page.split("```").nth(1).and_then(|it| it.strip_prefix("yaml\n")).unwrap();
    let stage = Stage::new("");
    stage.write(
        "blueflame.yaml",
        "schema_version: 2\nproject: {name: documented}\nexecutors: {default: embedded}\n\
         gateway: {upstream: \"script:script.yaml\"}\n",
    );
    stage.write("script.yaml", script);
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "-q", "--amend", "--no-edit"]);
    stage.blueflame(&["run", "--task", "greet", "--yes"]).exits(0);
    assert_eq!(stage.landed(), ["feat(task-001): greet"]);
}

#[test]
fn what_was_never_recorded_cannot_be_replayed() {
    let stage = three_tasks(Stage::new(MANY));
    let config = stage.read("blueflame.yaml");
    stage.write(
        "blueflame.yaml",
        &config.replace("script:../script.yaml", "replay:ses-20260101-000000"),
    );
    stage.run().exits(3).says("`ses-20260101-000000` has no recorded traffic");
}

#[test]
fn in_json_mode_standard_output_is_events_and_nothing_else() {
    let stage = three_tasks(Stage::new(MANY));
    let told = stage
        .blueflame(&["run", "--task", "Do it.", "--decisions-file", "../decisions.yaml", "--json"])
        .exits(0);
    let lines: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The same lines, in the same form, as `log --json` gives afterwards.
    let log = stage.blueflame(&["log", "--json"]).exits(0);
    let logged: Vec<Value> =
        log.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds =
        |lines: &[Value]| -> Vec<Value> { lines.iter().map(|it| it["t"].clone()).collect() };
    assert_eq!(kinds(&lines), kinds(&logged));
    assert_eq!(lines, logged);
}

#[test]
fn a_whole_session_with_overlapping_waves() {
    let stage = three_tasks(Stage::new(&format!("{MANY}waves: {{mode: pipelined}}\n")));
    stage.run().exits(0);
    assert_eq!(stage.landed(), ["task-001", "task-002", "task-003"].map(subject));
    stage.assert_tidy();
}

/// The example of docs/executors.md plans, works and validates.
#[test]
fn a_program_of_the_persons_own_can_do_every_role() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/custom-agent.mjs");
    let path = std::env::var_os("PATH").unwrap();
    if blueflame::search_path::find("node", &path).is_none() {
        assert!(std::env::var_os("BLUEFLAME_REQUIRE_AGENTS").is_none(), "node is missing");
        return;
    }
    let stage = three_tasks(Stage::new(""));
    let chosen = format!("executors: {{default: mine, custom: {{mine: {{command: ['{own}']}}}}}}");
    let config = stage.read("blueflame.yaml").replace("executors: {default: embedded}", &chosen);
    assert!(config.contains(own), "{config}");
    stage.write("blueflame.yaml", &config);
    stage.git(&["commit", "-q", "--amend", "-a", "--no-edit"]);
    stage.run().exits(0).says("everything landed");
    assert_eq!(stage.landed(), ["task-001", "task-002", "task-003"].map(subject));
    let began = stage.events("agent.claimed");
    assert!(began.len() > 6 && began.iter().all(|it| it["executor"] == "mine"), "{began:?}");
}
