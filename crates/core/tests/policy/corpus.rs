//! The corpus: every case that the hook must decide, under the policy that the
//! corpus states.

use blueflame_core::ids::Role;
use blueflame_core::policy::{CommitRule, Decision, Policy, PolicyRules};
use serde_json::Value;

use super::ground::{self, WORKSPACE};

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .expect("the corpus has its form")
        .iter()
        .map(|text| text.as_str().expect("the corpus has its form").to_owned())
        .collect()
}

/// The rules of the corpus; what it does not state is the default.
fn corpus_rules(meta: &Value) -> PolicyRules {
    let policy = &meta["hook_policy"];
    let default = ground::rules("", Role::Worker);
    let pattern = policy["commit_format"].as_str().expect("the corpus has its form").to_owned();
    PolicyRules {
        allowed_tools: strings(&policy["allowed_tools"]),
        allowed_commands: strings(&policy["allowed_commands"]),
        allowed_paths: strings(&policy["allowed_paths"]),
        blocked_paths: strings(&policy["blocked_paths"]),
        commit_format: Some(CommitRule { pattern, example: None }),
        ..default
    }
}

#[test]
fn every_hook_case_of_the_corpus_is_decided_as_expected() {
    let corpus: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    let stated = PolicyRules { blocked_patterns: Vec::new(), ..corpus_rules(&corpus["meta"]) };
    assert_eq!(decided_otherwise(&corpus, &stated), [""; 0]);
}

/// The default patterns are not part of the corpus's policy. With them on top,
/// only what they name is decided otherwise.
#[test]
fn default_patterns_block_only_what_they_name() {
    let corpus: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    let mut otherwise = decided_otherwise(&corpus, &corpus_rules(&corpus["meta"]));
    otherwise.retain(|case| !case.starts_with("gt-036"));
    assert_eq!(otherwise, [""; 0], "gt-036 is `git add --chmod`, and `chmod` is blocked");
}

fn decided_otherwise(corpus: &Value, rules: &PolicyRules) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in corpus["cases"].as_array().expect("the corpus has its form") {
        if case["layer"] != "hook" {
            continue;
        }
        count += 1;
        let id = case["id"].as_str().expect("the corpus has its form");
        let mut rules = rules.clone();
        let locks = &corpus["meta"]["hook_policy"]["file_locks"][id];
        if locks.is_array() {
            let locks = strings(locks);
            let locks: Vec<&str> = locks.iter().map(String::as_str).collect();
            rules = ground::locked(rules, &locks);
        }
        let policy = Policy::new(rules).expect("the corpus has its form");
        let input: Value =
            serde_json::from_str(&case["tool_input"].to_string().replace("{WT}", WORKSPACE))
                .expect("the corpus has its form");
        let verdict =
            ground::judge(&policy, case["tool"].as_str().expect("the corpus has its form"), input);
        let decision = match verdict.decision {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        };
        if decision != case["expected"].as_str().expect("the corpus has its form") {
            wrong.push(format!("{id} {}: {verdict:?}", case["tool_input"]));
        }
        assert!(verdict.is_allowed() == verdict.details.is_empty(), "{id}: {verdict:?}");
    }
    assert_eq!(count, 138);
    wrong
}
