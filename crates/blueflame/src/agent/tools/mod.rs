//! The tools: what the model may ask for, with claude's names and inputs.
//!
//! A call is prepared first (its input read, its paths made absolute), then
//! judged elsewhere, and only then run: what was judged is what runs. Whether
//! a path may be touched is not decided here.

mod bash;
mod edit;
mod files;
mod glob;
mod grep;
mod paths;
mod read;
mod walk;
mod write;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Read,
    Write,
    Edit,
    Glob,
    Grep,
    Bash,
}

/// A call whose input fits its tool.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The input as it is judged and run.
    pub(super) input: Value,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Read(read::Input),
    Write(write::Input),
    Edit(edit::Input),
    Glob(glob::Input),
    Grep(grep::Input),
    Bash(bash::Input),
}

/// What the model is told: a result, or what went wrong.
pub(super) type Told = Result<String, String>;

impl Tool {
    pub(super) const ALL: [Tool; 6] =
        [Tool::Read, Tool::Write, Tool::Edit, Tool::Glob, Tool::Grep, Tool::Bash];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Read => "Read",
            Tool::Write => "Write",
            Tool::Edit => "Edit",
            Tool::Glob => "Glob",
            Tool::Grep => "Grep",
            Tool::Bash => "Bash",
        }
    }

    pub(super) fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The tool as it is offered to the model.
    pub(super) fn definition(self) -> Value {
        let (description, properties, required) = match self {
            Tool::Read => read::definition(),
            Tool::Write => write::definition(),
            Tool::Edit => edit::definition(),
            Tool::Glob => glob::definition(),
            Tool::Grep => grep::definition(),
            Tool::Bash => bash::definition(),
        };
        json!({
            "name": self.name(),
            "description": description,
            "input_schema": {"type": "object", "properties": properties, "required": required},
        })
    }

    /// Reads the input of a call, or says what is wrong with it.
    pub(super) fn prepare(self, mut input: Value, cwd: &Path) -> Result<Prepared, String> {
        let path = match self {
            Tool::Read | Tool::Write | Tool::Edit => Some("file_path"),
            Tool::Glob | Tool::Grep => Some("path"),
            Tool::Bash => None,
        };
        if let Some(Value::String(path)) = path.and_then(|key| input.get_mut(key)) {
            *path = paths::absolute(cwd, path)?;
        }
        let action = match self {
            Tool::Read => Action::Read(self.parse(&input)?),
            Tool::Write => Action::Write(self.parse(&input)?),
            Tool::Edit => Action::Edit(self.parse(&input)?),
            Tool::Glob => Action::Glob(self.parse(&input)?),
            Tool::Grep => Action::Grep(self.parse(&input)?),
            Tool::Bash => Action::Bash(self.parse(&input)?),
        };
        Ok(Prepared { input, action })
    }

    fn parse<T: DeserializeOwned>(self, input: &Value) -> Result<T, String> {
        T::deserialize(input)
            .map_err(|error| format!("the input does not fit {}: {error}", self.name()))
    }
}

impl Prepared {
    /// Does what was asked for. Dropping the future stops it: a command is
    /// killed with all its children.
    pub(super) async fn run(self, cwd: &Path) -> Told {
        let cwd = cwd.to_owned();
        match self.action {
            Action::Bash(input) => bash::run(&input, &cwd).await,
            Action::Read(input) => apart(move || read::run(&input)).await,
            Action::Write(input) => apart(move || write::run(&input)).await,
            Action::Edit(input) => apart(move || edit::run(&input)).await,
            Action::Glob(input) => apart(move || glob::run(&input, &cwd)).await,
            Action::Grep(input) => apart(move || grep::run(&input, &cwd)).await,
        }
    }
}

/// Runs what may block on the disk on a thread of its own.
async fn apart(work: impl FnOnce() -> Told + Send + 'static) -> Told {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err("the tool failed; this is a bug in Blue Flame".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_offered_with_its_required_inputs() {
        for tool in Tool::ALL {
            let definition = tool.definition();
            let schema = &definition["input_schema"];
            assert_eq!(Tool::named(definition["name"].as_str().unwrap()), Some(tool));
            for required in schema["required"].as_array().unwrap() {
                let key = required.as_str().unwrap();
                assert!(schema["properties"][key].is_object(), "{tool:?} {key}");
                let error = tool.prepare(json!({}), Path::new("/w")).unwrap_err();
                assert!(
                    error.starts_with(&format!("the input does not fit {}", tool.name())),
                    "{error}"
                );
            }
            // Short texts: they are paid for with every request.
            assert!(definition.to_string().len() < 1_200, "{definition}");
        }
    }

    #[test]
    fn paths_are_absolute_in_what_is_judged_and_run() {
        let cwd = Path::new("/w/x");
        for (tool, input, key, expected) in [
            (Tool::Read, json!({"file_path": "a/../b"}), "file_path", "/w/x/b"),
            (Tool::Write, json!({"file_path": "../../../b", "content": ""}), "file_path", "/b"),
            (Tool::Grep, json!({"pattern": "x", "path": "./src"}), "path", "/w/x/src"),
            (Tool::Glob, json!({"pattern": "*", "path": "/etc"}), "path", "/etc"),
        ] {
            assert_eq!(tool.prepare(input, cwd).unwrap().input[key], expected, "{tool:?}");
        }
        let glob = Tool::Glob.prepare(json!({"pattern": "*"}), cwd).unwrap();
        assert_eq!(glob.input, json!({"pattern": "*"}));
        assert!(Tool::Read.prepare(json!({"file_path": ""}), cwd).is_err());
        assert!(Tool::Read.prepare(json!({"file_path": "a\0b"}), cwd).is_err());
        assert!(Tool::Read.prepare(json!({"file_path": 5}), cwd).is_err());
    }
}
