//! What no input may do.

use std::sync::LazyLock;

use blueflame_core::ids::Role;
use blueflame_core::policy::{Policy, ToolCall};
use proptest::prelude::*;
use serde_json::json;

use super::ground::{Fake, WORKSPACE, bash, judge, rules};

fn policy() -> &'static Policy {
    static POLICY: LazyLock<Policy> =
        LazyLock::new(|| Policy::new(rules("", Role::Worker)).expect("good rules"));
    &POLICY
}

/// Commands that are allowed, each complete in itself.
const ALLOWED: &[&str] = &[
    "git status",
    "go test ./...",
    "cat src/a.go | head -n 5",
    "git commit -m \"fix(task-001): x\"",
    "cd src && ls",
    "for f in src/a.go; do wc -l \"$f\"; done",
    "( ls )",
    "echo 'a'",
];

/// What somebody might hang on to them.
const TAILS: &[&str] = &[
    "; rm -rf /",
    " && curl evil",
    " | sh",
    " || wget x",
    "\nrm -rf /",
    " `rm x`",
    " $(rm x)",
    " & rm x",
    " > /etc/passwd",
    " < /etc/shadow",
    " <(rm x)",
    "; eval x",
    " |& sh",
    " ; . ./x",
    "\n\n  rm x",
    "; { rm x; }",
    "; (rm x)",
    "; if rm x; then ls; fi",
    "; X=1 rm x",
    "; \\rm x",
    "; 'rm' x",
    "; r''m x",
    " 2>&1 >> ../x",
    "; while rm x; do ls; done",
    "; ! rm x",
    "; time rm x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nothing_that_hangs_on_an_allowed_command_gets_through(
        start in prop::sample::select(ALLOWED),
        tail in prop::sample::select(TAILS),
        blanks in "[ \t]{0,3}",
        more in "[ -~]{0,12}",
    ) {
        let policy = policy();
        prop_assert!(bash(policy, start).is_allowed());
        for line in [
            format!("{start}{blanks}{tail}"),
            format!("{start}{tail} {more}"),
            format!("{start}; {start}{tail}"),
        ] {
            prop_assert!(!bash(policy, &line).is_allowed(), "{line:?}");
        }
    }

    #[test]
    fn no_command_line_makes_the_judge_panic(
        line in "([a-z]{1,4}|[ \n;&|<>(){}'\"\\\\`$#~*?=!-]|\\[|\\]|git |cat |for f in |do |done|if |then |fi|<<E\n|\nE\n|\\$\\(|é|/|\\.\\.){0,30}",
    ) {
        bash(policy(), &line);
    }

    #[test]
    fn no_call_makes_the_judge_panic(
        tool in "(Read|Write|Edit|Glob|Grep|Bash|Agent|.{0,5})",
        key in "(file_path|command|pattern|path|glob|.{0,5})",
        value in "\\PC{0,40}",
        cwd in "(|/home/agent/a1(/src)?|/|.{0,10})",
    ) {
        let input = json!({ key: value, "content": "", "pattern": value });
        let call = ToolCall { tool, input, cwd };
        policy().judge(&call, &Fake::new());
    }

    /// However a path is spelled, what is outside stays there.
    #[test]
    fn no_spelling_leaves_the_workspace(parts in prop::collection::vec("(\\.\\.|\\.|src|a1|x|)", 0..8)) {
        let path = parts.join("/");
        let verdict = judge(policy(), "Read", json!({ "file_path": path }));
        if verdict.is_allowed() {
            let mut at: Vec<&str> = WORKSPACE.split('/').collect();
            if path.starts_with('/') {
                at = vec![""];
            }
            for part in &parts {
                match part.as_str() {
                    ".." => { at.pop(); }
                    "." | "" => {}
                    part => at.push(part),
                }
            }
            let leads = at.join("/");
            prop_assert!(leads == WORKSPACE || leads.starts_with(&format!("{WORKSPACE}/")), "{path}");
        }
    }
}

/// Twice the length takes about twice the time, not four times: the largest
/// lines of awkward shapes are judged well within a second.
#[test]
fn awkward_lines_are_judged_quickly() {
    let policy = policy();
    let longest = 64 * 1024;
    for unit in [
        "a ",
        "ls;",
        "ls|",
        "ls&&",
        "(",
        "$(",
        "\"$(",
        "'",
        "\\\n",
        "{a,",
        "[",
        "<<E\n",
        "a=b ",
        "../",
        "a/",
        "if ",
        "for f in a; do ",
        "ls src/a;",
        "cat a/b/c ",
        "nc",
        "<",
        ">x ",
        "#",
        "\n",
        "é",
        "$x",
    ] {
        for start in ["", "cat ", "git log ", "go test ", "echo "] {
            let count = (longest - start.len()) / unit.len();
            bash(policy, &format!("{start}{}", unit.repeat(count)));
        }
    }
}
