//! The policy that the corpus states. The matrix of layers reads it as well.

use blueflame_core::config;
use blueflame_core::ids::Role;
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::{CommitRule, PolicyRules, Scope};
use serde_json::Value;

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .expect("the corpus has its form")
        .iter()
        .map(|text| text.as_str().expect("the corpus has its form").to_owned())
        .collect()
}

/// The rules for one case; what the corpus does not state is the default. The
/// default patterns are not part of it.
pub fn rules_for(meta: &Value, id: &str) -> PolicyRules {
    let policy = &meta["hook_policy"];
    let config = config::read(b"schema_version: 2\n").config.expect("a good configuration");
    let pattern = policy["commit_format"].as_str().expect("the corpus has its form").to_owned();
    let scope = match &policy["file_locks"][id] {
        Value::Null => Scope::Everything,
        locks => {
            let lock = |lock: String| LockPath::new(&lock).expect("a lock");
            Scope::Locks(strings(locks).into_iter().map(lock).collect())
        }
    };
    PolicyRules {
        allowed_tools: strings(&policy["allowed_tools"]),
        allowed_commands: strings(&policy["allowed_commands"]),
        allowed_paths: strings(&policy["allowed_paths"]),
        blocked_paths: strings(&policy["blocked_paths"]),
        blocked_patterns: Vec::new(),
        commit_format: Some(CommitRule { pattern, example: None }),
        scope,
        ..PolicyRules::of(&config, Role::Worker, &[])
    }
}
