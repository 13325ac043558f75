//! The example file and the documentation keep up with the program.

use std::path::Path;

use blueflame_core::config::{self, ConfigFile};
use blueflame_core::plan::{self, Plan, PlanContext};

fn document(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_example_has_every_key_at_its_default() {
    let text = document("blueflame.example.yaml");
    let reading = config::read(text.as_bytes());
    assert_eq!(reading.problems, []);
    assert!(reading.config.is_some());

    let written: serde_json::Value = serde_json::to_value(reading.file.as_ref().unwrap()).unwrap();
    for path in config::key_paths() {
        let pointer = format!("/{}", path.replace('*', "my-agent").replace('.', "/"));
        assert!(written.pointer(&pointer).is_some(), "the example lacks {path}");
        let key = path.rsplit('.').next().unwrap();
        let line = text.lines().any(|line| line.trim_start().starts_with(&format!("{key}:")));
        assert!(line, "the example does not write {path}");
    }

    // These are stated as differing; everything else is the default.
    let mut file = reading.file.unwrap();
    file.executors = config::file::Executors::default();
    assert_eq!(file, ConfigFile::default());
}

#[test]
fn every_key_is_documented() {
    let text = document("docs/configuration.md");
    for path in config::key_paths() {
        assert!(text.contains(&format!("`{path}`")), "docs/configuration.md lacks `{path}`");
    }
}

#[test]
fn every_key_of_a_plan_is_documented_and_the_example_is_a_plan() {
    let text = document("docs/plans.md");
    let schema = plan::schema();
    let keys = schema.pointer("/$defs/TaskFile/properties").unwrap();
    for key in keys.as_object().unwrap().keys() {
        assert!(text.contains(&format!("| `{key}` |")), "docs/plans.md lacks `{key}`");
    }
    let example = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let (plan, warnings) = Plan::read(example.as_bytes(), &PlanContext::of(&config)).unwrap();
    assert_eq!((plan.tasks.len(), warnings), (2, Vec::new()));
}

/// Files that earlier programs accepted are accepted for ever, with the same
/// meaning; these samples are never changed.
#[test]
fn files_of_every_version_are_still_read() {
    for (sample, notes) in [("config_v1.yaml", 6), ("config_v2.yaml", 0)] {
        let text = document(&format!("crates/blueflame/tests/samples/{sample}"));
        let reading = config::read(text.as_bytes());
        assert_eq!(reading.problems, [], "{sample}");
        assert_eq!(reading.notes.len(), notes, "{sample}");
        assert_eq!(reading.file.unwrap(), ConfigFile::default(), "{sample}");
    }
}
