//! Versions of the file format, and what an older file means today.
//!
//! Files are migrated in memory only; nobody's file is rewritten. This is also
//! where defaults give way to what a person wrote beside them.

use super::file::{ConfigFile, NEWEST_SCHEMA};
use crate::yaml::{Document, Kind, Problem, Spanned};

/// Keys that version 1 did not have.
const SINCE_2: [&[&str]; 14] = [
    &["executors"],
    &["gateway"],
    &["worktree"],
    &["sandbox", "mode"],
    &["sandbox", "read"],
    &["sandbox", "max_disk_mb"],
    &["sandbox", "process_limit"],
    &["validation", "acceptance"],
    &["merge"],
    &["waves"],
    &["beads", "context_tokens"],
    &["beads", "mirror"],
    &["hooks", "timeout"],
    &["forecast"],
];

/// The version that a file claims, and what is wrong with that.
pub(super) struct Version {
    pub number: u32,
    pub problems: Vec<Problem>,
}

pub(super) fn version(document: &Document) -> Version {
    let mut problems = Vec::new();
    if !document.is_mapping() {
        return Version { number: NEWEST_SCHEMA, problems };
    }
    let Some(value) = document.value("schema_version") else {
        problems.push(
            Problem::warning("schema_version", "is missing, so the file is read as version 1")
                .hint(format!("add `schema_version: {NEWEST_SCHEMA}` as the first line")),
        );
        problems.extend(too_new_keys(document, None));
        return Version { number: 1, problems };
    };
    let number = match &value.kind {
        Kind::Scalar { text, quoted: false } => text.parse().ok(),
        _ => None,
    };
    match number {
        Some(1) => problems.extend(too_new_keys(document, Some(value.span))),
        Some(number) if number > NEWEST_SCHEMA => problems.push(
            Problem::error(
                "schema_version",
                format!(
                    "is newer than this program: it reads up to {NEWEST_SCHEMA}, got `{number}`"
                ),
            )
            .at(value.span, "")
            .hint(format!("update blueflame, or write the file for version {NEWEST_SCHEMA}")),
        ),
        // If this is no number, the reader says so.
        Some(NEWEST_SCHEMA) | None => {}
        Some(number) => problems.push(
            Problem::error("schema_version", format!("must be 1 or 2, got `{number}`"))
                .at(value.span, "")
                .hint(format!("write `schema_version: {NEWEST_SCHEMA}`")),
        ),
    }
    Version { number: number.unwrap_or(NEWEST_SCHEMA), problems }
}

fn too_new_keys(document: &Document, version: Option<crate::yaml::Span>) -> Vec<Problem> {
    SINCE_2
        .iter()
        .filter_map(|path| {
            let span = document.key(path)?;
            Some(
                Problem::error(path.join("."), "is not part of schema version 1")
                    .at(span, "needs version 2")
                    .also(version, "version 1 is set here")
                    .hint("set schema_version: 2"),
            )
        })
        .collect()
}

/// Brings a file to the newest form; says what was assumed on the way.
pub(super) fn to_newest(file: &mut ConfigFile, version: u32) -> Vec<String> {
    settle_defaults(file);
    file.schema_version.value = NEWEST_SCHEMA;
    if version >= NEWEST_SCHEMA {
        return Vec::new();
    }
    let executor = &file.executors.default.value;
    vec![
        format!("every role is run by `{executor}` (executors.default)"),
        format!(
            "model requests go to `{}` with the key from `{}` (gateway)",
            file.gateway.upstream.value, file.gateway.credential_env.value
        ),
        "agents are confined by the strongest boundary, or not started (sandbox.mode: auto)".into(),
        "no commands check a task's commit or the merged tree (validation.acceptance, merge.verify)"
            .into(),
        format!("approved work lands on `{}` (merge.target: base)", file.project.base_branch.value),
        "validation starts when all development is done (waves.mode: strict)".into(),
    ]
}

/// A default gives way where it contradicts what was written: a limit in
/// tokens replaces the default limit in dollars, a pattern of one's own the
/// default example, a blocked tool the default permission to use it.
fn settle_defaults(file: &mut ConfigFile) {
    let limits = &mut file.limits;
    let budget = &mut limits.token_budget;
    for (usd, tokens) in [
        (&mut limits.max_session_cost_usd, &limits.max_session_tokens),
        (&mut budget.planner_usd, &budget.planner_tokens),
        (&mut budget.worker_usd, &budget.worker_tokens),
        (&mut budget.validator_usd, &budget.validator_tokens),
        (&mut budget.merger_usd, &budget.merger_tokens),
    ] {
        if usd.span.is_none() && tokens.span.is_some() && tokens.value > 0 {
            *usd = Spanned::bare(0.0);
        }
    }
    let format = &mut file.validation.commit_format;
    if format.pattern.span.is_some() && format.example.span.is_none() {
        format.example = "".into();
    }
    let permissions = &mut file.permissions;
    let blocked = &permissions.blocked_tools;
    permissions.allowed_tools.retain(|tool| {
        tool.span.is_some() || !blocked.iter().any(|blocked| blocked.value == tool.value)
    });
}
