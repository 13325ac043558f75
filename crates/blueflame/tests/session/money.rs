//! The session's budget: every answer of the script costs 1000 tokens.

use crate::script::{Script, plan, subject, task};
use crate::stage::{MANY, Stage};

const BUDGET: &str = "limits:\n  max_session_cost_usd: 0\n  max_session_tokens: 5000\n  \
    token_budget: {planner_usd: 0, worker_usd: 0, validator_usd: 0, merger_usd: 0}\n";

/// Four tasks take 12 requests, and the budget is for five.
fn stage(decisions: &str) -> Stage {
    let names = ["task-001", "task-002", "task-003", "task-004"];
    let files = ["src/1.txt", "src/2.txt", "src/3.txt", "src/4.txt"];
    let tasks: Vec<_> =
        names.iter().zip(files).map(|(name, file)| task(name, "all", file)).collect();
    let mut script = Script::new();
    for (name, file) in names.iter().zip(files) {
        script = script.works(name, &[(file, "x\n")]);
    }
    Stage::new(&format!("{MANY}{BUDGET}")).plan(&plan(&tasks)).script(&script.passes()).decisions(
        &format!("plan: [approve]\nchangesets: {{'*': approve}}\nsession: [continue]\n{decisions}"),
    )
}

#[test]
fn a_spent_budget_stops_the_session() {
    let stage = stage("budget: [stop]\n");
    stage.run().exits(5);
    assert!(stage.gates().contains(&"budget".to_owned()), "{:?}", stage.gates());
    let spent: u64 = spent(&stage);
    assert!((5_000..=9_000).contains(&spent), "four may each cross it by a request: {spent}");
}

#[test]
fn a_raise_goes_on() {
    let stage = stage("budget: [{raise_tokens: 100000}]\n");
    stage.run().exits(0);
    assert_eq!(stage.gates().iter().filter(|it| *it == "budget").count(), 1);
    let expected = ["task-001", "task-002", "task-003", "task-004"].map(subject);
    assert_eq!(stage.landed(), expected);
    stage.assert_tidy();
}

/// All tokens that all agents used.
fn spent(stage: &Stage) -> u64 {
    let exited = stage.events("agent.exited");
    let usage = exited.iter().filter_map(|it| it["spend"]["usage"].as_object());
    usage.flat_map(|it| it.values()).filter_map(serde_json::Value::as_u64).sum()
}
