//! The session that is fought over: planning, work that is turned down once,
//! checks, a conflict with a merger, a changeset that is rejected once, and
//! publishing into a checkout in which the person has work of their own.

use std::collections::BTreeMap;

use crate::script::{Script, plan, task};
use crate::stage::{MANY, Stage};

const CONFIG: &str = r#"validation: {acceptance: ["test -e README.md"]}
merge: {verify: ["test -d src"]}
limits: {max_retries: 20}
"#;

pub const DECISIONS: &str = r#"plan: [approve]
changesets: {three: [{reject: "once more"}, approve], "*": approve}
validation_failed: [requeue]
session: [continue, continue, continue]
"#;

pub fn stage() -> Stage {
    let tasks = [
        task("task-001", "one", "src/a.txt"),
        task("task-002", "one", "src/shared.txt"),
        task("task-003", "two", "src/shared.txt"),
        task("task-004", "three", "src/d.txt"),
    ];
    let script = Script::new()
        .plans(&tasks)
        .turns_down("task-001", 1, "It is not good yet.")
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/shared.txt", "of one\n")])
        .works("task-003", &[("src/shared.txt", "of two\n")])
        .works("task-004", &[("src/d.txt", "d\n")])
        .resolves("two.c1", &[("src/shared.txt", "of one and two\n")])
        .resolves("one.c1", &[("src/shared.txt", "of one and two\n")])
        .passes();
    Stage::new(&format!("{MANY}{CONFIG}"))
        .with_file("src/shared.txt", "of nobody\n")
        .script(&script)
        .decisions(DECISIONS)
}

/// What is on the base branch in the end.
pub fn sources() -> BTreeMap<String, String> {
    let files = [("src/a.txt", "a"), ("src/d.txt", "d"), ("src/shared.txt", "of one and two")];
    files.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

/// A shorter one with every kind of call of git in it: two changesets, of which the
/// second conflicts and is resolved. No task may fail even once.
pub fn of_two() -> Stage {
    let tasks =
        [task("task-001", "one", "src/shared.txt"), task("task-002", "two", "src/shared.txt")];
    let script = Script::new()
        .works("task-001", &[("src/shared.txt", "of one\n")])
        .works("task-002", &[("src/shared.txt", "of two\n")])
        .resolves("two.c1", &[("src/shared.txt", "of one and two\n")])
        .resolves("one.c1", &[("src/shared.txt", "of one and two\n")])
        .passes();
    let config = CONFIG.replace("max_retries: 20", "max_retries: 0");
    Stage::new(&format!("{MANY}{config}"))
        .with_file("src/shared.txt", "of nobody\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(DECISIONS)
}
