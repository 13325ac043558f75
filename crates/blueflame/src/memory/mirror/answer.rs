//! What `bd` says, in any of the shapes in which it says it.

use serde::Deserialize;
use serde_json::Value;

use super::super::bead::or_absent;

/// An issue, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Row {
    pub id: String,
    #[serde(default, deserialize_with = "or_absent")]
    pub title: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "or_absent")]
    pub status: String,
    #[serde(default)]
    pub labels: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_absent")]
    pub external_ref: String,
}

impl Row {
    pub fn is_closed(&self) -> bool {
        self.status == "closed" || self.is_deleted()
    }

    pub fn is_deleted(&self) -> bool {
        self.status == "tombstone"
    }
}

/// The JSON in what a program printed: as it is, or in an envelope. Warnings
/// before it are passed over.
pub fn data(stdout: &str) -> Result<Value, String> {
    let is_warning = |line: &&str| line.trim_start().to_lowercase().starts_with("warning:");
    let lines: Vec<&str> = stdout.lines().filter(|line| !is_warning(line)).collect();
    let text = lines.join("\n");
    if text.trim().is_empty() {
        return Err("it printed nothing".to_owned());
    }
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| format!("it printed what is not JSON ({error}): {}", shown(&text)))?;
    match value {
        Value::Object(mut object) if object.contains_key("schema_version") => {
            let inner = object.remove("data").or_else(|| object.remove("items"));
            Ok(inner.unwrap_or(Value::Object(object)))
        }
        value => Ok(value),
    }
}

/// What went wrong, if a program says so in JSON: on one stream or the other, as
/// a text or as an object.
pub fn complaint(printed: &str) -> Option<String> {
    let value: Value = serde_json::from_str(printed.trim()).ok()?;
    let value = value.get("data").cloned().unwrap_or(value);
    let error = value.get("error")?;
    let text = error.as_str().or_else(|| error.get("message")?.as_str());
    let text = text.map_or_else(|| error.to_string(), str::to_owned);
    let hint = value.get("hint").or_else(|| error.get("hint")).and_then(Value::as_str);
    Some(match hint {
        Some(hint) => format!("{text} ({hint})"),
        None => text,
    })
}

/// Issues: one, or a list of them.
pub fn rows(value: Value) -> Result<Vec<Row>, String> {
    let value = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(_) => Value::Array(vec![value]),
        value => value,
    };
    serde_json::from_value(value).map_err(|error| format!("it printed no issues: {error}"))
}

/// The start of a text, for a message.
pub fn shown(text: &str) -> String {
    let line = blueflame_core::memory::wording::line(text, 200);
    crate::narrate::plain(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_understood_in_all_its_shapes() {
        let row = r#"{"id":"x-1","title":"t","status":"open","external_ref":"k"}"#;
        for text in [
            row.to_owned(),
            format!("[{row}]"),
            format!("warning: old database\n[{row}]\n"),
            format!(r#"{{"schema_version":1,"data":[{row}]}}"#),
            format!(r#"{{"schema_version":1,"data":{row}}}"#),
            format!(r#"{{"schema_version":1,"items":[{row}]}}"#),
            row.replace("\"id\"", "\"schema_version\":1,\"id\""),
        ] {
            let rows = rows(data(&text).unwrap()).unwrap();
            assert_eq!(rows.len(), 1, "{text}");
            assert_eq!((rows[0].id.as_str(), rows[0].is_closed()), ("x-1", false));
        }
        // Issues of others have nothing there, and do not hide ours.
        let mixed = format!(r#"[{{"id":"x-0","title":null,"external_ref":null}},{row}]"#);
        let rows_of = |text: &str| rows(data(text).unwrap()).unwrap();
        let refs: Vec<String> = rows_of(&mixed).into_iter().map(|it| it.external_ref).collect();
        assert_eq!(refs, ["", "k"]);
        assert_eq!(rows_of("null"), []);
        assert!(data("").unwrap_err().contains("nothing"));
        assert!(data("usage: bd").unwrap_err().contains("not JSON"));
        assert!(rows(data("[1]").unwrap()).is_err());
    }

    #[test]
    fn a_complaint_is_found_wherever_it_is() {
        for (text, said) in [
            (r#"{"error":"no database","hint":"bd init"}"#, Some("no database (bd init)")),
            (r#"{"error":{"code":"X","message":"locked"}}"#, Some("locked")),
            (r#"{"schema_version":1,"data":{"error":"busy"}}"#, Some("busy")),
            (r#"{"error":7}"#, Some("7")),
            ("Error: no", None),
            ("[]", None),
        ] {
            assert_eq!(complaint(text).as_deref(), said, "{text}");
        }
    }
}
