//! Several executors in one session, of which one always fails and one is limited
//! by its provider.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::script::{Script, subject, task};
use crate::stage::{MANY, Stage};

const TASKS: [(&str, &str); 3] =
    [("task-001", "src/a.txt"), ("task-002", "src/b.txt"), ("task-003", "src/c.txt")];

/// Answers for everybody, but for those that `special` says otherwise.
fn answers(special: Script) -> Script {
    let tasks = TASKS.map(|(id, file)| task(id, id, file));
    let script = special.plans(&tasks);
    let works = |script: Script, (id, file): (&str, &str)| script.works(id, &[(file, "x\n")]);
    TASKS.into_iter().fold(script, works).passes()
}

/// Three executors are at work: `broken` never gets anything done, the account of
/// `embedded` runs into a limit that lasts longer than the test, and `mine` has an
/// account of its own.
#[test]
fn where_one_fails_and_one_is_limited_the_third_does_it() {
    let path = std::env::var_os("PATH").unwrap();
    if blueflame::executor::find::in_path("node", &path).is_none() {
        assert!(std::env::var_os("BLUEFLAME_REQUIRE_AGENTS").is_none(), "node is missing");
        return;
    }
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/custom-agent.mjs");
    let limited = json!({
        "when": {"role": "worker", "task": "task-001"},
        "fail": {"status": 429, "retry_after": "1h"},
    });
    let stage = Stage::new(MANY)
        .script(&answers(Script::new().reply(limited)))
        .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    std::fs::write(stage.env.path("other.yaml"), answers(Script::new()).text()).unwrap();
    let config = stage
        .read("blueflame.yaml")
        .replace(
            "executors: {default: embedded}",
            &format!(
                "executors:\n  default: embedded\n  worker: broken\n  fallback: [embedded, mine]\n  \
                 accounts: {{mine: other}}\n  at_most: {{mine: 2}}\n  custom:\n    \
                 broken: {{command: [/bin/false]}}\n    mine: {{command: ['{own}']}}"
            ),
        )
        .replace("record: true}", "accounts: {other: {upstream: 'script:../other.yaml'}}}");
    stage.write("blueflame.yaml", &config);
    stage.git(&["commit", "-q", "--amend", "-a", "--no-edit"]);

    stage.run().exits(0).says("everything landed");

    let mut landed = stage.landed();
    landed.sort();
    assert_eq!(landed, TASKS.map(|(id, _)| subject(id)));
    let claimed = stage.events("agent.claimed");
    let used: BTreeSet<&str> = claimed.iter().filter_map(|it| it["executor"].as_str()).collect();
    assert_eq!(used, BTreeSet::from(["broken", "embedded", "mine"]));
    // The one who did it in the end, and why nobody before it.
    let last = claimed.iter().rfind(|it| it["work"]["develop"]["task"] == "task-001");
    let last = last.unwrap_or_else(|| panic!("{claimed:?}"));
    assert_eq!(last["executor"], "mine", "{last}");
    let why: Vec<(&str, &Value)> = last["passed_over"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["executor"].as_str().unwrap(), &it["because"]))
        .collect();
    assert!(
        matches!(&why[..], [("broken", failed), ("embedded", paused)]
        if *failed == "failed" && paused["paused"]["until"].is_string()),
        "{why:?}"
    );
    // It is said where people look.
    let log = stage.blueflame(&["log"]).exits(0).stdout;
    let instead = "broken did not do it; embedded has to wait for its provider until";
    for said in [instead, "the provider asks to wait until"] {
        assert!(log.contains(said), "{log}");
    }
    stage.assert_tidy();
}
