//! Skills: which are used, and what of their folder is touched.

use blueflame_core::ids::{Role, SkillName};
use blueflame_core::policy::{Policy, PolicyRules, SkillRule};
use serde_json::{Value, json};

use super::ground::{bash, judge, rules};

const FOLDER: &str = "/home/agent/attempt/skill-set/skills";

fn taught(yaml: &str, role: Role) -> Policy {
    let names = ["house-style", "test-driven-development"]
        .map(|it| SkillName::new(it).expect("a good name"));
    let skills = Some(SkillRule { folder: FOLDER.to_owned(), names: names.into() });
    Policy::new(PolicyRules { skills, ..rules(yaml, role) }).expect("good rules")
}

#[test]
fn only_skills_that_were_given_are_used() {
    for (input, expected) in [
        (json!({"skill": "house-style"}), "allow"),
        (json!({"skill": "blueflame:house-style", "args": "x"}), "allow"),
        (json!({"skill": "superpowers:test-driven-development"}), "allow"),
        (json!({"skill": "using-git-worktrees"}), "deny"),
        (json!({"skill": "blueflame:using-git-worktrees"}), "deny"),
        (json!({"skill": "other:house-style"}), "deny"),
        (json!({"skill": "House-Style"}), "deny"),
        (json!({"skill": "../house-style"}), "deny"),
        (json!({"skill": "house-style "}), "deny"),
        (json!({"skill": ["house-style"]}), "deny"),
        (json!({"name": "house-style"}), "deny"),
        (Value::Null, "deny"),
    ] {
        for role in Role::ALL {
            let verdict = judge(&taught("", role), "Skill", input.clone());
            let said = if verdict.is_allowed() { "allow" } else { "deny" };
            assert_eq!(said, expected, "{role} {input}: {verdict:?}");
        }
    }
    let denied = judge(&taught("", Role::Worker), "Skill", json!({"skill": "other"}));
    assert_eq!(denied.rule, "tools.skill");
    assert!(denied.details.contains("`house-style`, `test-driven-development`"), "{denied:?}");
    assert_eq!(denied.target, "other");
}

#[test]
fn without_skills_there_is_no_tool_for_them_and_a_blocked_one_stays_blocked() {
    let input = || json!({"skill": "house-style"});
    let none = Policy::new(rules("", Role::Worker)).unwrap();
    assert_eq!(judge(&none, "Skill", input()).rule, "tools.not-allowed");
    // Whoever allows the tool has not given a skill yet.
    let listed = "permissions: {allowed_tools: [Read, Skill]}";
    let none = Policy::new(rules(listed, Role::Worker)).unwrap();
    assert_eq!(judge(&none, "Skill", input()).rule, "tools.skill");
    let blocked = "permissions: {blocked_tools: [Skill]}";
    assert_eq!(judge(&taught(blocked, Role::Worker), "Skill", input()).rule, "tools.blocked");
}

#[test]
fn their_folder_is_read_and_never_written() {
    let policy = taught("", Role::Worker);
    let file = format!("{FOLDER}/house-style/SKILL.md");
    for (tool, input, expected) in [
        ("Read", json!({"file_path": file}), "paths.read"),
        ("Glob", json!({"pattern": "**/*.md", "path": FOLDER}), "paths.read"),
        ("Grep", json!({"pattern": "x", "path": FOLDER}), "paths.read"),
        ("Write", json!({"file_path": file, "content": "x"}), "paths.outside"),
        ("Edit", json!({"file_path": file, "old_string": "a", "new_string": "b"}), "paths.outside"),
        ("Read", json!({"file_path": format!("{FOLDER}/../../spec.json")}), "paths.outside"),
        ("Read", json!({"file_path": format!("{FOLDER}-other/x")}), "paths.outside"),
    ] {
        let verdict = judge(&policy, tool, input.clone());
        assert_eq!(verdict.rule, expected, "{tool} {input}: {verdict:?}");
    }
    for (command, expected) in [
        (format!("cat {file}"), "commands.allowed"),
        (format!("grep -n x {file} | head"), "commands.allowed"),
        (format!("echo x > {file}"), "paths.outside"),
        (format!("{FOLDER}/house-style/run.sh"), "commands.not-allowed"),
        (format!("cat {FOLDER}/../../spec.json"), "paths.outside"),
    ] {
        let verdict = bash(&policy, &command);
        assert_eq!(verdict.rule, expected, "{command}: {verdict:?}");
    }
    // Nobody else sees it.
    let none = Policy::new(rules("", Role::Worker)).unwrap();
    assert_eq!(judge(&none, "Read", json!({"file_path": file})).rule, "paths.outside");
}
