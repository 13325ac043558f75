//! Plans and scripts, built by a test. Both are written as JSON, which is YAML.

use serde_json::{Value, json};

/// One task of a plan.
#[derive(Clone, Debug)]
pub struct Task(Value);

/// A task that has one file to itself.
pub fn task(id: &str, group: &str, file: &str) -> Task {
    Task(json!({
        "id": id,
        "title": format!("Write {file}"),
        "description": format!("Write {file} as it should be."),
        "priority": 1,
        "cohesion_group": group,
        "dependencies": [],
        "file_locks": [file],
    }))
}

impl Task {
    pub fn needs(mut self, others: &[&str]) -> Self {
        self.0["dependencies"] = json!(others);
        self
    }

    pub fn accepts(mut self, commands: &[&str]) -> Self {
        self.0["acceptance"] = json!(commands);
        self
    }

    pub fn executor(mut self, name: &str) -> Self {
        self.0["executor"] = json!(name);
        self
    }

    pub fn locks(mut self, files: &[&str]) -> Self {
        self.0["file_locks"] = json!(files);
        self
    }
}

/// The text of a plan.
pub fn plan(tasks: &[Task]) -> String {
    plan_value(tasks).to_string()
}

pub fn plan_value(tasks: &[Task]) -> Value {
    json!({"tasks": tasks.iter().map(|task| task.0.clone()).collect::<Vec<_>>()})
}

/// What the model says. The first reply that fits is given, so what is special
/// comes before what is general.
#[derive(Debug, Default)]
pub struct Script(Vec<Value>);

impl Script {
    pub fn new() -> Self {
        Script::default()
    }

    pub fn reply(mut self, reply: Value) -> Self {
        self.0.push(reply);
        self
    }

    /// The planner returns these tasks.
    pub fn plans(self, tasks: &[Task]) -> Self {
        self.reply(json!({"when": {"role": "planner"}, "output": plan_value(tasks)}))
    }

    /// One attempt of a worker: its tool calls in one answer, then it is done.
    pub fn attempt(self, task: &str, attempt: u32, calls: &[Value]) -> Self {
        let first = json!({"role": "worker", "task": task, "attempt": attempt, "turn": 0});
        let then = json!({"role": "worker", "task": task, "attempt": attempt});
        self.reply(json!({"when": first, "call": calls, "usage": USAGE()}))
            .reply(json!({"when": then, "say": "Done.", "usage": USAGE()}))
    }

    /// Every attempt that nothing above fits writes these files and commits.
    pub fn works(self, task: &str, files: &[(&str, &str)]) -> Self {
        let calls = commit(task, files);
        let first = json!({"role": "worker", "task": task, "turn": 0});
        let then = json!({"role": "worker", "task": task});
        self.reply(json!({"when": first, "call": calls, "usage": USAGE()}))
            .reply(json!({"when": then, "say": "Done.", "usage": USAGE()}))
    }

    /// An attempt that says something and does nothing.
    pub fn idles(self, task: &str, attempt: u32) -> Self {
        let when = json!({"role": "worker", "task": task, "attempt": attempt});
        self.reply(json!({"when": when, "say": "Nothing to do.", "usage": USAGE()}))
    }

    /// Validators pass whatever nothing above fits.
    pub fn passes(self) -> Self {
        let output = json!({"status": "pass", "notes": "As it should be.", "issues": []});
        self.reply(json!({"when": {"role": "validator"}, "output": output, "usage": USAGE()}))
    }

    /// The validator of one attempt turns it down.
    pub fn turns_down(self, task: &str, attempt: u32, notes: &str) -> Self {
        let when = json!({"role": "validator", "task": task, "attempt": attempt});
        let output = json!({"status": "fail", "notes": notes, "issues": ["it is wrong"]});
        self.reply(json!({"when": when, "output": output, "usage": USAGE()}))
    }

    /// The merger of a changeset writes these files, commits and reports.
    pub fn resolves(self, changeset: &str, files: &[(&str, &str)]) -> Self {
        let marker = format!("changeset={changeset}");
        let when = json!({"role": "merger", "turn": 0, "contains": marker});
        let calls = commit("task-000", files);
        let output = json!({"status": "resolved", "notes": "Both lines are kept.", "issues": []});
        let then = json!({"role": "merger", "turn": 1});
        let after = json!({"when": then, "output": output, "usage": USAGE()});
        self.reply(json!({"when": when, "call": calls, "usage": USAGE()})).reply(after)
    }

    /// The merger of a changeset gives up.
    pub fn cannot_resolve(self, changeset: &str, why: &str) -> Self {
        let marker = format!("changeset={changeset}");
        let when = json!({"role": "merger", "turn": 0, "contains": marker});
        let output = json!({"status": "unresolved", "notes": why, "issues": ["two meanings"]});
        self.reply(json!({"when": when, "output": output, "usage": USAGE()}))
    }

    pub fn text(&self) -> String {
        json!({"replies": self.0}).to_string()
    }
}

/// What every answer costs: 1000 tokens.
#[expect(non_snake_case, reason = "it stands for a constant, which json! cannot be")]
fn USAGE() -> Value {
    json!({"input": 900, "output": 100})
}

pub fn write(file: &str, content: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": content}})
}

pub fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// Writes files and commits them, with a subject that names the task.
pub fn commit(task: &str, files: &[(&str, &str)]) -> Vec<Value> {
    let mut calls: Vec<Value> = files.iter().map(|(file, text)| write(file, text)).collect();
    let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
    let names = names.join(" ");
    calls.push(bash(&format!("git add {names} && git commit -q -m '{}'", subject(task))));
    calls
}

/// The subject of a worker's commit.
pub fn subject(task: &str) -> String {
    format!("feat({task}): write it")
}
