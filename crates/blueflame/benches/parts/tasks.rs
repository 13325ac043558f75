//! Tasks without anything to think about, and agents that do them.

use std::fmt::Write as _;

/// Tasks that have nothing to do with each other, each with a file of its own.
pub fn plan(count: u32) -> String {
    let mut plan = String::from("tasks:\n");
    for number in 1..=count {
        let _ = writeln!(
            plan,
            "  - {{id: task-{number:03}, title: Task {number}, description: Do it, priority: 1, \
             cohesion_group: all, dependencies: [], file_locks: [src/{number}.txt]}}"
        );
    }
    plan
}

/// Workers write and commit at once, and validators are content.
pub fn script(count: u32) -> String {
    let mut script = String::from("replies:\n");
    for number in 1..=count {
        let task = format!("task-{number:03}");
        let commit = format!("git add src && git commit -q -m 'feat({task}): do it'");
        let _ = writeln!(
            script,
            "  - when: {{role: worker, task: {task}, turn: 0}}\n    call: [{{tool: Write, input: \
             {{file_path: src/{number}.txt, content: x}}}}, {{tool: Bash, input: {{command: \
             \"{commit}\"}}}}]"
        );
    }
    script.push_str(
        "  - {when: {role: worker}, say: Done.}\n  - {when: {role: validator}, output: {status: \
         pass, notes: fine, issues: []}}\n",
    );
    script
}
