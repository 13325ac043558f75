//! A validator's answer.
//!
//! A pass may come with issues: they are remarks, and are kept. A fail must say
//! why, in the notes or in an issue, because the next worker has nothing else
//! to go by.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use crate::config::titled;
use crate::outcome::Verdict;

/// The judgement on one task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerdictAnswer {
    /// Whether the work may be merged.
    #[schemars(required)]
    status: Option<Status>,
    /// What was checked, and why this is the verdict.
    #[schemars(required)]
    notes: Option<String>,
    /// One entry for each problem: where it is, what is wrong, what would be
    /// right. Of a pass: remarks, or nothing.
    #[schemars(required)]
    issues: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Status {
    Pass,
    Fail,
}

/// The JSON Schema that a validator's answer must follow.
pub fn verdict_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    titled(generator.into_root_schema_for::<VerdictAnswer>(), "Blue Flame verdict")
}

/// Reads a validator's answer; `issues` may be missing.
pub fn read_verdict(answer: &Value) -> Result<Verdict, Vec<String>> {
    let answer: VerdictAnswer = super::read(answer)?;
    let mut problems = Vec::new();
    if answer.status.is_none() {
        problems.push("`status` is missing; it is `pass` or `fail`".to_owned());
    }
    if answer.notes.is_none() {
        problems.push("`notes` is missing".to_owned());
    }
    let notes = answer.notes.unwrap_or_default();
    let issues = super::spoken(answer.issues.unwrap_or_default());
    if answer.status == Some(Status::Fail) && notes.trim().is_empty() && issues.is_empty() {
        problems.push("a `fail` must say why, in `notes` or `issues`".to_owned());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Verdict { pass: answer.status == Some(Status::Pass), notes, issues })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_verdict_is_read_and_a_pass_keeps_its_remarks() {
        let verdict = read_verdict(&json!({
            "status": "pass", "notes": "all there", "issues": ["a typo in a comment", " "],
        }));
        let expected = Verdict {
            pass: true,
            notes: "all there".into(),
            issues: vec!["a typo in a comment".into()],
        };
        assert_eq!(verdict, Ok(expected));
        let verdict = read_verdict(&json!({"status": "fail", "notes": "", "issues": ["a.rs:3"]}));
        assert!(!verdict.unwrap().pass);
        let without_issues = read_verdict(&json!({"status": "pass", "notes": ""}));
        assert!(without_issues.unwrap().pass);
    }

    #[test]
    fn a_verdict_that_cannot_be_used_is_refused_with_every_reason() {
        for (answer, problems) in [
            (json!("pass"), vec!["the answer is not an object"]),
            (json!({}), vec!["`status` is missing; it is `pass` or `fail`", "`notes` is missing"]),
            (
                json!({"status": "Pass", "notes": 3, "verdict": "pass"}),
                vec![
                    "`status` must be `pass` or `fail`, got the text `Pass`",
                    "`notes` must be a text, got the number `3`",
                    "`verdict` is not a known key",
                ],
            ),
            (
                json!({"status": null, "notes": "x"}),
                vec!["`status` is missing; it is `pass` or `fail`"],
            ),
            (
                json!({"status": "fail", "notes": " ", "issues": [""]}),
                vec!["a `fail` must say why, in `notes` or `issues`"],
            ),
            (
                json!({"status": "pass", "notes": "x".repeat(300_000)}),
                vec!["the answer may have 262144 bytes, got `300028`"],
            ),
        ] {
            assert_eq!(read_verdict(&answer).unwrap_err(), problems);
        }
    }

    /// Some providers hold a model to a schema only if every key is required
    /// and no other is allowed.
    #[test]
    fn the_schema_is_one_that_every_provider_can_enforce() {
        let schema = verdict_schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["status", "notes", "issues"]));
        assert_eq!(schema["properties"]["status"]["enum"], json!(["pass", "fail"]));
        assert_eq!(schema["properties"]["notes"]["type"], json!("string"));
        assert_eq!(schema["properties"]["issues"]["type"], json!("array"));
    }
}
