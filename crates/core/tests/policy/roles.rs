//! Tools by role, and the examples that the rules carry.

use std::collections::BTreeSet;

use blueflame_core::ids::Role;
use blueflame_core::policy::{Policy, PolicyRules, Rule};
use serde_json::{Value, json};

use super::ground::{bash, judge, rules};

#[test]
fn each_role_has_its_tools() {
    let write = || json!({"file_path": "src/a.go", "content": ""});
    for (role, tool, input, expected) in [
        (Role::Planner, "Read", json!({"file_path": "src/a.go"}), "paths.read"),
        (Role::Planner, "Write", write(), "tools.role"),
        (Role::Planner, "AskUserQuestion", json!({}), "tools.harmless"),
        (Role::Planner, "StructuredOutput", json!({}), "tools.harmless"),
        (Role::Worker, "AskUserQuestion", json!({}), "tools.role"),
        (Role::Worker, "StructuredOutput", json!({}), "tools.harmless"),
        (Role::Worker, "Write", write(), "paths.write"),
        (Role::Merger, "Write", write(), "paths.write"),
        (Role::Validator, "Write", write(), "tools.role"),
        (Role::Worker, "Agent", json!({}), "tools.blocked"),
        (Role::Worker, "NotebookEdit", json!({}), "tools.blocked"),
        (Role::Worker, "TodoWrite", json!({}), "tools.not-allowed"),
        (Role::Worker, "Bash", json!({"command": ["ls"]}), "tools.input"),
        (Role::Worker, "Bash", Value::Null, "tools.input"),
        (
            Role::Worker,
            "Bash",
            json!({"command": "ls", "run_in_background": "yes"}),
            "tools.background",
        ),
    ] {
        let policy = Policy::new(rules("", role)).unwrap();
        let verdict = judge(&policy, tool, input);
        assert_eq!(verdict.rule, expected, "{role} {tool}: {verdict:?}");
    }
    let listed = "permissions: {allowed_tools: [Read, Workflow]}";
    let policy = Policy::new(rules(listed, Role::Worker)).unwrap();
    assert_eq!(judge(&policy, "Workflow", json!({})).rule, "tools.unknown");
    assert_eq!(judge(&policy, "Bash", json!({"command": "ls"})).rule, "tools.not-allowed");
}

#[test]
fn planners_look_and_validators_run_diagnostics() {
    for (role, command, expected) in [
        (Role::Planner, "git log -3 | head", "commands.allowed"),
        (Role::Planner, "ls src > /tmp/list", "commands.allowed"),
        (Role::Planner, "go test ./...", "commands.role"),
        (Role::Planner, "git commit -m 'fix(task-001): x'", "commands.role"),
        (Role::Planner, "ls > src/x", "tools.role"),
        (Role::Validator, "go test ./... 2>&1 | tail -5", "commands.allowed"),
        (Role::Validator, "npm run lint", "commands.allowed"),
        (Role::Validator, "npm run lint2", "commands.role"),
        (Role::Validator, "npm run lint --fix", "commands.role"),
        (Role::Validator, "go test ./... ; git add src", "commands.role"),
        (Role::Validator, "git status", "commands.role"),
        (Role::Merger, "git add src/a.go", "commands.allowed"),
    ] {
        let policy = Policy::new(rules("", role)).unwrap();
        let verdict = bash(&policy, command);
        assert_eq!(verdict.rule, expected, "{role} {command}: {verdict:?}");
    }
}

#[test]
fn rules_survive_the_way_into_a_spec() {
    for role in Role::ALL {
        let rules = rules("worktree: {scratch: [target]}", role);
        let text = serde_json::to_string(&rules).unwrap();
        assert_eq!(serde_json::from_str::<PolicyRules>(&text).unwrap(), rules);
    }
}

#[test]
fn rules_that_cannot_be_used_are_refused() {
    let good = || rules("", Role::Worker);
    let bad = [
        PolicyRules { blocked_paths: vec!["/x".into()], ..good() },
        PolicyRules { blocked_patterns: vec!["(".into()], ..good() },
        PolicyRules { temporary: vec!["tmp".into()], ..good() },
    ];
    for rules in bad {
        Policy::new(rules).unwrap_err();
    }
}

#[test]
fn the_examples_hold_for_every_role_and_name_their_rule() {
    for yaml in ["", "permissions: {blocked_paths: [], allowed_paths: ['**']}"] {
        for role in Role::ALL {
            let policy = Policy::new(rules(yaml, role)).unwrap();
            for proof in policy.prove() {
                assert!(proof.holds(), "{role}: {proof:?}");
                if role == Role::Worker {
                    assert_eq!(proof.verdict.rule, proof.example.rule.name(), "{proof:?}");
                }
            }
        }
    }
}

#[test]
fn a_listed_command_that_can_never_run_is_found() {
    let yaml = "permissions: {bash_rules: {allowed_commands: [make, 'make a && make b', env]}}";
    let policy = Policy::new(rules(yaml, Role::Worker)).unwrap();
    let failed: Vec<String> =
        policy.prove().into_iter().filter(|p| !p.holds()).map(|p| p.verdict.target).collect();
    assert_eq!(failed, ["env"]);
}

#[test]
fn rule_names_are_unique() {
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
}
