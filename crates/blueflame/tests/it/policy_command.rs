//! `blueflame policy check`, from the outside.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use blueflame_testkit::{Repository, TestEnv};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_blueflame");

fn repository(env: &TestEnv) -> Repository<'_> {
    let repository = env.repository("project");
    repository
        .write("src/auth/a.go", "package auth\n")
        .write("docs/a.md", "text\n")
        .write("blueflame.yaml", "schema_version: 2\n")
        .commit("start");
    repository
}

/// Runs the check on these lines and gives what it printed, line by line.
fn check(env: &TestEnv, place: &Repository<'_>, options: &[&str], lines: &[u8]) -> Vec<Value> {
    let mut command = env.command(PROGRAM);
    command.args(["policy", "check"]).args(options).current_dir(place.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(tool: &str, input: &Value) -> String {
    json!({ "tool_name": tool, "tool_input": input, "hook_event_name": "PreToolUse" }).to_string()
        + "\n"
}

#[test]
fn each_line_gets_one_verdict_and_none_is_fatal() {
    let env = TestEnv::new();
    let place = repository(&env);
    let mut lines = Vec::new();
    lines.extend(call("Bash", &json!({"command": "git status"})).into_bytes());
    lines.extend(b"not json\n\n[]\n{\"tool_name\":5}\n\xff\xfe\n{\n");
    lines.extend(format!("{{\"tool_name\":\"Bash\",\"tool_input\":{}\n", "[".repeat(500)).bytes());
    lines.extend(call("Read", &json!({"file_path": "/etc/passwd"})).into_bytes());
    lines.extend(br#"{"tool_name":"Read","tool_input":{"file_path":"docs/a.md"}}"#);
    let verdicts = check(&env, &place, &[], &lines);
    let decisions: Vec<(&str, &str)> = verdicts
        .iter()
        .map(|verdict| (verdict["decision"].as_str().unwrap(), verdict["rule"].as_str().unwrap()))
        .collect();
    let bad = ("deny", "tools.input");
    assert_eq!(
        decisions,
        [
            ("allow", "commands.allowed"),
            bad,
            bad,
            bad,
            bad,
            bad,
            bad,
            ("deny", "paths.outside"),
            ("allow", "paths.read"),
        ]
    );
    for verdict in &verdicts {
        let keys: Vec<&String> = verdict.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["decision", "rule", "details"]);
    }
}

#[test]
fn role_locks_and_links_count() {
    let env = TestEnv::new();
    let place = repository(&env);
    std::fs::create_dir(env.path("outside")).unwrap();
    symlink("../../outside", place.path().join("src/out")).unwrap();
    std::fs::write(env.path("outside/x"), "").unwrap();
    std::fs::hard_link(env.path("outside/x"), place.path().join("src/twice.go")).unwrap();
    let write = |path: &str| call("Write", &json!({"file_path": path, "content": ""}));
    let rule = |options: &[&str], line: String| {
        let verdicts = check(&env, &place, options, line.as_bytes());
        verdicts[0]["rule"].as_str().unwrap().to_owned()
    };
    for (options, line, expected) in [
        (&[][..], write("docs/b.md"), "paths.write"),
        (&["--locks", "src/auth,src/api/"], write("src/api/b.go"), "paths.write"),
        (&["--locks", "src/auth,src/api"], write("docs/b.md"), "paths.scope"),
        (&["--role", "planner"], write("docs/b.md"), "tools.role"),
        (&["--role", "merger"], write("docs/b.md"), "paths.write"),
        (&[], write("src/out/y.go"), "paths.outside"),
        (&[], write("src/twice.go"), "paths.links"),
        (
            &["--role", "validator"],
            call("Bash", &json!({"command": "go test ./..."})),
            "commands.allowed",
        ),
    ] {
        assert_eq!(rule(options, line.clone()), expected, "{options:?} {line}");
    }
}

#[test]
fn examples_are_proved_and_a_listed_command_that_cannot_run_is_named() {
    let env = TestEnv::new();
    let place = repository(&env);
    insta::assert_snapshot!(place.run(PROGRAM, ["policy", "check", "--prove-examples"]));
    let yaml = "permissions: {bash_rules: {allowed_commands: [make, sudo make, xargs ls]}}\n";
    place.write("blueflame.yaml", &format!("schema_version: 2\n{yaml}"));
    insta::assert_snapshot!(place.run(PROGRAM, ["policy", "check", "--prove-examples"]));
    insta::assert_snapshot!(place.run(PROGRAM, ["policy", "check", "--locks", "../x"]));
}

#[test]
fn help_teaches() {
    let env = TestEnv::new();
    let place = repository(&env);
    insta::assert_snapshot!(place.run(PROGRAM, ["policy", "check", "--help"]));
}

/// The calls in `docs/policy.md` get the verdicts that are printed there.
#[test]
fn the_documented_verdicts_are_the_real_ones() {
    let env = TestEnv::new();
    let place = repository(&env);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policy.md");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = |start: &str| -> Vec<&str> {
        text.lines().filter(|line| line.starts_with(start)).collect()
    };
    let calls = lines("{\"tool_name\"").join("\n");
    let printed: Vec<Value> =
        lines("{\"decision\"").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(printed.len(), 6);
    assert_eq!(check(&env, &place, &["--locks", "src/auth"], calls.as_bytes()), printed);
}
