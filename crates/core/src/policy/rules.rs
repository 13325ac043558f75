//! What agents are judged by, as data.
//!
//! [`PolicyRules`] are made from the checked configuration for one agent, and
//! travel with it: they stand in the attempt's spec. [`Compiled`] is the same,
//! ready to be held against tool calls.

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::config::{Config, NamingStyle, SandboxMode};
use crate::ids::{Role, SkillName};
use crate::lock_path::LockPath;
use crate::path_pattern::{BadPattern, PathPattern};

/// Everything that one agent is judged by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRules {
    pub role: Role,
    pub allowed_tools: Vec<String>,
    pub blocked_tools: Vec<String>,
    /// Patterns of what may be written.
    pub allowed_paths: Vec<String>,
    /// Patterns of what may not, whatever else is said.
    pub blocked_paths: Vec<String>,
    pub scope: Scope,
    /// Build output: written outside of the scope, never committed.
    pub scratch: Vec<LockPath>,
    /// Absolute directories for passing files between commands. They have to be
    /// the agent's own.
    pub temporary: Vec<String>,
    /// Beginnings of commands.
    pub allowed_commands: Vec<String>,
    /// Regular expressions.
    pub blocked_patterns: Vec<String>,
    /// What a validator may run, in full.
    pub diagnostics: Vec<String>,
    pub commit_format: Option<CommitRule>,
    pub naming: Option<NamingRule>,
    pub tests: Option<TestRule>,
    /// What it was given to learn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<SkillRule>,
}

/// The skills of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillRule {
    /// Where they are: absolute, without links. It may be read and nothing else.
    pub folder: String,
    pub names: Vec<SkillName>,
}

/// Which part of the allowed files an agent may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// All of them.
    Everything,
    /// What these cover.
    Locks(Vec<LockPath>),
}

impl Scope {
    /// What these locks leave to an agent, as the configuration has it.
    pub fn of(config: &Config, locks: &[LockPath]) -> Scope {
        if config.validation.enforce_file_scope {
            Scope::Locks(locks.to_vec())
        } else {
            Scope::Everything
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRule {
    /// A regular expression for the first line.
    pub pattern: String,
    pub example: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamingRule {
    pub style: NamingStyle,
    /// Patterns of the files it counts for.
    pub files: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRule {
    pub sources: Vec<String>,
    pub tests: Vec<String>,
}

/// Rules that cannot be used. Those of a checked configuration always can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("the path pattern `{pattern}` {why}")]
    Pattern { pattern: String, why: BadPattern },
    #[error("the regular expression `{0}` cannot be used")]
    Regex(String),
    #[error("the directory for temporary files is not absolute: `{0}`")]
    Temporary(String),
}

impl PolicyRules {
    /// The rules for an agent of this role that may write what `scope` covers.
    pub fn of(config: &Config, role: Role, scope: &[LockPath]) -> PolicyRules {
        let permissions = &config.permissions;
        let validation = &config.validation;
        // Outside of a sandbox `/tmp` belongs to everyone.
        let own_tmp = config.sandbox.mode != SandboxMode::Off;
        PolicyRules {
            role,
            allowed_tools: permissions.allowed_tools.clone(),
            blocked_tools: permissions.blocked_tools.clone(),
            allowed_paths: texts(&permissions.paths.allowed),
            blocked_paths: texts(&permissions.paths.blocked),
            scope: Scope::of(config, scope),
            scratch: config.worktree.scratch.clone(),
            temporary: if own_tmp { vec!["/tmp".to_owned()] } else { Vec::new() },
            allowed_commands: permissions.allowed_commands.clone(),
            blocked_patterns: permissions
                .blocked_patterns
                .iter()
                .map(|regex| regex.as_str().to_owned())
                .collect(),
            diagnostics: validation
                .diagnostics
                .as_ref()
                .map_or_else(Vec::new, |diagnostics| diagnostics.commands.clone()),
            commit_format: validation.commit_format.as_ref().map(|format| CommitRule {
                pattern: format.pattern.as_str().to_owned(),
                example: format.example.clone(),
            }),
            naming: Some(&validation.file_naming)
                .filter(|naming| !naming.enforce_for.is_empty())
                .map(|naming| NamingRule {
                    style: naming.style,
                    files: texts(&naming.enforce_for),
                }),
            tests: validation.require_tests.as_ref().map(|required| TestRule {
                sources: texts(&required.sources),
                tests: texts(&required.tests),
            }),
            skills: None,
        }
    }

    /// Whether agents of this role write files at all.
    pub fn writes(&self) -> bool {
        match self.role {
            Role::Worker | Role::Merger => true,
            Role::Planner | Role::Validator => false,
        }
    }
}

fn texts(patterns: &[PathPattern]) -> Vec<String> {
    patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
}

/// The rules, ready for use.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub rules: PolicyRules,
    pub allowed: Vec<PathPattern>,
    /// In folded case; beside each, as it was written.
    pub blocked: Vec<(PathPattern, String)>,
    pub allowed_commands: Vec<Vec<String>>,
    pub diagnostics: Vec<Vec<String>>,
    pub blocked_patterns: Vec<Regex>,
    pub commit: Option<Regex>,
    pub naming: Vec<PathPattern>,
    pub sources: Vec<PathPattern>,
    pub tests: Vec<PathPattern>,
}

impl Compiled {
    pub fn new(rules: PolicyRules) -> Result<Compiled, PolicyError> {
        if let Some(other) = rules.temporary.iter().find(|path| !path.starts_with('/')) {
            return Err(PolicyError::Temporary(other.clone()));
        }
        let blocked = rules
            .blocked_paths
            .iter()
            .map(|text| Ok((pattern(&fold(text))?, text.clone())))
            .collect::<Result<_, PolicyError>>()?;
        let naming = rules.naming.as_ref().map_or(&[][..], |naming| &naming.files);
        let (sources, tests) = rules
            .tests
            .as_ref()
            .map_or((&[][..], &[][..]), |tests| (&tests.sources[..], &tests.tests[..]));
        Ok(Compiled {
            allowed: patterns(&rules.allowed_paths)?,
            blocked,
            allowed_commands: rules.allowed_commands.iter().map(|text| tokens(text)).collect(),
            diagnostics: rules.diagnostics.iter().map(|text| tokens(text)).collect(),
            blocked_patterns: rules
                .blocked_patterns
                .iter()
                .map(|text| regex(text))
                .collect::<Result<_, _>>()?,
            commit: rules.commit_format.as_ref().map(|rule| regex(&rule.pattern)).transpose()?,
            naming: patterns(naming)?,
            sources: patterns(sources)?,
            tests: patterns(tests)?,
            rules,
        })
    }
}

/// Text as file systems that ignore case compare it, and a little beyond.
pub(super) fn fold(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

fn tokens(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

fn patterns(texts: &[String]) -> Result<Vec<PathPattern>, PolicyError> {
    texts.iter().map(|text| pattern(text)).collect()
}

fn pattern(text: &str) -> Result<PathPattern, PolicyError> {
    PathPattern::new(text).map_err(|why| PolicyError::Pattern { pattern: text.to_owned(), why })
}

fn regex(text: &str) -> Result<Regex, PolicyError> {
    Regex::new(text).map_err(|_| PolicyError::Regex(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::policy::Policy;

    #[test]
    fn a_policy_for_another_scope_is_the_one_that_would_be_made_for_it() {
        for scoped in [true, false] {
            let text = format!(
                "schema_version: 2\nvalidation: {{file_scope: {{enforce: {scoped}}}}}\n\
                 permissions: {{allowed_paths: ['src/**']}}\n"
            );
            let config = config::read(text.as_bytes()).config.unwrap();
            let locks = |path: &str| vec![LockPath::new(path).unwrap()];
            let (one, other) = (locks("src/one"), locks("src/other"));
            let policy = Policy::new(PolicyRules::of(&config, Role::Worker, &one)).unwrap();
            let moved = policy.with_scope(Scope::of(&config, &other));
            assert_eq!(moved.rules(), &PolicyRules::of(&config, Role::Worker, &other));
            assert!(moved.may_commit("src/other/a.rs"));
            assert_eq!(moved.may_commit("src/one/a.rs"), !scoped);
        }
    }
}
