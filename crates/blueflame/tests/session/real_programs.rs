//! Three real agent programs side by side in one session, each with an account of
//! its own: one works, one runs into its provider's limit in the middle of its
//! work, and one gets nothing but errors.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::install;
use crate::script::{Script, bash, plan, subject, task, write};
use crate::stage::{MANY, Stage};

/// One of them needs a while to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(400);

/// What is waited for, so that it is known in which order things happen: all of
/// them run; the limit was seen.
const TOGETHER: &str = "together";
const LIMITED: &str = "limited";

/// Each task is for one of them, has a directory of its own, and names a file that
/// whoever does it in the end writes.
const TASKS: [(&str, &str, &str); 3] = [
    ("task-001", "claude", "src/a/whole.txt"),
    ("task-002", "codex", "src/b/rest.txt"),
    ("task-003", "opencode", "src/c/whole.txt"),
];

/// What the limited one has done before its limit.
const BEGUN: &str = "src/b/begun.txt";

/// The models behind the accounts: one does everything, one stops after the first
/// answer, and one has an error for everything that matters.
fn models() -> [(&'static str, Script); 3] {
    let worker = |task: &str, turn: u32| json!({"role": "worker", "task": task, "turn": turn});
    let wait = |signal: &str| bash(&format!("sh wait.sh {signal}"));
    let works = TASKS.into_iter().fold(Script::new(), |script, (id, _, file)| {
        let all = format!("git add {} && git commit -q -m '{}'", directory(file), subject(id));
        let calls = [wait(TOGETHER), write(file, "x\n"), bash(&all)];
        script.reply(json!({"when": worker(id, 0), "call": calls}))
    });
    let works = works.reply(json!({"when": {"role": "worker"}, "say": "Done."})).passes();
    let limited = Script::new()
        .reply(json!({
            "when": worker("task-002", 0),
            "call": [wait(TOGETHER), write(BEGUN, "begun\n")],
        }))
        .reply(json!({"fail": {"status": 429, "retry_after": "1h"}}));
    let fails = Script::new()
        .reply(json!({"when": worker("task-003", 0), "call": [wait(LIMITED)]}))
        .reply(json!({"fail": {"status": 400, "message": "this model is switched off"}}));
    [("anthropic", works), ("openai", limited), ("local", fails)]
}

fn directory(file: &str) -> &str {
    file.rsplit_once('/').unwrap().0
}

#[test]
fn what_a_limited_and_a_failing_one_leave_the_third_does() {
    let programs = [install::claude(), install::codex(), install::opencode()];
    let [Some(claude), Some(codex), Some(opencode)] = programs else { return };
    let tasks = TASKS.map(|(id, executor, file)| {
        task(id, id, file).locks(&[directory(file)]).executor(executor)
    });
    let stage = Stage::new(MANY)
        .plan(&plan(&tasks))
        .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    for (account, script) in models() {
        std::fs::write(stage.env.path(format!("{account}.yaml")), script.text()).unwrap();
    }
    let config = stage
        .read("blueflame.yaml")
        .replace(
            "executors: {default: embedded}",
            "executors: {default: claude, worker: codex, fallback: [claude], accounts: {codex: \
             openai, opencode: local}}",
        )
        .replace(
            "\"script:../script.yaml\", record: true}",
            "\"script:../anthropic.yaml\", record: true, accounts: {openai: {upstream: \
             'script:../openai.yaml'}, local: {upstream: 'script:../local.yaml'}}}",
        );
    stage.write("blueflame.yaml", &config);
    stage.git(&["commit", "-q", "--amend", "-a", "--no-edit"]);
    let places = [claude, codex, opencode].map(|program| program.parent().unwrap().to_owned());
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(places.into_iter().chain(std::env::split_paths(&path)));
    let path = path.unwrap().into_string().unwrap();

    let mut session = stage.begin_with(&[("PATH", &path)]);
    session.wait_for_event("agent.started", 3);
    stage.signal(TOGETHER);
    session.wait_for_event("provider.limited", 1);
    stage.signal(LIMITED);
    session.end_within(PATIENCE).exits(0).says("everything landed");

    let mut landed = stage.landed();
    landed.sort();
    assert_eq!(landed, TASKS.map(|(id, ..)| subject(id)));
    // What was begun before the limit was not lost.
    assert_eq!(stage.sources()[BEGUN], "begun");

    let claimed = stage.events("agent.claimed");
    let story: BTreeMap<&str, Vec<String>> =
        TASKS.iter().map(|(id, ..)| (*id, choices(&claimed, id))).collect();
    let expected = BTreeMap::from([
        ("task-001", vec!["claude".to_owned()]),
        ("task-002", vec!["codex".to_owned(), "claude, codex is paused".to_owned()]),
        (
            "task-003",
            vec!["opencode".to_owned(), "claude, opencode failed, codex is paused".to_owned()],
        ),
    ]);
    assert_eq!(story, expected);
    assert_eq!(stage.outcomes("task-002"), ["rate_limited", "finished"]);
    assert_eq!(stage.outcomes("task-003"), ["crashed", "finished"]);
    // They were at work side by side: nobody had left when the last one began.
    let journal = stage.journal();
    let begun = journal.iter().take_while(|it| it["t"] != "agent.exited");
    assert_eq!(begun.filter(|it| it["t"] == "agent.started").count(), 3);
    // It is said where people look.
    let log = stage.blueflame(&["log"]).exits(0).stdout;
    let instead = "opencode did not do it; codex has to wait for its provider until";
    assert!(log.contains(instead), "{log}");
    stage.assert_tidy();
}

/// Who was to develop a task, one after the other, with why nobody before it.
fn choices(claimed: &[Value], task: &str) -> Vec<String> {
    let of_task = claimed.iter().filter(|it| it["work"]["develop"]["task"] == task);
    let choice = |it: &Value| {
        let why = it["passed_over"].as_array().into_iter().flatten().map(|it| {
            let why = match &it["because"] {
                Value::String(why) => why.clone(),
                why if why["paused"]["until"].is_string() => "is paused".to_owned(),
                why => why.to_string(),
            };
            format!(", {} {why}", it["executor"].as_str().unwrap())
        });
        format!("{}{}", it["executor"].as_str().unwrap(), why.collect::<String>())
    };
    of_task.map(choice).collect()
}
