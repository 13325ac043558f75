//! What agents may touch and run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::yaml::Spanned;

/// What agents may touch and run. Whatever is blocked stays blocked, even if
/// it is allowed as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Patterns of files that agents may change. `*` stays within one
    /// directory, `**` goes through all below.
    pub allowed_paths: Vec<Spanned<String>>,
    /// Patterns of files that agents must never change. A pattern without `/`
    /// counts in every directory, and whatever lies below a match is blocked
    /// too.
    pub blocked_paths: Vec<Spanned<String>>,
    /// Tools that agents may use.
    pub allowed_tools: Vec<Spanned<String>>,
    /// Tools that agents must never use.
    pub blocked_tools: Vec<Spanned<String>>,
    pub bash_rules: BashRules,
}

impl Default for Permissions {
    fn default() -> Self {
        Permissions {
            allowed_paths: texts(&["src/**", "tests/**", "docs/**"]),
            blocked_paths: texts(&[
                ".env*",
                "*.secret",
                "*.key",
                "blueflame.yaml",
                ".claude/**",
                ".blueflame/**",
                "go.mod",
                "go.sum",
                "package-lock.json",
            ]),
            allowed_tools: texts(&["Read", "Write", "Edit", "Glob", "Grep", "Bash"]),
            blocked_tools: texts(&["WebFetch", "WebSearch", "NotebookEdit", "Task"]),
            bash_rules: BashRules::default(),
        }
    }
}

/// Which shell commands agents may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BashRules {
    /// Beginnings of commands that may be run.
    pub allowed_commands: Vec<Spanned<String>>,
    /// Regular expressions; a command in which one is found, from the
    /// beginning of a word on, is refused.
    pub blocked_patterns: Vec<Spanned<String>>,
}

impl Default for BashRules {
    fn default() -> Self {
        BashRules {
            allowed_commands: texts(&[
                "go test",
                "go build",
                "go vet",
                "go run",
                "make",
                "git diff",
                "git status",
                "git log",
                "git add",
                "git commit",
                "npm test",
                "npm run",
            ]),
            blocked_patterns: texts(&[
                r"rm\s+-rf",
                r"git\s+push",
                r"git\s+checkout\s+main",
                r"git\s+merge",
                r"curl|wget",
                r"sudo",
                r"chmod",
                r"docker",
                r"nc\s|netcat|ncat",
                r"ssh|scp|sftp",
                r"pip\s+install|npm\s+install|go\s+get",
            ]),
        }
    }
}
