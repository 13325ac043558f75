//! Several executors in one session, of which one always fails and one is limited
//! by its provider; and a provider that has too much to do.

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
    if blueflame::search_path::find("node", &path).is_none() {
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

/// One of three tasks is turned away twice by a provider that has too much to do. The
/// others go on with the same account, and what was done is not lost.
#[test]
fn an_overloaded_provider_is_left_alone_for_a_while_by_what_it_turned_away() {
    let overloaded = |attempt: u32| {
        json!({
            "when": {"role": "worker", "task": "task-001", "attempt": attempt},
            "fail": {"status": 529},
        })
    };
    let script = answers(Script::new().reply(overloaded(1)).reply(overloaded(2)));
    let stage = Stage::new(MANY)
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");

    let mut session = stage.begin();
    session.wait_for("the first overload", |journal| {
        journal.iter().any(|it| it["d"]["outcome"]["kind"] == "overloaded")
    });
    let status = stage.blueflame(&["status"]).exits(0).stdout;
    assert!(status.contains("the provider was overloaded"), "{status}");
    session.end().exits(0).says("everything landed");

    assert_eq!(stage.outcomes("task-001"), ["overloaded", "overloaded", "finished"]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    // Nobody was told to leave the account alone.
    assert_eq!(stage.events("provider.limited").len(), 0);
    // At least as long as it has to be, and longer the second time.
    let waits = waits(&stage, "task-001");
    assert!(matches!(waits[..], [(5..), (10..)]), "{waits:?}");
    stage.assert_tidy();
}

/// How many seconds passed between an attempt at a task and the next.
fn waits(stage: &Stage, task: &str) -> Vec<i64> {
    let mut agents: Vec<Value> = Vec::new();
    let (mut left, mut waits): (Option<jiff::Timestamp>, Vec<i64>) = (None, Vec::new());
    for record in stage.journal() {
        let at: jiff::Timestamp = record["ts"].as_str().unwrap().parse().unwrap();
        let told = &record["d"];
        if record["t"] == "agent.claimed" && told["work"]["develop"]["task"] == task {
            agents.push(told["agent"].clone());
            waits.extend(left.take().map(|left| at.duration_since(left).as_secs()));
        } else if record["t"] == "agent.exited" && agents.contains(&told["agent"]) {
            left = Some(at);
        }
    }
    waits
}

/// A stage whose executors and gateway are these.
fn with(executors: &str, gateway: &str) -> Stage {
    let stage = Stage::new(MANY)
        .script(&answers(Script::new()))
        .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    let config = stage
        .read("blueflame.yaml")
        .replace("executors: {default: embedded}", &format!("executors: {executors}"))
        .replace(
            "gateway: {upstream: \"script:../script.yaml\", record: true}",
            &format!("gateway: {gateway}"),
        );
    stage.write("blueflame.yaml", &config);
    stage.git(&["commit", "-q", "--amend", "-a", "--no-edit"]);
    stage
}

const SCRIPTED: &str = "upstream: 'script:../script.yaml'";

/// The model of an executor is asked in place of the one of the role, by everyone who
/// runs with it.
#[test]
fn the_model_of_an_executor_is_the_one_that_is_asked() {
    let stage = with(
        "{default: embedded, models: {embedded: claude-opus-4-8}}",
        &format!("{{{SCRIPTED}, record: true}}"),
    );
    stage.run().exits(0).says("everything landed");
    let mut asked: BTreeSet<String> = BTreeSet::new();
    for attempt in std::fs::read_dir(stage.session().join("attempts")).unwrap() {
        let traffic = std::fs::read_to_string(attempt.unwrap().path().join("traffic.jsonl"));
        for line in traffic.unwrap_or_default().lines() {
            let exchange: Value = serde_json::from_str(line).unwrap();
            asked.insert(exchange["request"]["model"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(asked, BTreeSet::from(["claude-opus-4-8".to_owned()]));
}

/// Only the account of the first executor lacks its key: another one does the work, and
/// the session begins. Without that other one it does not.
#[test]
fn an_account_without_its_key_is_no_obstacle_where_another_executor_has_one() {
    let gateway = format!(
        "{{upstream: openai, credential_env: NO_SUCH_KEY, record: true, accounts: {{own: \
         {{{SCRIPTED}}}}}}}"
    );
    let node = blueflame::search_path::find("node", &std::env::var_os("PATH").unwrap());
    if node.is_none() {
        assert!(std::env::var_os("BLUEFLAME_REQUIRE_AGENTS").is_none(), "node is missing");
        return;
    }
    let mine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/custom-agent.mjs");
    let custom = format!("custom: {{mine: {{command: ['{mine}']}}}}");
    let alone = with(&format!("{{default: mine, {custom}}}"), &gateway);
    let told = alone.run().exits(3).says("NO_SUCH_KEY");
    assert!(alone.sessions().is_empty(), "{told}");

    let both =
        format!("{{default: mine, fallback: [embedded], accounts: {{embedded: own}}, {custom}}}");
    let stage = with(&both, &gateway);
    stage.run().exits(0).says("everything landed");
    let claimed = stage.events("agent.claimed");
    let last = claimed.iter().rfind(|it| it["work"]["develop"]["task"] == "task-001").unwrap();
    assert_eq!(last["executor"], "embedded", "{last}");
    assert_eq!(last["passed_over"][0]["because"], "failed", "{last}");
}

/// A login that agents carry themselves is said, whichever account it is of.
#[test]
fn a_login_that_agents_carry_is_shown_as_weaker_whichever_account_has_it() {
    let account = "accounts: {spare: {upstream: anthropic, passthrough_auth: true}}";
    let stage = with("{default: embedded}", &format!("{{{SCRIPTED}, {account}}}"));
    stage.run().exits(0);
    let weaker = stage.events("session.started")[0]["weaker"].to_string();
    assert!(weaker.contains("passthrough_auth"), "{weaker}");
    let status = stage.blueflame(&["status"]).exits(0).stdout;
    assert!(status.contains("passthrough_auth: agents carry a login of their own"), "{status}");

    let stage = with("{default: embedded}", &format!("{{{SCRIPTED}}}"));
    stage.run().exits(0);
    let weaker = stage.events("session.started")[0]["weaker"].to_string();
    assert!(!weaker.contains("passthrough_auth"), "{weaker}");
}
