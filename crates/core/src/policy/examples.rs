//! Examples that the rules carry: what they let through, and what not.
//!
//! The built-in ones hold under every configuration. Others follow from the
//! configuration: whatever it lists must really be possible, and nothing may
//! hang on to it. [`Policy::prove`] tries them all on an empty workspace.

use serde_json::{Value, json};

use super::ground::{Found, Ground, Resolved};
use super::paths::without_dots;
use super::verdict::{Decision, Rule, Verdict};
use super::{Policy, ToolCall, is_found};
use crate::ids::Role;

/// A call, and what has to become of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    pub call: ToolCall,
    pub expected: Decision,
    /// The rule that decides it by default.
    pub rule: Rule,
}

/// An example that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub example: Example,
    pub verdict: Verdict,
}

impl Proof {
    pub fn holds(&self) -> bool {
        self.verdict.decision == self.example.expected
    }
}

/// A workspace in which nothing is.
pub(super) struct Empty;

const WORKSPACE: &str = "/workspace";

impl Ground for Empty {
    fn workspace(&self) -> &str {
        WORKSPACE
    }

    fn resolve(&self, path: &str) -> Resolved {
        let path = without_dots(path);
        let found = if path == WORKSPACE { Found::Directory } else { Found::Nothing };
        Resolved::At { path, found }
    }

    fn names_in(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Calls that are denied whatever is configured.
const DENIED: &[(Rule, &str, &str, &str)] = &[
    (Rule::ToolNotAllowed, "mcp__files__write", "path", "x"),
    (Rule::ToolNotAllowed, "bash", "command", "pwd"),
    (Rule::ToolInput, "Bash", "cmd", "pwd"),
    (Rule::ToolInput, "Read", "path", "src/a"),
    (Rule::PathOutside, "Read", "file_path", "/etc/passwd"),
    (Rule::PathOutside, "Read", "file_path", "../other/a"),
    (Rule::PathOutside, "Write", "file_path", "/workspace2/src/a"),
    (Rule::PathOutside, "Write", "file_path", "/proc/self/cwd/src/a"),
    (Rule::PathProtected, "Write", "file_path", ".git/hooks/pre-commit"),
    (Rule::PathProtected, "Write", "file_path", "src/.GIT/config"),
    (Rule::PathProtected, "Write", "file_path", ".claude/settings.json"),
    (Rule::PathProtected, "Read", "file_path", ".git/config"),
    (Rule::PathStrange, "Write", "file_path", "src/a\u{202e}b"),
    (Rule::PathStrange, "Write", "file_path", "src/"),
    (Rule::PathOutside, "Glob", "pattern", "/etc/*"),
    (Rule::PathOutside, "Glob", "pattern", "../*"),
    (Rule::CommandSyntax, "Bash", "command", "pwd &"),
    (Rule::CommandSyntax, "Bash", "command", "echo `pwd`"),
    (Rule::CommandSyntax, "Bash", "command", "echo $((1 + 1))"),
    (Rule::CommandSyntax, "Bash", "command", "cat <(pwd)"),
    (Rule::CommandSyntax, "Bash", "command", "pwd() { ls; }"),
    (Rule::CommandSyntax, "Bash", "command", "cat {a,b}"),
    (Rule::CommandSyntax, "Bash", "command", "echo 'a"),
    (Rule::CommandNotAllowed, "Bash", "command", "eval pwd"),
    (Rule::CommandNotAllowed, "Bash", "command", "pwd; exec ls"),
    (Rule::CommandNotAllowed, "Bash", "command", "(pwd && (export A=b))"),
    (Rule::CommandNotAllowed, "Bash", "command", "if pwd; then source a; fi"),
    (Rule::CommandNotAllowed, "Bash", "command", "echo \"$(env)\""),
    (Rule::CommandArgument, "Bash", "command", "$SHELL"),
    (Rule::CommandArgument, "Bash", "command", "cat $FILE"),
    (Rule::CommandEnvironment, "Bash", "command", "LD_PRELOAD=./a.so pwd"),
    (Rule::CommandEnvironment, "Bash", "command", "PATH=src; pwd"),
    (Rule::CommandEnvironment, "Bash", "command", "for PATH in src; do pwd; done"),
    (Rule::CommandFlag, "Bash", "command", "sort --compress-program=src/a b"),
    (Rule::CommandFlag, "Bash", "command", "printf -v a b"),
    (Rule::PathOutside, "Bash", "command", "cat /etc/passwd"),
    (Rule::PathOutside, "Bash", "command", "pwd > /etc/motd"),
    (Rule::PathOutside, "Bash", "command", "cd .. && pwd"),
    (Rule::PathProtected, "Bash", "command", "pwd > .git/config"),
];

/// Commands that everyone who has a shell may run.
const ALLOWED: &[&str] = &[
    "pwd",
    "ls -la src 2>/dev/null",
    "cat src/a | head -n 5 | sort -u",
    "echo \"a; b && c | d > e\"",
    "if test -f src/a; then echo yes; else echo no; fi",
    "for f in src/a src/b; do wc -l \"$f\"; done",
];

impl Policy {
    /// Tries every example.
    pub fn prove(&self) -> Vec<Proof> {
        let tried =
            |example: Example| Proof { verdict: self.judge(&example.call, &Empty), example };
        built_in(self).chain(self.listed_examples()).map(tried).collect()
    }

    /// What follows from what is listed.
    fn listed_examples(&self) -> Vec<Example> {
        let rules = &self.compiled.rules;
        let mut examples: Vec<Example> = rules
            .blocked_tools
            .iter()
            .map(|tool| denied(Rule::ToolBlocked, tool, json!({})))
            .collect();
        let listed = match rules.role {
            Role::Worker | Role::Merger => &rules.allowed_commands,
            Role::Validator => &rules.diagnostics,
            Role::Planner => return examples,
        };
        if !self.has_tool("Bash") {
            return examples;
        }
        // Blocked patterns win, which the configuration's own check reports.
        let blocked = |text: &str| self.compiled.blocked_patterns.iter().any(|p| is_found(p, text));
        for command in listed.iter().filter(|command| !blocked(command)) {
            let whole = match command.as_str() {
                "git commit" => format!("git commit -m '{}'", self.message()),
                "git" => "git status".to_owned(),
                _ => command.clone(),
            };
            let behind = format!("{whole}; eval x");
            examples.push(allowed(&whole));
            examples.push(denied(Rule::CommandNotAllowed, "Bash", json!({ "command": behind })));
        }
        examples
    }

    fn has_tool(&self, tool: &str) -> bool {
        let rules = &self.compiled.rules;
        let listed = |list: &[String]| list.iter().any(|listed| listed == tool);
        listed(&rules.allowed_tools) && !listed(&rules.blocked_tools)
    }

    /// A message that fits, as far as one is known.
    fn message(&self) -> String {
        let format = self.compiled.rules.commit_format.as_ref();
        let example = format.and_then(|format| format.example.clone());
        example.unwrap_or_else(|| "a message".to_owned()).replace('\'', "")
    }
}

fn built_in(policy: &Policy) -> impl Iterator<Item = Example> {
    let denials = DENIED.iter().map(|(rule, tool, key, value)| {
        let mut input = json!({ *key: value });
        if *tool == "Write" {
            input["content"] = Value::from("");
        }
        denied(*rule, tool, input)
    });
    let commands: &[&str] = if policy.has_tool("Bash") { ALLOWED } else { &[] };
    let blocked = |text: &str| policy.compiled.blocked_patterns.iter().any(|p| is_found(p, text));
    denials.chain(commands.iter().filter(move |text| !blocked(text)).map(|text| allowed(text)))
}

fn denied(rule: Rule, tool: &str, input: Value) -> Example {
    let call = ToolCall { tool: tool.to_owned(), input, cwd: WORKSPACE.to_owned() };
    Example { call, expected: Decision::Deny, rule }
}

fn allowed(command: &str) -> Example {
    let input = json!({ "command": command });
    let call = ToolCall { tool: "Bash".to_owned(), input, cwd: WORKSPACE.to_owned() };
    Example { call, expected: Decision::Allow, rule: Rule::CommandAllowed }
}
