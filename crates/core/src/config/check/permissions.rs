//! What agents may touch and run, and where rules contradict each other.

use super::super::file::{self, ConfigFile};
use super::super::{Config, Permissions, Validation};
use super::values::Check;
use crate::ids::Role;
use crate::path_rules::PathRules;
use crate::policy::{Policy, PolicyRules, is_found};
use crate::yaml::{Problem, Spanned};

pub(super) fn permissions(check: Check<'_>, file: &file::Permissions) -> Option<Permissions> {
    let section = "permissions";
    let paths = PathRules {
        allowed: check.patterns("permissions.allowed_paths", &file.allowed_paths),
        blocked: check.patterns("permissions.blocked_paths", &file.blocked_paths),
    };
    if file.allowed_paths.is_empty() {
        check.problems.push(
            Problem::warning("permissions.allowed_paths", "is empty: agents can change no file")
                .hint("list what they may change, such as `src/**`"),
        );
    }
    if file.allowed_tools.is_empty() {
        check.problems.push(
            Problem::error("permissions.allowed_tools", "is empty: agents can do nothing")
                .hint("list the tools they may use, such as Read, Edit and Bash"),
        );
    }
    tools(check, file);
    let rules = &file.bash_rules;
    let allowed_commands =
        check.commands("permissions.bash_rules.allowed_commands", &rules.allowed_commands);
    let blocked_patterns: Vec<_> = rules
        .blocked_patterns
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let path = format!("{section}.bash_rules.blocked_patterns[{index}]");
            let regex = check.regex(&path, text)?;
            if regex.is_match("") {
                let hint = "write what must be found in a command to refuse it";
                check.error(&path, text, "matches every command", hint);
                return None;
            }
            Some(regex)
        })
        .collect();
    Some(Permissions {
        paths,
        allowed_tools: values(&file.allowed_tools),
        blocked_tools: values(&file.blocked_tools),
        allowed_commands,
        blocked_patterns: blocked_patterns.into_iter().collect::<Option<_>>()?,
    })
}

fn values(list: &[Spanned<String>]) -> Vec<String> {
    list.iter().map(|text| text.value.clone()).collect()
}

fn tools(check: Check<'_>, file: &file::Permissions) {
    check.names("permissions.allowed_tools", "a tool", &file.allowed_tools);
    check.names("permissions.blocked_tools", "a tool", &file.blocked_tools);
    for (index, tool) in file.allowed_tools.iter().enumerate() {
        let Some(blocked) = file.blocked_tools.iter().find(|other| other.value == tool.value)
        else {
            continue;
        };
        let path = format!("permissions.allowed_tools[{index}]");
        let problem = if blocked.span.is_some() {
            Problem::error(path, format!("is also blocked, got `{}`", tool.value))
                .hint("remove it from one of the two lists")
        } else {
            Problem::error(path, format!("is blocked by default, got `{}`", tool.value))
                .hint("write `blocked_tools` yourself, without it, if agents may really use it")
        };
        check
            .problems
            .push(problem.also(tool.span, "allowed here").also(blocked.span, "blocked here"));
    }
}

/// Commands that are allowed and can never run, because a pattern blocks them.
/// Defaults that the person did not write are left alone.
pub(super) fn contradictions(
    check: Check<'_>,
    file: &ConfigFile,
    permissions: &Permissions,
    validation: &Validation,
) {
    let rules = &file.permissions.bash_rules;
    let diagnostics = &file.validation.validator_diagnostics.commands;
    let lists = [
        ("permissions.bash_rules.allowed_commands", &rules.allowed_commands, true),
        (
            "validation.validator_diagnostics.commands",
            diagnostics,
            validation.diagnostics.is_some(),
        ),
    ];
    for (path, list, used) in lists {
        for (index, command) in list.iter().enumerate() {
            let blocking = permissions.blocked_patterns.iter().position(|p| is_found(p, command));
            let (Some(blocking), true, Some(span)) = (blocking, used, command.span) else {
                continue;
            };
            let pattern = &rules.blocked_patterns[blocking];
            check.problems.push(
                Problem::warning(
                    format!("{path}[{index}]"),
                    format!("can never run: the blocked pattern `{}` matches it", pattern.value),
                )
                .at(span, "this command")
                .also(pattern.span, "is blocked here")
                .hint("blocked patterns win; remove the command or narrow the pattern"),
            );
        }
    }
}

/// Tries the examples of the policy: what the person lists has to be possible.
pub(super) fn examples(check: Check<'_>, file: &ConfigFile, config: &Config) {
    let lists = [
        (
            Role::Worker,
            "permissions.bash_rules.allowed_commands",
            &file.permissions.bash_rules.allowed_commands,
        ),
        (
            Role::Validator,
            "validation.validator_diagnostics.commands",
            &file.validation.validator_diagnostics.commands,
        ),
    ];
    for (role, path, list) in lists {
        // Nobody can be told where a default was written.
        if list.iter().all(|command| command.span.is_none()) {
            continue;
        }
        let Ok(policy) = Policy::new(PolicyRules::of(config, role, &[])) else { continue };
        for proof in policy.prove().iter().filter(|proof| !proof.holds()) {
            let listed = list.iter().position(|command| command.value == proof.verdict.target);
            let Some(index) = listed else { continue };
            let Some(span) = list[index].span else { continue };
            check.problems.push(
                Problem::warning(
                    format!("{path}[{index}]"),
                    format!("can never run: {}", proof.verdict.details),
                )
                .at(span, "this command")
                .hint("list single commands, each word as agents would write it"),
            );
        }
    }
}
