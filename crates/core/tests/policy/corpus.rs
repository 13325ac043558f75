//! The corpus: every case that the hook must decide, under the policy that the
//! corpus states.

use blueflame_core::ids::Role;
use blueflame_core::policy::{Decision, Policy, PolicyRules};
use serde_json::Value;

use super::ground::{self, WORKSPACE};

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The rules of the corpus; what it does not state is the default.
fn corpus_rules(meta: &Value) -> PolicyRules {
    let policy = &meta["hook_policy"];
    let default = ground::rules("", Role::Worker);
    let mut commit = default.commit_format.clone().unwrap();
    commit.pattern = policy["commit_format"].as_str().unwrap().to_owned();
    PolicyRules {
        allowed_tools: strings(&policy["allowed_tools"]),
        allowed_commands: strings(&policy["allowed_commands"]),
        allowed_paths: strings(&policy["allowed_paths"]),
        blocked_paths: strings(&policy["blocked_paths"]),
        commit_format: Some(commit),
        ..default
    }
}

#[test]
fn every_hook_case_of_the_corpus_is_decided_as_expected() {
    let corpus: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    let without_patterns =
        PolicyRules { blocked_patterns: Vec::new(), ..corpus_rules(&corpus["meta"]) };
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in corpus["cases"].as_array().unwrap() {
        if case["layer"] != "hook" {
            continue;
        }
        count += 1;
        let id = case["id"].as_str().unwrap();
        let mut rules = without_patterns.clone();
        let locks = &corpus["meta"]["hook_policy"]["file_locks"][id];
        if locks.is_array() {
            let locks = strings(locks);
            let locks: Vec<&str> = locks.iter().map(String::as_str).collect();
            rules = ground::locked(rules, &locks);
        }
        let policy = Policy::new(rules).unwrap();
        let input: Value =
            serde_json::from_str(&case["tool_input"].to_string().replace("{WT}", WORKSPACE))
                .unwrap();
        let verdict = ground::judge(&policy, case["tool"].as_str().unwrap(), input);
        let decision = match verdict.decision {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        };
        if decision != case["expected"].as_str().unwrap() {
            wrong.push(format!("{id} {}: {verdict:?}", case["tool_input"]));
        }
        assert!(verdict.is_allowed() == verdict.details.is_empty(), "{id}: {verdict:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(count, 138);
}
