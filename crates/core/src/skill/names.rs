//! Names of well-known skills: who usually gets them, and what they were called.

use crate::ids::Role;

/// Who gets a skill that the configuration names without a role.
const USUAL: [(&str, &[Role]); 6] = [
    ("test-driven-development", &[Role::Worker]),
    ("systematic-debugging", &[Role::Worker]),
    ("verification-before-completion", &[Role::Worker]),
    ("requesting-code-review", &[Role::Validator]),
    ("writing-plans", &[Role::Planner]),
    (ASKING, &[Role::Planner]),
];

/// The one that is of no use without a person to ask.
pub(super) const ASKING: &str = "brainstorming";

/// Names that skills had before.
const RENAMED: [(&str, &str); 3] =
    [("brainstorm", ASKING), ("write-plan", "writing-plans"), ("execute-plan", "executing-plans")];

/// What a skill of this name is called now, if that is something else.
pub fn newer_name(name: &str) -> Option<&'static str> {
    RENAMED.into_iter().find(|(old, _)| *old == name).map(|(_, new)| new)
}

pub fn usual_roles(name: &str) -> &'static [Role] {
    USUAL.into_iter().find(|(known, _)| *known == name).map_or(&[], |(_, roles)| roles)
}

/// The names with usual roles.
pub fn usual_names() -> impl Iterator<Item = &'static str> {
    USUAL.into_iter().map(|(name, _)| name)
}

/// A name without the plugin that some programs put before it.
pub fn plain(name: &str) -> &str {
    name.strip_prefix("superpowers:").unwrap_or(name)
}
