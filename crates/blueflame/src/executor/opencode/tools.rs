//! The tools of opencode, in the words that the policy has for them.

use std::path::Path;

use blueflame_gateway::calls::Made;
use serde_json::{Map, Value, json};

use super::super::hooked::{Told, text};
use super::super::{Call, Order, patch};

/// The tools that a model is offered: opencode's names, by what the order calls
/// them. Changing files is one permission there.
const OFFERED: [(&str, &[&str]); 6] = [
    ("bash", &["Bash"]),
    ("read", &["Read"]),
    ("edit", &["Write", "Edit"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("list", &["Read"]),
];

/// What opencode is told that it may do by itself. Nothing is left for it to ask a
/// person: it would take the silence for a no and stop as if all were done.
pub fn permissions(order: &Order) -> Value {
    let ordered = |names: &[&str]| order.tools.iter().any(|tool| names.contains(&tool.as_str()));
    // The last that fits counts, so what is denied comes first.
    let mut all = Map::from_iter([("*".to_owned(), "deny".into())]);
    for (name, names) in OFFERED {
        if ordered(names) {
            all.insert(name.to_owned(), "allow".into());
        }
    }
    if !order.skills.is_empty() {
        // It has some of its own, and does not speak of those that are denied.
        let mut skills = Map::from_iter([("*".to_owned(), "deny".into())]);
        let given = order.skills.iter().map(|skill| (skill.name.to_string(), "allow".into()));
        skills.extend(given);
        all.insert("skill".to_owned(), Value::Object(skills));
    }
    // Where a call may reach is for the policy to say, and how often it may be
    // made for the limits of the run.
    for name in ["external_directory", "doom_loop"] {
        all.insert(name.to_owned(), "allow".into());
    }
    Value::Object(all)
}

/// Whether a model could call this tool.
pub fn is_known(tool: &str) -> bool {
    let tool = tool.to_ascii_lowercase();
    ["write", "apply_patch", "skill"].contains(&tool.as_str())
        || OFFERED.iter().any(|(name, _)| *name == tool)
}

/// The calls that the policy is asked about.
pub fn wanted(made: &Made, hook: Told<'_>) -> Result<Vec<Call>, String> {
    let Told { tool, input, cwd } = hook;
    // Models that write a name with capitals are understood by opencode.
    if !made.tool.eq_ignore_ascii_case(tool) || !same(&made.input, input) {
        return Err("the hook and the model do not name the same call".to_owned());
    }
    let empty = Map::new();
    let given = input.as_object().unwrap_or(&empty);
    let path = [("filePath", "file_path")];
    let one = |name: &str, renamed: &[(&str, &str)], cwd: &str| {
        let input = renamed_keys(given, renamed);
        Ok(vec![Call { tool: name.to_owned(), input, cwd: cwd.to_owned() }])
    };
    match tool {
        "bash" => {
            let place = match text(input, "/workdir").filter(|place| !place.is_empty()) {
                Some(place) if place.starts_with('~') => {
                    return Err(format!("`{place}` is no directory to run a command in."));
                }
                Some(place) => Path::new(cwd).join(place).to_string_lossy().into_owned(),
                None if given.get("workdir").is_some_and(|place| !place.is_string()) => {
                    return Err("`workdir` is not text. Leave it out.".to_owned());
                }
                None => cwd.to_owned(),
            };
            one("Bash", &[("workdir", "")], &place)
        }
        "read" => one("Read", &path, cwd),
        "list" if given.contains_key("path") => one("Read", &[("path", "file_path")], cwd),
        "list" => {
            let input = json!({"file_path": cwd});
            Ok(vec![Call { tool: "Read".to_owned(), input, cwd: cwd.to_owned() }])
        }
        "write" => one("Write", &path, cwd),
        "edit" => {
            let texts = [("oldString", "old_string"), ("newString", "new_string")];
            one("Edit", &[path[0], texts[0], texts[1]], cwd)
        }
        "apply_patch" => patch::calls(text(input, "/patchText").unwrap_or_default(), cwd),
        "glob" => one("Glob", &[], cwd),
        "grep" => one("Grep", &[("include", "glob")], cwd),
        "skill" => one("Skill", &[("name", "skill")], cwd),
        // The policy says what it thinks of others.
        "webfetch" => one("WebFetch", &[], cwd),
        "websearch" => one("WebSearch", &[], cwd),
        "task" => one("Task", &[], cwd),
        "todowrite" => one("TodoWrite", &[], cwd),
        other => one(other, &[], cwd),
    }
}

/// The same members by other names; those without a new name are left out.
fn renamed_keys(given: &Map<String, Value>, renamed: &[(&str, &str)]) -> Value {
    let name = |key: &str| match renamed.iter().find(|(old, _)| *old == key) {
        Some((_, "")) => None,
        Some((_, new)) => Some((*new).to_owned()),
        None => Some(key.to_owned()),
    };
    let members = given.iter().filter_map(|(key, value)| Some((name(key)?, value.clone())));
    Value::Object(members.collect())
}

/// Whether two values are the same to a program that has one kind of number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let known = |(key, value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(known)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use blueflame_core::money::Budget;

    use super::*;

    fn asked(tool: &str, input: &Value) -> Result<Vec<Call>, String> {
        let made = Made { tool: tool.to_owned(), input: input.clone() };
        wanted(&made, Told { tool, input, cwd: "/w" })
    }

    #[test]
    fn every_tool_has_a_name_that_the_policy_knows() {
        for (tool, input, name, expected, cwd) in [
            ("bash", json!({"command": "ls"}), "Bash", json!({"command": "ls"}), "/w"),
            (
                "bash",
                json!({"command": "ls", "timeout": 5, "workdir": "src"}),
                "Bash",
                json!({"command": "ls", "timeout": 5}),
                "/w/src",
            ),
            (
                "bash",
                json!({"command": "ls", "workdir": "/etc", "pty": true}),
                "Bash",
                json!({"command": "ls", "pty": true}),
                "/etc",
            ),
            ("read", json!({"filePath": "a"}), "Read", json!({"file_path": "a"}), "/w"),
            ("list", json!({}), "Read", json!({"file_path": "/w"}), "/w"),
            ("list", json!({"path": "src"}), "Read", json!({"file_path": "src"}), "/w"),
            (
                "write",
                json!({"filePath": "a", "content": "x"}),
                "Write",
                json!({"file_path": "a", "content": "x"}),
                "/w",
            ),
            (
                "edit",
                json!({"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": true}),
                "Edit",
                json!({"file_path": "a", "old_string": "x", "new_string": "y", "replaceAll": true}),
                "/w",
            ),
            ("glob", json!({"pattern": "*"}), "Glob", json!({"pattern": "*"}), "/w"),
            (
                "grep",
                json!({"pattern": "x", "include": "*.rs", "path": "src"}),
                "Grep",
                json!({"pattern": "x", "glob": "*.rs", "path": "src"}),
                "/w",
            ),
            ("webfetch", json!({"url": "u"}), "WebFetch", json!({"url": "u"}), "/w"),
            ("task", json!({"prompt": "p"}), "Task", json!({"prompt": "p"}), "/w"),
            ("frob", json!({}), "frob", json!({}), "/w"),
        ] {
            let call = Call { tool: name.to_owned(), input: expected, cwd: cwd.to_owned() };
            assert_eq!(asked(tool, &input), Ok(vec![call]), "{tool} {input}");
        }
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch";
        let calls = asked("apply_patch", &json!({"patchText": patch})).unwrap();
        let names: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!(names, ["Write", "Edit"]);
    }

    #[test]
    fn what_cannot_be_judged_is_said() {
        for (tool, input) in [
            ("bash", json!({"command": "ls", "workdir": "~/x"})),
            ("bash", json!({"command": "ls", "workdir": 7})),
            ("apply_patch", json!({"patchText": "nothing"})),
            ("apply_patch", json!({})),
        ] {
            assert!(asked(tool, &input).is_err(), "{tool} {input}");
        }
        let made = |tool: &str, input| Made { tool: tool.to_owned(), input };
        let input = json!({"command": "ls", "timeout": 5});
        let hook = Told { tool: "bash", input: &input, cwd: "/w" };
        let alike = made("Bash", json!({"command": "ls", "timeout": 5.0}));
        assert!(wanted(&alike, hook).is_ok());
        for other in [
            made("read", input.clone()),
            made("bash", json!({"command": "rm", "timeout": 5})),
            made("bash", json!({"command": "ls"})),
            made("bash", json!("{broken")),
        ] {
            assert!(wanted(&other, hook).is_err(), "{other:?}");
        }
    }

    #[test]
    fn nothing_is_permitted_but_what_was_ordered_and_nobody_is_asked() {
        let mut order = Order {
            model: "m".into(),
            system: String::new(),
            prompt: String::new(),
            tools: ["Read", "Bash"].map(Into::into).into(),
            output_schema: None,
            max_turns: None,
            budget: Budget::Unlimited,
            may_ask: false,
            skills: Vec::new(),
        };
        let expected = r#"{"*":"deny","bash":"allow","read":"allow","list":"allow","external_directory":"allow","doom_loop":"allow"}"#;
        assert_eq!(permissions(&order).to_string(), expected);
        order.tools.push("Edit".into());
        assert_eq!(permissions(&order)["edit"], "allow");
    }
}
