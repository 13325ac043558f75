//! The corpus: every case that the hook must decide, under the policy that the
//! corpus states.

use blueflame_core::policy::{Decision, Policy, PolicyRules};
use serde_json::Value;

use super::corpus_rules::rules_for;
use super::ground::{self, WORKSPACE};

#[test]
fn every_hook_case_of_the_corpus_is_decided_as_expected() {
    assert_eq!(decided_otherwise(|rules| rules), [""; 0]);
}

/// The default patterns are not part of the corpus's policy. With them on top,
/// only what they name is decided otherwise.
#[test]
fn default_patterns_block_only_what_they_name() {
    let defaults = ground::rules("", blueflame_core::ids::Role::Worker).blocked_patterns;
    let with_defaults = |rules| PolicyRules { blocked_patterns: defaults.clone(), ..rules };
    assert_eq!(decided_otherwise(with_defaults), [""; 0]);
}

fn decided_otherwise(change: impl Fn(PolicyRules) -> PolicyRules) -> Vec<String> {
    let corpus: Value =
        serde_json::from_str(include_str!("cases.json")).expect("the corpus has its form");
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in corpus["cases"].as_array().expect("the corpus has its form") {
        if case["layer"] != "hook" {
            continue;
        }
        count += 1;
        let id = case["id"].as_str().expect("the corpus has its form");
        let rules = change(rules_for(&corpus["meta"], id));
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
