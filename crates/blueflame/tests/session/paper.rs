//! `run --dry-run`: everything on paper, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::Value;

use crate::script::{Script, plan, task};
use crate::stage::{MANY, Stage};

const COMMANDS: &str = r#"validation: {acceptance: ["touch /tmp/never-run-by-a-dry-run"]}
merge: {verify: ["sh check.sh"]}
worktree: {prepare: ["make deps"], scratch: ["target"]}
hooks: {post_plan: "notify-the-team", on_failure: "alert"}
"#;

fn stage() -> Stage {
    let tasks = [
        task("task-001", "one", "src/a.txt"),
        task("task-002", "one", "src/b.txt"),
        task("task-003", "two", "src/c.txt").needs(&["task-001"]),
    ];
    Stage::new(&format!("{MANY}{COMMANDS}")).plan(&plan(&tasks)).script(&Script::new().passes())
}

/// What a person wrote is told from what is assumed.
#[test]
fn every_number_says_where_it_comes_from() {
    let config = "forecast: {worker_time: 10m, worker_usd: 1}\n";
    let mut tasks =
        plan(&[task("task-001", "one", "src/a.txt"), task("task-002", "one", "src/b.txt")]);
    tasks = tasks.replacen("\"id\":\"task-001\"", "\"id\":\"task-001\",\"estimate_minutes\":30", 1);
    let stage = Stage::new(&format!("{MANY}{config}")).plan(&tasks).script(&Script::new().passes());
    let told = stage.blueflame(&DRY);
    let flat = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        "estimate_minutes of the plan; money in proportion: task-001",
        "a worker: 10m 00s (forecast.worker_time in your configuration), $1.00",
        "a validator: 1m 00s (the default of forecast.validator_time)",
        // Three dollars would be beyond a worker's own budget of 1.50.
        "$2.54 if every agent runs once",
        "task-001 is thought to take 30m 00s, but limits.agent_timeout ends a worker after 5m 00s",
    ] {
        assert!(flat.contains(text), "`{text}` is not in:\n{told}");
    }
}

const DRY: [&str; 6] = ["run", "--dry-run", "--task", "Do it.", "--plan", "../plan.yaml"];

/// Every file and directory below, with its kind, size, times and content.
fn listing(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        let content = if about.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let text = format!(
            "{:o} {} {} {}.{} {}",
            about.mode(),
            about.ino(),
            about.len(),
            about.mtime(),
            about.mtime_nsec(),
            blake3::hash(&content)
        );
        // What this test itself writes down of what the program says.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path != *root && !name.starts_with("out.") && !name.starts_with("err.") {
            found.insert(path.display().to_string(), text);
        }
        if about.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn a_dry_run_writes_nothing_anywhere() {
    let stage = stage();
    // A file whose times changed: a careless `git status` would refresh the index.
    stage.write("README.md", "A project.\n");
    let before = listing(stage.env.root());
    assert!(before.len() > 20, "{before:#?}");
    for arguments in
        [&DRY[..], &["run", "--dry-run", "--task", "Do it."], &[&DRY[..], &["--json"]].concat()]
    {
        let told = stage.blueflame(arguments);
        assert_eq!(told.code, Some(0), "{told}");
        assert_eq!(listing(stage.env.root()), before);
    }
    assert!(!Path::new("/tmp/never-run-by-a-dry-run").exists());
    assert_eq!(stage.processes(), Vec::<String>::new());
}

#[test]
fn the_whole_plan_is_on_the_page() {
    let stage = stage();
    let told = stage.blueflame(&DRY);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told}");
    // Broken lines are as good as whole ones.
    let page = &told.stdout;
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let commit = stage.git(&["rev-parse", "main"]);
    for text in [
        "dry run: nothing is started, nothing is written",
        &format!("main at {}", &commit[..10]),
        "3 tasks in 2 changesets",
        "lands 1  one: task-001, task-002",
        "lands 2  two: task-003",
        ".trees/<session>/task-003.a1",
        "blueflame/<session>/task-003/a1",
        "in each new workspace   make deps",
        "on each merged tree     sh check.sh",
        "hook post_plan          notify-the-team",
        "__agent --model",
        "not started: there is a plan",
        // Two at once, then the one that waits.
        "Parallel work pays: 12m 00s with 2 workers against 16m 00s with one.",
        "From 3 workers on it stops helping.",
        "task-001, then task-003 (8m 00s)",
        "$1.41 if every agent runs once, $4.23 with every retry",
        "4m 00s (the default of forecast.worker_time)",
    ] {
        let found = page.contains(text) || flat.contains(text);
        assert!(found, "`{text}` is not in:\n{page}");
    }
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
        assert!(!line.contains('\u{1b}'), "coloured: {line}");
    }
}

#[test]
fn the_document_tells_the_same() {
    let stage = stage();
    let told = stage.blueflame(&[&DRY[..], &["--json"]].concat());
    assert_eq!(told.code, Some(0), "{told}");
    let paper: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(paper["parallel"]["up_to"], 2);
    assert_eq!(paper["forecast"]["critical_path"], serde_json::json!(["task-001", "task-003"]));
    assert_eq!(paper["commands"]["verify"][0], "sh check.sh");
    assert_eq!(paper["would_refuse"], Value::Null);
    assert_eq!(paper["workspaces"].as_array().unwrap().len(), 3);
    assert_eq!(told.stdout.lines().count(), 1);
}

/// A key in the environment is in none of the command lines.
#[test]
fn no_secret_is_on_the_paper() {
    let stage = stage();
    for arguments in [DRY.to_vec(), [&DRY[..], &["--json"]].concat()] {
        let mut command = stage.command(&arguments);
        let output = command.env("ANTHROPIC_API_KEY", "sk-very-secret").output().unwrap();
        assert!(output.status.success());
        let all = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&all).contains("sk-very-secret"));
    }
}

#[test]
fn without_a_plan_it_says_what_is_missing() {
    let stage = stage();
    let told = stage.blueflame(&["run", "--dry-run", "--task", "Do it."]);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stdout.contains("a planner would make one first, for about $0.30"), "{told}");
    assert!(told.stdout.contains("--plan FILE"), "{told}");
}

#[test]
fn what_could_not_be_started_is_said() {
    let stage = stage();
    let config = stage.read("blueflame.yaml").replace("default: embedded", "default: codex");
    stage.write("blueflame.yaml", &config);
    let told = stage.blueflame(&DRY);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.stdout.contains("nothing could be started now: `codex`"), "{told}");
}
