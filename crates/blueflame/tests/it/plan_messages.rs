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
