//! A merger's answer.
//!
//! The report says whether the conflicts are resolved; the commit itself is
//! looked for in the repository. A report that claims success and still names
//! conflicts is refused: it would land what nobody decided.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use crate::config::titled;

/// What a merger says it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergerReport {
    /// Every conflict is resolved and committed.
    Resolved { notes: String },
    /// At least one conflict needs a person; the text says which and why.
    Unresolved { report: String },
}

/// The outcome of resolving the conflicts of one changeset.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportAnswer {
    /// Whether every conflict is resolved and committed.
    #[schemars(required)]
    status: Option<Status>,
    /// How the conflicts were resolved, or what stands in the way.
    #[schemars(required)]
    notes: Option<String>,
    /// One entry for each conflict that a person has to decide: the file, what
    /// either side wants, why both cannot be kept. Empty if all are resolved.
    #[schemars(required)]
    issues: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Status {
    Resolved,
    Unresolved,
}

/// The JSON Schema that a merger's answer must follow.
pub fn merger_report_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    titled(generator.into_root_schema_for::<ReportAnswer>(), "Blue Flame merger report")
}

/// Reads a merger's answer; `issues` may be missing.
pub fn read_merger_report(answer: &Value) -> Result<MergerReport, Vec<String>> {
    let answer: ReportAnswer = super::read(answer)?;
    let notes = answer.notes.as_deref().unwrap_or_default().trim().to_owned();
    let issues = super::spoken(answer.issues.unwrap_or_default());
    let mut problems = Vec::new();
    if answer.notes.is_none() {
        problems.push("`notes` is missing".to_owned());
    }
    match answer.status {
        None => {
            problems.push("`status` is missing; it is `resolved` or `unresolved`".to_owned());
        }
        Some(Status::Resolved) if !issues.is_empty() => {
            let count = issues.len();
            problems.push(format!("a `resolved` report has no `issues`, got `{count}`"));
        }
        Some(Status::Unresolved) if notes.is_empty() && issues.is_empty() => {
            problems.push("an `unresolved` report must say why".to_owned());
        }
        Some(Status::Resolved | Status::Unresolved) => {}
    }
    match answer.status {
        Some(Status::Resolved) if problems.is_empty() => Ok(MergerReport::Resolved { notes }),
        Some(Status::Unresolved) if problems.is_empty() => {
            let points = issues.iter().map(|issue| format!("- {issue}"));
            let told = Some(notes).filter(|notes| !notes.is_empty());
            let report = told.into_iter().chain(points).collect::<Vec<_>>().join("\n");
            Ok(MergerReport::Unresolved { report })
        }
        Some(Status::Resolved | Status::Unresolved) | None => Err(problems),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_read_either_way() {
        let resolved = json!({"status": "resolved", "notes": "kept both", "issues": []});
        assert_eq!(
            read_merger_report(&resolved),
            Ok(MergerReport::Resolved { notes: "kept both".into() })
        );
        let unresolved = json!({
            "status": "unresolved", "notes": "they disagree", "issues": ["a.rs: 1 or 2"],
        });
        assert_eq!(
            read_merger_report(&unresolved),
            Ok(MergerReport::Unresolved { report: "they disagree\n- a.rs: 1 or 2".into() })
        );
    }

    #[test]
    fn a_report_that_contradicts_itself_is_refused() {
        for (answer, problems) in [
            (
                json!({"status": "resolved", "notes": "", "issues": ["a.rs"]}),
                vec!["a `resolved` report has no `issues`, got `1`"],
            ),
            (
                json!({"status": "unresolved", "notes": ""}),
                vec!["an `unresolved` report must say why"],
            ),
            (
                json!({"issues": []}),
                vec!["`notes` is missing", "`status` is missing; it is `resolved` or `unresolved`"],
            ),
        ] {
            assert_eq!(read_merger_report(&answer).unwrap_err(), problems);
        }
    }

    #[test]
    fn the_schema_names_both_ends() {
        let schema = merger_report_schema();
        assert_eq!(schema["properties"]["status"]["enum"], json!(["resolved", "unresolved"]));
        assert_eq!(schema["required"], json!(["status", "notes", "issues"]));
    }
}
