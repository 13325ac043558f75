//! The JSON Schema of the configuration, for editors and other programs.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::file::ConfigFile;

const TITLE: &str = "Blue Flame configuration (blueflame.yaml)";

/// The schema as JSON, made from the same types as the reader.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    titled(generator.into_root_schema_for::<ConfigFile>(), TITLE)
}

/// A schema that opens with what it is and which draft it follows.
pub(crate) fn titled(schema: schemars::Schema, title: &str) -> Value {
    let mut body = match schema.to_value() {
        Value::Object(body) => body,
        other => return other,
    };
    let mut whole = serde_json::Map::new();
    whole.extend(body.shift_remove_entry("$schema"));
    whole.insert("title".into(), title.into());
    body.shift_remove("title");
    whole.extend(body);
    whole.into()
}

/// Every key that a file can have, as dotted paths: sections first, then what
/// is in them. `*` stands for a name that the person chooses.
pub fn key_paths() -> Vec<String> {
    let schema = schema();
    let mut paths = Vec::new();
    collect(&schema, &schema, "", &mut paths);
    paths
}

fn collect(root: &Value, schema: &Value, path: &str, paths: &mut Vec<String>) {
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(name) => root.pointer(name.trim_start_matches('#')).unwrap_or(schema),
        None => schema,
    };
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (key, property) in properties {
            paths.push(below(key));
            collect(root, property, &below(key), paths);
        }
    }
    if let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) {
        collect(root, others, &below("*"), paths);
    }
}
