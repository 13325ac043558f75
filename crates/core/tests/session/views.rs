//! What people see of a session, and may edit.

use blueflame_core::config;
use blueflame_core::plan::{Plan, PlanContext, Risk};
use blueflame_core::projection::{agents_file, status_file, tasks_file};
use blueflame_core::rules::Rules;
use blueflame_core::yaml;

use crate::story::Story;
use crate::words::{Details, rules, task, usd};

/// A plan that uses everything a plan can say.
fn plan() -> Plan {
    let mut first = task("a").locks(&["src/a"]).group("g");
    first.acceptance = vec!["cargo test -- \"a: b\"".into()];
    first.risk = Some(Risk::High);
    first.model = Some("opus".into());
    first.executor = Some(blueflame_core::ids::ExecutorName::new("codex").expect("a plain word"));
    first.description = "two\nlines: with # signs\n".into();
    Plan { tasks: vec![first, task("b").locks(&["src/b"]).group("h").needs(&["a"])] }
}

/// The task file read back as a plan, as after an edit.
fn read_back(story: &Story) -> Plan {
    let text = yaml::to_string(&tasks_file(&story.state)).expect("plain data");
    let config = config::read(b"schema_version: 2\n").config.expect("a good file");
    let (plan, _) = Plan::read(text.as_bytes(), &PlanContext::of(&config)).expect("our own file");
    plan
}

#[test]
fn a_plan_that_waits_for_approval_is_in_the_task_file_with_all_that_it_says() {
    let story = Story::begin(rules(), plan().tasks);
    assert_eq!(read_back(&story), plan());
}

#[test]
fn nothing_of_a_plan_is_lost_from_the_task_file_while_it_is_carried_out() {
    let mut story = Story::developing(rules(), plan().tasks);
    story.fails("a", blueflame_core::outcome::Outcome::TimedOut);
    assert_eq!(read_back(&story), plan());
    let file = serde_json::to_value(tasks_file(&story.state)).expect("plain data");
    let tried = &file["tasks"][0];
    assert_eq!(tried["status"], "claimed");
    assert_eq!(tried["branch"], format!("blueflame/{}/a/a2", story.state.session));
    assert_eq!(tried["history"][0]["result"], "failed");
    assert!(tried["history"][0]["agent_id"].as_str().is_some_and(|id| id.starts_with("worker-")));
    assert_eq!(file["tasks"][1]["status"], "pending");
}

#[test]
fn a_rejection_is_in_the_history_with_its_reason_and_cost() {
    let mut story = Story::developing(rules(), [task("a")]);
    story.has_spent("a", 7);
    story.finishes("a");
    story.is_accepted("a");
    story.is_judged("a", true, "");
    story.folds();
    story.verifies();
    story.rejects("not like this");
    let file = serde_json::to_value(tasks_file(&story.state)).expect("plain data");
    let entry = &file["tasks"][0]["history"][0];
    assert_eq!(entry["rejection_reason"], "not like this");
    assert!(entry["tokens_used"].as_u64().is_some_and(|tokens| tokens >= 7), "{entry}");
}

#[test]
fn the_status_warns_when_most_of_the_budget_is_used() {
    let mut story = Story::developing(Rules { session_budget: usd(100), ..rules() }, [task("a")]);
    story.has_spent("a", 79);
    assert!(!status_file(&story.state).budget_warning);
    story.has_spent("a", 80);
    assert!(status_file(&story.state).budget_warning);
    assert_eq!(agents_file(&story.state).len(), 1);
}
