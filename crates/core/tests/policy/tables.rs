//! Two long tables: what honest agents type all day, and what a hostile one might.
//!
//! `honest.jsonl` has a command line a row, and the kind of project it is from. It
//! is allowed, or, with `advice`, refused in words that say how to go on.
//! `hostile.jsonl` has command lines, tools with their input, and whole lines as a
//! hook gets them. None is allowed, with the default patterns and without them.

use blueflame_core::ids::Role;
use blueflame_core::policy::{Policy, PolicyRules, ToolCall, Verdict};
use serde_json::{Value, json};

use super::ground::{Entry, Fake, WORKSPACE, rules};

const HONEST: &str = include_str!("honest.jsonl");
const HOSTILE: &str = include_str!("hostile.jsonl");

/// The commands that people list for a kind of project.
const PROJECTS: &[(&str, &str)] = &[
    ("go", ""),
    ("rust", "cargo test, cargo build, cargo check, cargo clippy, cargo fmt, cargo run, git show"),
    (
        "python",
        "pytest, python -m pytest, python3 -m pytest, ruff check, ruff format, mypy, git show, \
         uv run pytest",
    ),
    (
        "node",
        "npm test, npm run, npx tsc, npx eslint, npx jest, npx vitest, npx prettier, \
         node --test, pnpm run, pnpm test, yarn test, yarn run",
    ),
    (
        "c",
        "make, cmake, ctest, gcc, clang-format, git rm, git mv, git restore, rm, mv, cp, mkdir, \
         touch",
    ),
];

fn policy(project: &str) -> Policy {
    let (_, commands) = PROJECTS.iter().find(|(name, _)| *name == project).expect("a project");
    let yaml = match *commands {
        "" => String::new(),
        commands => format!(
            "worktree: {{scratch: [target, build]}}\npermissions: {{bash_rules: \
             {{allowed_commands: [{commands}, git diff, git status, git log, git add, git \
             commit]}}}}"
        ),
    };
    Policy::new(rules(&yaml, Role::Worker)).expect("good rules")
}

/// A workspace with more traps in it.
fn ground() -> Fake {
    let mut ground = Fake::new();
    let mut put = |path: &str, entry: Entry| {
        ground.0.insert(format!("{WORKSPACE}/{path}"), entry);
    };
    for directory in [".github", ".github/workflows", "src/api", "cmd", "cmd/app", ".claude"] {
        put(directory, Entry::Directory);
    }
    for file in ["README.md", "src/server.key", "tests/test_a.py", "docs/a.md", "setup.py"] {
        put(file, Entry::File(1));
    }
    put("docs/twice2.go", Entry::File(2));
    put("src/gitlink", Entry::Link("../.git"));
    put("src/innocent.txt", Entry::Link("../.env"));
    put("src/self", Entry::Link("."));
    ground
}

fn rows(table: &str) -> impl Iterator<Item = Value> {
    let table = table.replace("{WT}", WORKSPACE);
    let rows: Vec<Value> =
        table.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    rows.into_iter()
}

fn judge(policy: &Policy, tool: &str, input: Value, ground: &Fake) -> Verdict {
    let call = ToolCall { tool: tool.to_owned(), input, cwd: WORKSPACE.to_owned() };
    policy.judge(&call, ground)
}

#[test]
fn honest_lines_are_allowed_or_refused_with_advice() {
    let ground = ground();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (project, _) in PROJECTS {
        let policy = policy(project);
        for row in rows(HONEST).filter(|row| row["project"] == *project) {
            count += 1;
            let verdict = judge(&policy, "Bash", json!({ "command": row["run"] }), &ground);
            let good = match row["advice"].as_str() {
                None => verdict.is_allowed(),
                Some(advice) => !verdict.is_allowed() && verdict.details.contains(advice),
            };
            if !good {
                wrong.push(format!("{row}: {} {}", verdict.rule, verdict.details));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(count, HONEST.lines().count(), "a row is of no project");
}

#[test]
fn hostile_calls_are_refused_with_a_reason() {
    let ground = ground();
    let with = rules("", Role::Worker);
    let without = PolicyRules { blocked_patterns: Vec::new(), ..with.clone() };
    let mut wrong = Vec::new();
    for rules in [with, without] {
        let policy = Policy::new(rules).expect("good rules");
        for row in rows(HOSTILE) {
            let call = match (row["run"].as_str(), row["tool"].as_str(), row["line"].as_str()) {
                (Some(run), _, _) => {
                    ("Bash".to_owned(), json!({ "command": run }), WORKSPACE.into())
                }
                (_, Some(tool), _) => (tool.to_owned(), row["input"].clone(), WORKSPACE.into()),
                (_, _, Some(line)) => match serde_json::from_str::<ToolCall>(line) {
                    Ok(call) => (call.tool, call.input, call.cwd),
                    // Whoever reads it denies it.
                    Err(_) => continue,
                },
                _ => panic!("{row}"),
            };
            let (tool, input, cwd) = call;
            let verdict = policy.judge(&ToolCall { tool, input, cwd }, &ground);
            if verdict.is_allowed() || !verdict.details.ends_with('.') {
                wrong.push(format!("{row}: {verdict:?}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}
