//! bash as the oracle: whatever the policy allows, bash must not take it for
//! a command that the policy never saw.
//!
//! Lines are put together by chance from awkward pieces. Those that are allowed
//! are run by a bash that finds no program and writes down which it looked for.

use std::fs;
use std::process::Stdio;

use blueflame::ground::RealGround;
use blueflame_core::config;
use blueflame_core::ids::Role;
use blueflame_core::policy::{Policy, PolicyRules, Scope, ToolCall};
use blueflame_testkit::TestEnv;
use serde_json::json;

const PIECES: &[&str] = &[
    "evil",
    "evil x",
    "git status",
    "ls src",
    "echo ",
    "echo evil",
    "cat src/a",
    "cat ",
    "true",
    "$(",
    ")",
    "`",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<-E\n",
    "\n\tE\n",
    " # ",
    "#",
    "\\",
    "\\\n",
    "'",
    "\"",
    ";",
    " && ",
    " || ",
    " | ",
    "\n",
    "(",
    "{ ",
    "; }",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "for f in a b; do ",
    "; done",
    "$f",
    "\"$f\"",
    "${f}",
    " > src/x ",
    " < src/a ",
    " <<< ",
    " 2>&1 ",
    " ",
    "CI=1 ",
    "! ",
    "time ",
    "[ ",
    " ]",
    "test ",
    "printf ",
    "-v ",
    "'a[$(evil)]'",
    "./*",
    "while false; do ",
    "&",
    " |& ",
    "E",
    "\t",
    "$",
    "=",
    "\"$(cat <<'E'\n",
    "\nE\n)\"",
    "git commit -m ",
    "'fix(task-1): x'",
    "{a,b}",
    "[[ ",
    "$'x'",
    "<(",
    "1>",
    "2",
];

/// A small generator, so that a failure can be told by its number.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

#[test]
fn bash_runs_nothing_that_the_policy_did_not_see() {
    let env = TestEnv::new();
    let workspace = env.path("ws");
    fs::create_dir_all(workspace.join("src")).unwrap();
    fs::write(workspace.join("src/a"), "evil\n").unwrap();
    let log = env.path("ran");
    let prelude = env.path("prelude");
    let handler = format!(
        "command_not_found_handle() {{ printf '%s\\n' \"$1\" >> '{}'; return 0; }}\n",
        log.display()
    );
    fs::write(&prelude, handler).unwrap();
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let rules =
        PolicyRules { scope: Scope::Everything, ..PolicyRules::of(&config, Role::Worker, &[]) };
    let policy = Policy::new(rules).unwrap();
    let ground = RealGround::new(&workspace).unwrap();
    let (mut allowed, mut judged) = (0, 0);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    while allowed < 400 && judged < 400_000 {
        judged += 1;
        let length = 1 + chance.below(9);
        let line: String = (0..length).map(|_| PIECES[chance.below(PIECES.len())]).collect();
        let call = ToolCall {
            tool: "Bash".to_owned(),
            input: json!({ "command": line }),
            cwd: workspace.to_str().unwrap().to_owned(),
        };
        if line.trim().is_empty() || !policy.judge(&call, &ground).is_allowed() {
            continue;
        }
        // Half of the short ones are enough.
        if length < 3 && chance.below(4) > 0 {
            continue;
        }
        allowed += 1;
        let _ = fs::remove_file(&log);
        let mut bash = env.command("/bin/bash");
        bash.args(["--norc", "-c", &line]).current_dir(&workspace);
        bash.env("PATH", "/nonexistent").env("BASH_ENV", &prelude);
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = bash.output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(!complaints.contains("syntax error"), "{line:?}: {complaints}");
        let ran = fs::read_to_string(&log).unwrap_or_default();
        for program in ran.lines() {
            let known = ["git", "ls", "cat"].contains(&program);
            assert!(known, "line {judged}: {line:?} runs {program:?}");
        }
    }
    assert!(allowed >= 400, "only {allowed} of {judged} lines were allowed");
}
