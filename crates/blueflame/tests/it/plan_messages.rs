//! What is said about broken plans, drawn as the program draws it.

use blueflame::diagnostics::{Look, render};
use blueflame_core::config;
use blueflame_core::plan::{Plan, PlanContext};

use crate::config_messages::samples;

#[test]
fn broken_plans_are_explained() {
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let samples = samples("plans");
    assert!(samples.len() >= 12, "only {} samples", samples.len());
    for (name, path) in samples {
        let bytes = std::fs::read(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        let shown = match Plan::read(&bytes, &PlanContext::of(&config)) {
            Ok((plan, warnings)) => {
                let count = plan.tasks.len();
                format!(
                    "{}--- accepted: {count} tasks\n",
                    render(&warnings, file, &bytes, Look::Plain)
                )
            }
            Err(problems) => {
                format!("{}--- refused\n", render(&problems, file, &bytes, Look::Plain))
            }
        };
        insta::assert_snapshot!(format!("plan_{name}"), shown);
    }
}

/// What a planner answers is often one line of JSON, and long.
#[test]
fn a_plan_on_one_line_is_explained_briefly() {
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let task = |number| format!(r#"{{"id":"task {number}","titel":"{number}"}}"#);
    let tasks: Vec<String> = (0..20_000).map(task).collect();
    let text = format!(r#"{{"tasks":[{}]}}"#, tasks.join(","));
    let problems = Plan::read(text.as_bytes(), &PlanContext::of(&config)).unwrap_err();
    let shown = render(&problems, "plan.json", text.as_bytes(), Look::Plain);
    assert!(shown.len() < 50_000, "{} bytes", shown.len());
    let last: Vec<&str> = shown.lines().rev().take(10).collect();
    insta::assert_snapshot!(last.into_iter().rev().collect::<Vec<_>>().join("\n"));
}

#[test]
fn words_of_a_plan_cannot_steer_the_terminal() {
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let text = r#"{"tasks":[{"id":"\u001b[2J\n999","title":"t","description":"d","priority":1,
        "file_locks":["src"]}]}"#;
    let problems = Plan::read(text.as_bytes(), &PlanContext::of(&config)).unwrap_err();
    let shown = render(&problems, "plan.json", text.as_bytes(), Look::Plain);
    assert!(shown.contains(r"got `\u{1b}[2J\n999`"), "{shown}");
    assert!(!shown.contains('\x1b'), "{shown}");
}
