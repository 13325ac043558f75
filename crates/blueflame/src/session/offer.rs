//! What agents of each role are offered: tools, and the shape of an answer.

use blueflame_core::config::Config;
use blueflame_core::ids::Role;
use blueflame_core::{answer, plan};

/// The tools that are offered: what is allowed and of use to the role.
pub fn tools(config: &Config, role: Role) -> Vec<String> {
    let useful: &[&str] = match role {
        Role::Worker | Role::Merger => &["Read", "Write", "Edit", "Glob", "Grep", "Bash"],
        Role::Planner => &["Read", "Glob", "Grep"],
        Role::Validator => &["Read", "Glob", "Grep", "Bash"],
    };
    let permissions = &config.permissions;
    let allowed = |tool: &&&str| {
        let is = |list: &[String]| list.iter().any(|name| name == **tool);
        is(&permissions.allowed_tools) && !is(&permissions.blocked_tools)
    };
    useful.iter().filter(allowed).map(|tool| (*tool).to_owned()).collect()
}

/// The shape of what a role has to return, if it has to return something.
pub fn schema(role: Role) -> Option<serde_json::Value> {
    match role {
        Role::Planner => Some(plan::schema()),
        Role::Validator => Some(answer::verdict_schema()),
        Role::Merger => Some(answer::merger_report_schema()),
        Role::Worker => None,
    }
}
