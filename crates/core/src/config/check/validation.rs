//! What finished work must look like.

use std::time::Duration;

use super::super::{CommitFormat, Diagnostics, FileNaming, RequireTests, Validation, file};
use super::values::Check;
use crate::yaml::Problem;

pub(super) fn validation(check: Check<'_>, file: &file::Validation) -> Option<Validation> {
    let acceptance = check.commands("validation.acceptance", &file.acceptance);
    let commit_format = commit_format(check, &file.commit_format);
    let naming = &file.file_naming;
    let file_naming = FileNaming {
        style: naming.style.value,
        enforce_for: check.patterns("validation.file_naming.enforce_for", &naming.enforce_for),
    };
    let require_tests = require_tests(check, &file.require_tests);
    let diagnostics = diagnostics(check, &file.validator_diagnostics);
    Some(Validation {
        acceptance,
        commit_format: commit_format?,
        file_naming,
        require_tests,
        enforce_file_scope: file.file_scope.enforce.value,
        diagnostics: diagnostics?,
    })
}

/// The outer `None` is a problem, the inner one is no format.
#[expect(clippy::option_option)]
fn commit_format(check: Check<'_>, file: &file::CommitFormat) -> Option<Option<CommitFormat>> {
    if file.pattern.is_empty() {
        return Some(None);
    }
    let pattern = check.regex("validation.commit_format.pattern", &file.pattern)?;
    let example = Some(file.example.value.clone()).filter(|example| !example.is_empty());
    if let Some(example) = &example
        && !pattern.is_match(example)
    {
        check.problems.push(
            Problem::error("validation.commit_format.example", "does not fit its own pattern")
                .also(file.example.span, "this message would be refused")
                .also(file.pattern.span, "by this pattern")
                .hint("change one of them; agents imitate the example"),
        );
        return None;
    }
    Some(Some(CommitFormat { pattern, example }))
}

fn require_tests(check: Check<'_>, file: &file::RequireTests) -> Option<RequireTests> {
    let path = "validation.require_tests";
    let sources = check.patterns(&format!("{path}.source_patterns"), &file.source_patterns);
    let tests = check.patterns(&format!("{path}.test_patterns"), &file.test_patterns);
    if file.enabled.value && file.test_patterns.is_empty() && !file.source_patterns.is_empty() {
        check.problems.push(
            Problem::error(
                format!("{path}.test_patterns"),
                "is empty, so no change could bring the tests that are required",
            )
            .at(file.enabled.span, "tests are required here")
            .hint("list the patterns of test files, or set enabled: false"),
        );
    }
    if file.enabled.value && file.source_patterns.is_empty() {
        check.problems.push(
            Problem::warning(
                format!("{path}.source_patterns"),
                "is empty, so no change is asked for tests",
            )
            .at(file.enabled.span, "tests are required here")
            .hint("list the patterns of source files, or set enabled: false"),
        );
    }
    file.enabled.value.then_some(RequireTests { sources, tests })
}

#[expect(clippy::option_option)]
fn diagnostics(check: Check<'_>, file: &file::ValidatorDiagnostics) -> Option<Option<Diagnostics>> {
    let path = "validation.validator_diagnostics";
    let commands = check.commands(&format!("{path}.commands"), &file.commands);
    let longest = Duration::from_secs(24 * 60 * 60);
    let timeout = check.duration(&format!("{path}.timeout"), &file.timeout, longest)?;
    Some(file.enabled.value.then_some(Diagnostics { commands, timeout }))
}
