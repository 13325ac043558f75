//! Plans as a whole: what is accepted, refused and in which order it runs.

use super::*;
use crate::config;
use crate::yaml::Severity;

fn config() -> Config {
    config::read(b"schema_version: 2\nvalidation: {commit_format: {pattern: ''}}\n").config.unwrap()
}

fn read(text: &str) -> Result<(Plan, Vec<Problem>), Vec<Problem>> {
    Plan::read(text.as_bytes(), &PlanContext::of(&config()))
}

/// Each problem or warning as one line.
fn problems(text: &str) -> Vec<String> {
    let all = match read(text) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    let line = |problem: Problem| match problem.severity {
        Severity::Error => problem.to_string(),
        Severity::Warning => format!("warning: {problem}"),
    };
    all.into_iter().map(line).collect()
}

/// A task in one line; `more` is added as it is.
fn task(id: &str, lock: &str, more: &str) -> String {
    format!("- {{id: {id}, title: t, description: d, priority: 1, file_locks: [{lock}]{more}}}\n")
}

fn plan(tasks: &[String]) -> String {
    format!("tasks:\n{}", tasks.concat())
}

#[test]
fn yaml_and_json_give_the_same_plan() {
    let yaml = "tasks:\n  - id: task-001\n    title: Add 😀\n    description: |\n      one\n      two\n    priority: 2\n    cohesion_group: auth\n    dependencies: []\n    file_locks: [src/auth/]\n    risk: high\n    acceptance: [cargo test]\n    executor: codex\n    model: opus\n";
    let json = r#"{"tasks": [{"id": "task-001", "title": "Add \ud83d\ude00", "description": "one\ntwo\n",
        "priority": 2, "cohesion_group": "auth", "dependencies": [], "file_locks": ["src/auth/"],
        "risk": "high", "acceptance": ["cargo test"], "executor": "codex", "model": "opus"}]}"#;
    let (plan, warnings) = read(yaml).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(read(json).unwrap().0, plan);
    assert_eq!(plan.tasks[0].file_locks[0].as_str(), "src/auth");
    assert_eq!(plan.tasks[0].risk, Some(Risk::High));
}

#[test]
fn a_task_list_that_blueflame_wrote_can_be_read_as_a_plan() {
    let text = "schema_version: 1\nsession_id: ses-20260206-143022\nwave_cycle: 1\ntasks:\n  - id: a\n    title: t\n    description: d\n    status: pending\n    agent_id: null\n    priority: 1\n    file_locks: [src/]\n    worktree: null\n    branch: null\n    retry_count: 0\n    result: {status: null, notes: ''}\n    history: [{attempt: 1}]\n";
    let (plan, _) = read(text).unwrap();
    assert_eq!(plan.tasks[0].group.as_str(), "a");
}

/// Seed section 17, row 9.
#[test]
fn circular_dependencies_are_refused_and_shown() {
    let text = plan(&[
        task("a", "src/a", ", dependencies: [b]"),
        task("b", "src/b", ", dependencies: [c]"),
        task("c", "src/c", ", dependencies: [a]"),
        task("x", "src/x", ", dependencies: [y]"),
        task("y", "src/y", ", dependencies: [x]"),
        task("free", "src/free", ""),
    ]);
    assert_eq!(
        problems(&text),
        [
            "tasks depend on each other in a circle: a -> b -> c -> a",
            "tasks depend on each other in a circle: x -> y -> x",
        ]
    );
    assert_eq!(read(&text).unwrap_err()[0].related.len(), 2);
}

/// Seed section 17, row 41.
#[test]
fn an_empty_plan_is_a_plan() {
    for text in ["tasks: []", "{\"tasks\": []}"] {
        let (plan, warnings) = read(text).unwrap();
        assert_eq!((plan.tasks.len(), warnings.len()), (0, 0));
        assert_eq!(plan.order(), [0; 0]);
    }
    assert_eq!(problems(""), ["the plan has no `tasks`"]);
    assert_eq!(problems("tasks:\n"), ["the plan has no `tasks`"]);
}

/// Seed section 17, row 42.
#[test]
fn a_malformed_task_list_is_refused_with_every_problem() {
    assert_eq!(problems("tasks: [}"), ["a value is missing here"]);
    assert_eq!(
        problems("tasks:\n- id: a\n  titel: x\n  priority: high\n- 7\n"),
        [
            "`tasks[0]` (task `a`) has no `title`",
            "`tasks[0]` (task `a`) has no `description`",
            "`tasks[0]` (task `a`) has no `file_locks`",
            "`tasks[0].titel` is not a known key",
            "`tasks[0].priority` must be a whole number, got `high`",
            "`tasks[1]` must be a mapping of `key: value` lines, got the number `7`",
        ]
    );
}

#[test]
fn one_problem_each() {
    let two = |first: String, second: String| plan(&[first, second]);
    let alone = |more: &str| plan(&[task("a", "src/a", more)]);
    for (text, problem) in [
        (
            two(task("a", "src/a", ""), task("a", "src/b", "")),
            "`tasks[1].id` is used by another task, got `a`",
        ),
        (
            two(task("a", "src/a", ""), task("A", "src/b", "")),
            "`tasks[1].id` differs from `a` only in upper and lower case, got `A`",
        ),
        (
            alone(", dependencies: [a]"),
            "`tasks[0].dependencies[0]` makes task `a` depend on itself",
        ),
        (
            alone(", dependencies: [b]"),
            "`tasks[0].dependencies[0]` of task `a` is not a known task, got `b`",
        ),
        (
            alone(", executor: claud"),
            "`tasks[0].executor` of task `a` is not a known executor, got `claud`",
        ),
        (alone(", risk: medium"), "`tasks[0].risk` must be `low`, `mid` or `high`, got `medium`"),
        (
            alone(", cohesion_group: a/b"),
            "`tasks[0].cohesion_group` of task `a` is not a good name, got `a/b`",
        ),
        (alone(", model: '-x'"), "`tasks[0].model` of task `a` is not a model name, got `-x`"),
        (alone(", acceptance: ['']"), "`tasks[0].acceptance[0]` of task `a` is empty"),
        (
            plan(&[task("a b", "src/a", "")]),
            "`tasks[0].id` of task `a b` is not a good name, got `a b`",
        ),
        (
            plan(&[task("a", "", "")]),
            "`tasks[0].file_locks` of task `a` is empty: it could change nothing",
        ),
        (
            plan(&[task("a", "../x", "")]),
            "`tasks[0].file_locks[0]` of task `a` is not a path to lock: it climbs out with `..`, got `../x`",
        ),
        (
            plan(&[task("a", "'src/*'", "")]),
            "`tasks[0].file_locks[0]` of task `a` is not a path to lock: it contains `*`, `?` or `[`; a lock is a file or directory, not a pattern, got `src/*`",
        ),
        (
            plan(&[task("a", "lib", "")]),
            "`tasks[0].file_locks[0]` of task `a` is outside of the allowed paths, got `lib`",
        ),
        (
            plan(&[task("a", "src/.env", "")]),
            "`tasks[0].file_locks[0]` of task `a` can never be written: `.env*` is blocked, got `src/.env`",
        ),
        (
            plan(&[task("a", "src/a, src/a/b", "")]),
            "warning: `tasks[0].file_locks[1]` of task `a` is already covered by `src/a`, got `src/a/b`",
        ),
        (
            two(task("a", "src/x", ""), task("b", "src/x/y", "")),
            "warning: tasks `a` and `b` share a lock and will run one after the other",
        ),
        (
            two(
                task("a", "src/a", ", cohesion_group: g"),
                task("b", "src/b", ", cohesion_group: h, dependencies: [a]"),
            ) + &task("c", "src/c", ", cohesion_group: g, dependencies: [b]"),
            "groups need each other in a circle: g -> h -> g",
        ),
    ] {
        assert_eq!(problems(&text), [problem], "{text}");
    }
}

#[test]
fn locks_shared_along_a_dependency_are_no_news() {
    let text = plan(&[
        task("a", "src", ""),
        task("b", "src/x", ", dependencies: [a]"),
        task("c", "src/x", ", dependencies: [b]"),
        task("d", "src-old", ""),
    ]);
    let text = text.replace("src-old", "docs");
    assert_eq!(problems(&text), [""; 0]);
}

#[test]
fn ids_that_no_commit_message_could_carry_are_warned_about() {
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let text =
        plan(&[task("task-001", "src/a", ""), task("auth", "src/b", ""), task("x", "src/c", "")]);
    let (_, warnings) = Plan::read(text.as_bytes(), &PlanContext::of(&config)).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("got `auth` (and 1 other)"), "{}", warnings[0]);
}

#[test]
fn too_many_tasks_are_refused_and_many_are_quick() {
    let many = |count: usize| {
        let tasks: Vec<String> = (0..count)
            .map(|n| {
                let need =
                    if n == 0 { String::new() } else { format!(", dependencies: [t{}]", n - 1) };
                task(&format!("t{n}"), "src/same", &need)
            })
            .collect();
        plan(&tasks)
    };
    assert_eq!(problems(&many(10_001)), ["`tasks` has more than 10000 tasks, got `10001`"]);
    let (plan, warnings) = read(&many(10_000)).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(plan.order().len(), 10_000);
}

#[test]
fn tasks_run_by_dependency_then_priority_then_place() {
    let line = |id: &str, priority: u32, group: &str, needs: &str| {
        format!(
            "- {{id: {id}, title: t, description: d, priority: {priority}, cohesion_group: {group}, \
             dependencies: [{needs}], file_locks: [src/{id}]}}\n"
        )
    };
    let text = plan(&[
        line("late", 9, "z", ""),
        line("first", 1, "y", ""),
        line("needs-late", 1, "x", "late"),
        line("also-first", 1, "y", ""),
    ]);
    let (plan, _) = read(&text).unwrap();
    let names: Vec<&str> = plan.order().iter().map(|&at| plan.tasks[at].id.as_str()).collect();
    assert_eq!(names, ["first", "also-first", "late", "needs-late"]);
    let groups: Vec<String> = plan.group_order().iter().map(ToString::to_string).collect();
    assert_eq!(groups, ["y", "z", "x"]);
}

#[test]
fn the_planners_schema_has_what_a_planner_writes_and_nothing_else() {
    let schema = schema();
    let task = schema.pointer("/$defs/TaskFile").unwrap();
    let keys: Vec<&String> = task["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "id",
            "title",
            "description",
            "priority",
            "cohesion_group",
            "dependencies",
            "file_locks",
            "acceptance",
            "risk",
            "estimate_minutes",
            "model",
            "executor"
        ]
    );
    assert_eq!(
        task["required"],
        serde_json::json!(["id", "title", "description", "priority", "file_locks"])
    );
    assert_eq!(schema["required"], serde_json::json!(["tasks"]));
    assert_eq!(task["additionalProperties"], false);
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1);
}

#[test]
fn a_later_plan_builds_on_landed_tasks_but_does_not_take_their_ids() {
    let config = config();
    let landed = [TaskId::new("task-001").unwrap()].into_iter().collect();
    let context = PlanContext::of(&config).after(landed);
    let builds_on = plan(&[task("task-002", "src/a", ", dependencies: [task-001]")]);
    let (read, _) = Plan::read(builds_on.as_bytes(), &context).unwrap();
    assert_eq!(read.tasks[0].dependencies[0].as_str(), "task-001");
    assert_eq!(problems(&builds_on).len(), 1, "it is unknown to a first plan");
    let takes = plan(&[task("task-001", "src/a", "")]);
    let refused = Plan::read(takes.as_bytes(), &context).unwrap_err();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].to_string().contains("belongs to a task that has landed"), "{}", refused[0]);
}
