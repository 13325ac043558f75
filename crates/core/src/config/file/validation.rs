//! What finished work must look like.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::yaml::{DurationText, Spanned};

/// What finished work must look like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// Commands that must succeed on a clean checkout of each task's commit.
    pub acceptance: Vec<Spanned<String>>,
    pub commit_format: CommitFormat,
    pub file_naming: FileNaming,
    pub require_tests: RequireTests,
    pub file_scope: FileScope,
    pub validator_diagnostics: ValidatorDiagnostics,
}

/// What commit messages look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommitFormat {
    /// Regular expression for the first line of a commit message. Empty
    /// accepts every message.
    pub pattern: Spanned<String>,
    /// A first line that fits the pattern; agents are shown it. May be empty.
    pub example: Spanned<String>,
}

impl Default for CommitFormat {
    fn default() -> Self {
        CommitFormat {
            pattern: r"^(feat|fix|refactor|test|docs|chore)\(task-\d+\): .+".into(),
            example: "feat(task-001): add JWT middleware".into(),
        }
    }
}

/// How new files are named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileNaming {
    /// The style of names.
    pub style: Spanned<NamingStyle>,
    /// Patterns of the files it is required for; an empty list requires it
    /// nowhere.
    pub enforce_for: Vec<Spanned<String>>,
}

impl Default for FileNaming {
    fn default() -> Self {
        FileNaming {
            style: NamingStyle::SnakeCase.into(),
            enforce_for: texts(&["src/**/*.go", "tests/**/*.go"]),
        }
    }
}

/// The style of file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamingStyle {
    #[serde(rename = "snake_case")]
    SnakeCase,
    #[serde(rename = "camelCase")]
    CamelCase,
    #[serde(rename = "PascalCase")]
    PascalCase,
    #[serde(rename = "kebab-case")]
    KebabCase,
}

/// Whether changed sources need changed tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequireTests {
    /// Whether a task that changes a source file must change a test as well.
    pub enabled: Spanned<bool>,
    /// Patterns of source files.
    pub source_patterns: Vec<Spanned<String>>,
    /// Patterns of test files.
    pub test_patterns: Vec<Spanned<String>>,
}

impl Default for RequireTests {
    fn default() -> Self {
        RequireTests {
            enabled: true.into(),
            source_patterns: texts(&["src/**/*.go"]),
            test_patterns: texts(&["tests/**/*_test.go", "src/**/*_test.go"]),
        }
    }
}

/// Whether a task must stay within its locks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileScope {
    /// Refuse changes outside the task's `file_locks`.
    pub enforce: Spanned<bool>,
}

impl Default for FileScope {
    fn default() -> Self {
        FileScope { enforce: true.into() }
    }
}

/// Commands that validators may run to judge a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ValidatorDiagnostics {
    /// Whether validators may run commands at all.
    pub enabled: Spanned<bool>,
    /// The commands, in full.
    pub commands: Vec<Spanned<String>>,
    /// How long each command may take.
    pub timeout: Spanned<DurationText>,
}

impl Default for ValidatorDiagnostics {
    fn default() -> Self {
        ValidatorDiagnostics {
            enabled: true.into(),
            commands: texts(&[
                "go test ./...",
                "go vet ./...",
                "golangci-lint run",
                "npm test",
                "npm run lint",
                "make test",
                "make lint",
            ]),
            timeout: "120s".into(),
        }
    }
}
