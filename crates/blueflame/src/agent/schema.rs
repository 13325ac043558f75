//! Structured output: the tool by which it comes, and whether it fits.

use serde_json::{Value, json};

/// The tool's name, as claude has it.
pub(super) const TOOL: &str = "StructuredOutput";

/// Problems that are told at once.
const MOST: usize = 10;

/// What the output must look like.
#[derive(Debug)]
pub(super) struct Schema {
    schema: Value,
    validator: jsonschema::Validator,
}

/// A schema that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadSchema {
    #[error("the schema is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("the schema must describe an object: `\"type\": \"object\"`")]
    NotAnObject,
    #[error("the schema is not a JSON Schema: {0}")]
    Invalid(String),
}

impl Schema {
    pub(super) fn read(text: &[u8]) -> Result<Self, BadSchema> {
        let schema: Value = serde_json::from_slice(text)?;
        if schema["type"] != "object" {
            return Err(BadSchema::NotAnObject);
        }
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| BadSchema::Invalid(error.to_string()))?;
        Ok(Schema { schema, validator })
    }

    /// The tool as it is offered to the model.
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": TOOL,
            "description": "Hands in the final result. Call it once, when all work is done.",
            "input_schema": self.schema,
        })
    }

    /// Whether the output fits, or everything that is wrong with it.
    pub(super) fn check(&self, output: &Value) -> Result<(), String> {
        let problems: Vec<String> = self
            .validator
            .iter_errors(output)
            .take(MOST)
            .map(|error| match error.instance_path().as_str() {
                "" => shortened(&error.to_string()),
                place => format!("{place}: {}", shortened(&error.to_string())),
            })
            .collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(format!("Output does not match required schema: {}", problems.join("; ")))
    }
}

/// A problem quotes what it is about, which can be long.
fn shortened(problem: &str) -> String {
    match problem.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &problem[..end]),
        None => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_checked_and_every_problem_is_named() {
        let schema = Schema::read(
            br#"{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer","minimum":1}},"required":["name"],"additionalProperties":false}"#,
        )
        .unwrap();
        assert_eq!(schema.check(&json!({"name": "x", "count": 2})), Ok(()));
        let why = schema.check(&json!({"count": 0, "more": 1})).unwrap_err();
        for part in ["Output does not match required schema: ", "/count: 0", "\"name\"", "more"] {
            assert!(why.contains(part), "{why}");
        }
        let long =
            schema.check(&json!({"name": "x".repeat(100_000), "count": "y".repeat(100_000)}));
        assert!(long.unwrap_err().len() < 2_000);
    }

    #[test]
    fn schemas_that_cannot_be_used_are_refused() {
        for bad in [
            "",
            "{",
            "{}",
            "true",
            r#"{"type":"array"}"#,
            r#"{"type":"object","properties":5}"#,
            r#"{"type":"object","$ref":"http://example.com/schema"}"#,
            r#"{"type":"object","$ref":"file:///etc/passwd"}"#,
        ] {
            assert!(Schema::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
