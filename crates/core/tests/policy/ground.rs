//! A made-up file system, and rules to judge on it.

use std::collections::BTreeMap;

use blueflame_core::config;
use blueflame_core::ids::Role;
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::{
    Found, Ground, Policy, PolicyRules, Resolved, Scope, ToolCall, Verdict,
};
use serde_json::{Value, json};

pub const WORKSPACE: &str = "/home/agent/a1";

#[derive(Clone, Debug)]
pub enum Entry {
    File(u64),
    Directory,
    Special,
    Link(&'static str),
}

/// Some files, and nothing else.
#[derive(Debug)]
pub struct Fake(pub BTreeMap<String, Entry>);

impl Fake {
    pub fn new() -> Self {
        let mut entries = BTreeMap::new();
        let place = |path: &str| format!("{WORKSPACE}/{path}").trim_end_matches('/').to_owned();
        for directory in ["", "src", "src/auth", "src/other", "tests", "docs", "target", ".git"] {
            entries.insert(place(directory), Entry::Directory);
        }
        for file in ["go.mod", "Makefile", "src/a.go", "src/auth/a.go", ".env", "src/f1.txt"] {
            entries.insert(place(file), Entry::File(1));
        }
        entries.insert(place("src/twice.go"), Entry::File(2));
        entries.insert(place("src/pipe"), Entry::Special);
        entries.insert(place("src/out"), Entry::Link("/etc"));
        entries.insert(place("src/dangling"), Entry::Link("/etc/new"));
        entries.insert(place("src/in"), Entry::Link("../docs"));
        entries.insert(place("src/round"), Entry::Link("round"));
        for directory in ["/", "/etc", "/tmp", "/home", "/home/agent"] {
            entries.insert(directory.to_owned(), Entry::Directory);
        }
        Fake(entries)
    }
}

impl Ground for Fake {
    fn workspace(&self) -> &str {
        WORKSPACE
    }

    fn resolve(&self, path: &str) -> Resolved {
        let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut at = String::new();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    at.truncate(at.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let next = format!("{at}/{part}");
            if let Some(Entry::Link(target)) = self.0.get(&next) {
                links += 1;
                if links > 10 {
                    return Resolved::Lost("too many symbolic links".to_owned());
                }
                if target.starts_with('/') {
                    at.clear();
                }
                todo.extend(target.split('/').rev().map(str::to_owned));
                continue;
            }
            at = next;
        }
        let found = match self.0.get(if at.is_empty() { "/" } else { &at }) {
            None => Found::Nothing,
            Some(Entry::File(links)) => Found::File { links: *links },
            Some(Entry::Directory) => Found::Directory,
            Some(Entry::Special | Entry::Link(_)) => Found::Special,
        };
        Resolved::At { path: if at.is_empty() { "/".to_owned() } else { at }, found }
    }

    fn names_in(&self, directory: &str) -> Vec<String> {
        let Resolved::At { path, .. } = self.resolve(directory) else { return Vec::new() };
        let inside = format!("{}/", path.trim_end_matches('/'));
        let below = self.0.keys().filter_map(|path| path.strip_prefix(&inside));
        below.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }
}

/// Rules from a configuration, for a role, with everything in scope.
pub fn rules(yaml: &str, role: Role) -> PolicyRules {
    let reading = config::read(format!("schema_version: 2\n{yaml}").as_bytes());
    let config = reading.into_result().expect("a good configuration").0;
    PolicyRules { scope: Scope::Everything, ..PolicyRules::of(&config, role, &[]) }
}

pub fn locked(rules: PolicyRules, locks: &[&str]) -> PolicyRules {
    let locks = locks.iter().map(|lock| LockPath::new(lock).expect("a lock")).collect();
    PolicyRules { scope: Scope::Locks(locks), ..rules }
}

pub fn judge(policy: &Policy, tool: &str, input: Value) -> Verdict {
    let call = ToolCall { tool: tool.to_owned(), input, cwd: WORKSPACE.to_owned() };
    policy.judge(&call, &Fake::new())
}

pub fn bash(policy: &Policy, command: &str) -> Verdict {
    judge(policy, "Bash", json!({ "command": command }))
}
