//! The JSON Schema of the configuration, for editors and other programs.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::file::ConfigFile;

/// The schema as JSON, made from the same types as the reader.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ConfigFile>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "Blue Flame configuration (blueflame.yaml)".into());
    }
    schema
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
