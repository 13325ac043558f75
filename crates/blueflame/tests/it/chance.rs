//! What no input may do, whatever it is: nothing breaks, nothing leaves the
//! workspace, and how a thing is spelled changes nothing. A failure prints the
//! smallest input that shows it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use blueflame::executor::Ruling;
use blueflame::ground::RealGround;
use blueflame::hook;
use blueflame_core::config;
use blueflame_core::ids::Role;
use blueflame_core::plan::{Plan, PlanContext};
use blueflame_core::policy::{Policy, PolicyRules, Scope, ToolCall, Verdict};
use blueflame_testkit::TestEnv;
use blueflame_testkit::oracle::lines::{Chance, line};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../../../blueflame.example.yaml");

const PLAN: &str = r#"{"tasks": [
  {"id": "task-001", "title": "One", "description": "Do it.", "priority": 1,
   "cohesion_group": "a", "dependencies": [], "file_locks": ["src/a"], "acceptance": ["make"]},
  {"id": "task-002", "title": "Two", "description": "Do that.", "priority": 2,
   "cohesion_group": "a", "dependencies": ["task-001"], "file_locks": ["src/b/"]}
]}"#;

const EVENT: &str = r#"{"session_id": "s", "hook_event_name": "PreToolUse", "cwd": "",
  "tool_name": "Bash", "tool_input": {"command": "git status && ls src", "timeout": 5}}"#;

struct Place {
    env: TestEnv,
    policy: Policy,
    ground: RealGround,
}

impl Place {
    /// A workspace with links that stay in it, leave it, and lead nowhere.
    fn new() -> Place {
        let env = TestEnv::new();
        let workspace = env.path("ws");
        for directory in ["src/deep/deeper", "docs", ".git"] {
            fs::create_dir_all(workspace.join(directory)).unwrap();
        }
        for file in ["ws/src/a", "ws/docs/b", "ws/.git/config", "outside"] {
            fs::write(env.path(file), "x").unwrap();
        }
        let links = [
            ("src/out", ".."),
            ("src/far", "../.."),
            ("src/etc", "/etc"),
            ("src/in", "../docs"),
            ("src/round", "round"),
            ("src/gone", "../../gone"),
            ("src/deep/up", "../../../outside"),
            ("docs/git", "../.git"),
        ];
        for (name, target) in links {
            symlink(target, workspace.join(name)).unwrap();
        }
        let (config, _) = config::read(b"schema_version: 2\n").into_result().unwrap();
        let rules = PolicyRules::of(&config, Role::Worker, &[]);
        let rules = PolicyRules { scope: Scope::Everything, ..rules };
        let ground = RealGround::new(&workspace).unwrap();
        Place { env, policy: Policy::new(rules).unwrap(), ground }
    }

    fn workspace(&self) -> PathBuf {
        fs::canonicalize(self.env.path("ws")).unwrap()
    }

    fn judge(&self, tool: &str, input: Value) -> Verdict {
        let cwd = self.workspace().to_str().unwrap().to_owned();
        let call = ToolCall { tool: tool.to_owned(), input, cwd };
        self.policy.judge(&call, &self.ground)
    }
}

fn run<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    // The same cases each time; `PROPTEST_RNG_SEED` has others.
    let chance = match std::env::var("PROPTEST_RNG_SEED") {
        Ok(_) => return TestRunner::new(config).run(strategy, test).unwrap(),
        Err(_) => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    };
    TestRunner::new_with_rng(config, chance).run(strategy, test).unwrap();
}

/// Where the system itself ends up: the deepest part that is there, and the rest.
fn really(path: &Path) -> Option<PathBuf> {
    let mut there = path.to_owned();
    let mut rest = Vec::new();
    loop {
        if let Ok(found) = fs::canonicalize(&there) {
            return Some(rest.iter().rev().fold(found, |path, name| path.join(name)));
        }
        // A link that leads nowhere would be followed when a file is made.
        if fs::symlink_metadata(&there).is_ok() {
            return None;
        }
        let Some(name) = there.file_name() else {
            // Behind what is not there, `..` is a matter of the text alone.
            return really(&without_dots(path));
        };
        rest.push(name.to_owned());
        there = there.parent()?.to_owned();
    }
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[test]
fn no_path_that_is_allowed_leaves_the_workspace() {
    let place = Place::new();
    let part = "(\\.\\.|\\.|src|docs|deep|deeper|up|out|far|etc|in|round|gone|git|\\.git|a|b|ws|passwd|new|)";
    let parts = (prop::bool::ANY, prop::collection::vec(part, 1..9));
    let allowed = std::cell::Cell::new(0);
    run(6_000, &parts, |(absolute, parts)| {
        let relative = parts.join("/");
        let path = if absolute {
            place.workspace().join(&relative).to_str().unwrap().to_owned()
        } else {
            relative
        };
        for (tool, input) in [
            ("Read", json!({ "file_path": path })),
            ("Write", json!({ "file_path": path, "content": "" })),
        ] {
            if !place.judge(tool, input).is_allowed() {
                continue;
            }
            allowed.set(allowed.get() + 1);
            let led = really(&place.workspace().join(&path));
            let inside = led.as_ref().is_some_and(|led| led.starts_with(place.workspace()));
            prop_assert!(inside, "{tool} {path} leads to {led:?}");
            let git = led.is_some_and(|led| led.starts_with(place.workspace().join(".git")));
            prop_assert!(!git, "{tool} {path} leads into `.git`");
        }
        Ok(())
    });
    assert!(allowed.get() > 100, "only {} were allowed", allowed.get());
}

/// Any JSON, as deep and as odd as it comes.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    let names =
        "(file_path|command|pattern|path|glob|content|old_string|new_string|timeout|.{0,4})";
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn no_tool_input_breaks_the_judge_and_it_says_the_same_twice() {
    let place = Place::new();
    let tool =
        "(Read|Write|Edit|MultiEdit|NotebookEdit|Glob|Grep|Bash|Task|Agent|mcp__a__b|.{0,5})";
    run(3_000, &(tool, any_json()), |(tool, input)| {
        let first = place.judge(&tool, input.clone());
        prop_assert_eq!(&first, &place.judge(&tool, input));
        prop_assert_eq!(first.is_allowed(), first.details.is_empty());
        prop_assert!(!first.rule.is_empty());
        Ok(())
    });
}

#[test]
fn blanks_around_a_command_line_change_nothing() {
    let place = Place::new();
    let decide = |line: &str| place.judge("Bash", json!({ "command": line })).is_allowed();
    let allowed = std::cell::Cell::new(0);
    run(3_000, &any::<u64>(), |seed| {
        let line = line(&mut Chance::of(seed));
        // Nothing at all is no command.
        if line.trim().is_empty() {
            return Ok(());
        }
        let verdict = decide(&line);
        allowed.set(allowed.get() + u32::from(verdict));
        for blanks in [" ", "\t", "\n", " \n\t"] {
            prop_assert_eq!(
                decide(&format!("{blanks}{line}")),
                verdict,
                "{:?} before {:?}",
                blanks,
                line
            );
        }
        // Behind a backslash or within a comment they would mean something.
        if !line.contains(['\\', '#']) && !line.contains("<<") {
            for blanks in [" ", "\n", " # more"] {
                prop_assert_eq!(
                    decide(&format!("{line}{blanks}")),
                    verdict,
                    "{:?} behind {:?}",
                    blanks,
                    line
                );
            }
            // As one of two, it is what it was.
            prop_assert_eq!(decide(&format!("true\n{line}")), verdict, "second: {:?}", line);
        }
        Ok(())
    });
    assert!(allowed.get() > 100, "only {} were allowed", allowed.get());
}

/// A text with some of it overwritten, left out, or said twice.
fn spoiled(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let blow =
        (0..text.len(), 0..12_usize, prop::collection::vec(any::<u8>(), 0..6), any::<bool>());
    prop::collection::vec(blow, 1..6).prop_map(move |blows| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, length, new, twice) in blows {
            let at = at.min(bytes.len());
            let end = (at + length).min(bytes.len());
            let old = bytes[at..end].to_vec();
            bytes.splice(at..end, new);
            if twice {
                bytes.splice(at..at, old);
            }
        }
        bytes
    })
}

#[test]
fn no_configuration_breaks_the_reader() {
    run(400, &spoiled(EXAMPLE), |bytes| {
        let reading = config::read(&bytes);
        // What cannot be used says why.
        prop_assert!(reading.config.is_some() || reading.into_result().is_err());
        Ok(())
    });
    run(1_500, &prop::collection::vec(any::<u8>(), 0..200), |bytes| {
        config::read(&bytes);
        Ok(())
    });
}

#[test]
fn no_plan_breaks_the_reader() {
    let (config, _) = config::read(b"schema_version: 2\n").into_result().unwrap();
    let context = PlanContext::of(&config);
    run(2_000, &spoiled(PLAN), |bytes| {
        if let Err(problems) = Plan::read(&bytes, &context) {
            prop_assert!(!problems.is_empty());
        }
        Ok(())
    });
}

#[test]
fn no_event_breaks_the_hook_and_what_it_takes_is_one() {
    let place = Place::new();
    let (taken, judged) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    run(4_000, &spoiled(EVENT), |bytes| {
        if let Ok(event) = hook::read_event(&bytes[..]) {
            taken.set(taken.get() + 1);
            let event: Value = serde_json::from_str(event.get()).expect("it was read");
            prop_assert!(event["hook_event_name"].is_string(), "{event}");
        }
        // The same line as `policy check` reads it.
        if let Ok(call) = serde_json::from_slice::<ToolCall>(&bytes) {
            judged.set(judged.get() + 1);
            let verdict = place.policy.judge(&call, &place.ground);
            prop_assert_eq!(verdict.is_allowed(), verdict.details.is_empty());
        }
        Ok(())
    });
    assert!(taken.get() > 100 && judged.get() > 100, "{} and {}", taken.get(), judged.get());
}

#[test]
fn no_answer_is_an_allowance_but_the_whole_of_one() {
    const ALLOWED: &str = "{\"version\":1,\"decision\":\"allow\",\"reason\":\"\"}\n";
    let allowed = std::cell::Cell::new(0);
    run(4_000, &spoiled(ALLOWED), |bytes| {
        if let Ok(Ruling::Allow) = hook::read_answer(&bytes) {
            allowed.set(allowed.get() + 1);
            let answer: Value = serde_json::from_slice(&bytes).expect("it was read");
            prop_assert_eq!(&answer["version"], &json!(1));
            prop_assert_eq!(&answer["decision"], &json!("allow"));
            prop_assert_eq!(bytes.last(), Some(&b'\n'));
        }
        Ok(())
    });
    assert!(hook::read_answer(ALLOWED.as_bytes()).is_ok() && allowed.get() > 20);
}

/// The real `sed` says of a script whether it would read, write or run something.
#[test]
fn no_script_of_sed_that_is_allowed_does_more_than_pass_text_on() {
    let place = Place::new();
    let file = place.workspace().join("src/a");
    let refusal = |script: &str| {
        let mut command = std::process::Command::new("sed");
        command.args(["--sandbox", "-n", script]).arg(&file);
        let said = command.output().expect("sed is there").stderr;
        String::from_utf8_lossy(&said).into_owned()
    };
    // Another `sed` than GNU's cannot be asked.
    if !refusal("w x").contains("sandbox mode") {
        return;
    }
    let piece = "(p|d|q|=|n|h|G|1|5|\\$|,|;|\n| |!|\\{|\\}|~2|\\+3|/|a|x|\\[|\\]|\\\\|/a/|/x y/|s/a/b/|\
                 s/a/b/g|s/\\[a\\]/b/p|s\\|a\\|b\\||s,a,b,|I|M|g|e|w|r|w x|e x|r x|R x|W x|s/a/b/w x|s/a/x/e|F|z|#|y/a/b/|\
                 b|t|:|i|c|l)";
    let allowed = std::cell::Cell::new(0);
    run(2_500, &prop::collection::vec(piece, 1..7), |pieces| {
        let script = pieces.concat();
        let line = format!("sed -n '{script}' src/a");
        if place.judge("Bash", json!({ "command": line })).is_allowed() {
            allowed.set(allowed.get() + 1);
            let said = refusal(&script);
            prop_assert!(!said.contains("sandbox mode"), "{script:?}: {said}");
        }
        Ok(())
    });
    assert!(allowed.get() > 100, "only {} were allowed", allowed.get());
}
