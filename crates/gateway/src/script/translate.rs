//! One script for all agents: it names tools as claude does, and where a request
//! offers codex's or opencode's tools in their place, the same is said with those.

use serde_json::{Value, json};

/// The call as the tools that are offered have it. What is offered under its own
/// name, or has no counterpart, stays as it is.
pub(super) fn call(offered: &[String], tool: &str, input: &Value) -> (String, Value) {
    let offers = |name: &str| offered.iter().any(|offered| offered == name);
    let same = || (tool.to_owned(), input.clone());
    if offers(tool) {
        return same();
    }
    if !offers("exec_command") {
        let small = tool.to_ascii_lowercase();
        return if offers(&small) { (small, renamed(input)) } else { same() };
    }
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let run = |command: &str| ("exec_command".to_owned(), json!({"cmd": command}));
    let change = |marks: &str| {
        let change = format!("*** Begin Patch\n{marks}*** End Patch");
        ("apply_patch".to_owned(), Value::String(change))
    };
    match (tool, text("command"), text("file_path"), text("content")) {
        ("Bash", Some(command), _, _) => run(command),
        ("Read", _, Some(path), _) => run(&format!("cat '{path}'")),
        ("Write", _, Some(path), Some(content)) if offers("apply_patch") => {
            change(&format!("*** Add File: {path}\n{}", marked('+', content)))
        }
        ("Edit", _, Some(path), _) if offers("apply_patch") => {
            let [old, new] = ["old_string", "new_string"].map(|key| text(key).unwrap_or_default());
            let hunk = marked('-', old) + &marked('+', new);
            change(&format!("*** Update File: {path}\n@@\n{hunk}"))
        }
        _ => same(),
    }
}

/// The input of a tool of opencode's: the same, but for how some names are written.
fn renamed(input: &Value) -> Value {
    let Some(members) = input.as_object() else { return input.clone() };
    let name = |name: &str| {
        match name {
            "file_path" => "filePath",
            "old_string" => "oldString",
            "new_string" => "newString",
            "glob" => "include",
            other => other,
        }
        .to_owned()
    };
    members.iter().map(|(key, value)| (name(key), value.clone())).collect()
}

/// Every line with a mark before it.
fn marked(mark: char, text: &str) -> String {
    text.lines().flat_map(|line| [mark.to_string(), line.to_owned(), "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_named_as_they_are_offered() {
        let codex = ["exec_command", "apply_patch"].map(str::to_owned);
        let claude = ["Bash", "Write"].map(str::to_owned);
        let write = json!({"file_path": "a.txt", "content": "one\ntwo\n"});
        let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"});
        for (tool, input, name, expected) in [
            ("Bash", json!({"command": "ls"}), "exec_command", json!({"cmd": "ls"})),
            ("Read", json!({"file_path": "a"}), "exec_command", json!({"cmd": "cat 'a'"})),
            (
                "Write",
                write.clone(),
                "apply_patch",
                json!("*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch"),
            ),
            (
                "Edit",
                edit,
                "apply_patch",
                json!("*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch"),
            ),
            ("Glob", json!({"pattern": "*"}), "Glob", json!({"pattern": "*"})),
        ] {
            assert_eq!(call(&codex, tool, &input), (name.to_owned(), expected));
        }
        assert_eq!(call(&claude, "Write", &write), ("Write".to_owned(), write.clone()));
        let opencode = ["bash", "write"].map(str::to_owned);
        let written = json!({"filePath": "a.txt", "content": "one\ntwo\n"});
        assert_eq!(call(&opencode, "Write", &write), ("write".to_owned(), written));
        assert_eq!(call(&opencode, "Edit", &write), ("Edit".to_owned(), write));
    }
}
