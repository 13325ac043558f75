//! What the commands of checks find around them.

use std::fs;

use serde_json::{Value, json};

use crate::script::{Script, commit, plan, plan_value, subject, task};
use crate::stage::{Stage, wait_until};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [stop]\n";

fn one_task(config: &str, script: Script) -> Stage {
    Stage::new(config)
        .plan(&plan(&[task("task-001", "only", "src/a.txt")]))
        .script(&script.works("task-001", &[("src/a.txt", "a\n")]).passes())
        .decisions(APPROVE)
}

/// All that failed in the acceptance runs, in order.
fn failures(stage: &Stage) -> Vec<String> {
    let all = stage.events("acceptance.finished").into_iter();
    all.flat_map(|it| it["failures"].as_array().cloned().unwrap_or_default())
        .map(|it: Value| it.as_str().unwrap().to_owned())
        .collect()
}

/// How many places of checks there are.
fn places(stage: &Stage) -> usize {
    let names = fs::read_dir(stage.env.path("tmp")).unwrap().map(|it| it.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("blueflame-check-")).count()
}

#[test]
fn checks_have_the_tools_of_the_home_and_what_worktree_adds() {
    let config = "worktree: {copy: [.env], share: [node_modules], scratch: [build], \
                  prepare: ['cat node_modules/lib > build/made']}\n\
                  validation: {acceptance: ['sh check.sh']}\nmerge: {verify: ['sh check.sh']}\n";
    let check = "set -e\ncat .env build/made\ntest \"$HOME\" != \"$(dirname \"$RUSTUP_HOME\")\"\n\
                 test \"$(basename \"$RUSTUP_HOME\")\" = .rustup\n";
    let stage = one_task(config, Script::new())
        .with_file("check.sh", check)
        .with_file(".gitignore", "/.env\n/node_modules\n/build\n");
    fs::create_dir(stage.env.path("home/.rustup")).unwrap();
    stage.write(".env", "settings\n");
    stage.write("node_modules/lib", "library\n");
    stage.run().exits(0);
    assert_eq!(failures(&stage), Vec::<String>::new());
    assert_eq!(stage.events("verify.finished")[0]["result"], "passed");
    assert_eq!(stage.landed(), [subject("task-001")]);
    stage.assert_tidy();
}

#[test]
fn work_that_breaks_what_prepares_a_working_copy_fails_its_acceptance() {
    let config = "worktree: {prepare: ['! grep broken src/a.txt']}\n\
                  validation: {acceptance: ['echo never reached; exit 7']}\n";
    let script =
        Script::new().attempt("task-001", 1, &commit("task-001", &[("src/a.txt", "broken\n")]));
    let stage = one_task(config, script);
    stage.run();
    let told = &failures(&stage)[0];
    assert_eq!(told, "`! grep broken src/a.txt` failed with exit code 1:\n  broken");
}

#[test]
fn checks_find_nothing_of_the_person_in_the_directories_above() {
    let config = "validation: {acceptance: ['sh above.sh']}\nmerge: {verify: ['sh above.sh']}\n";
    let above = "while [ $PWD != / ]; do cd ..; ! test -e untracked || exit 1; done\n";
    let stage = one_task(config, Script::new())
        .with_file("above.sh", above)
        .with_file(".gitignore", "/untracked\n");
    stage.write("untracked", "the person's\n");
    stage.run().exits(0);
    assert_eq!(failures(&stage), Vec::<String>::new());
    assert_eq!(stage.landed(), [subject("task-001")]);
    assert_eq!(places(&stage), 0, "checkouts were left");
    stage.assert_tidy();
}

#[test]
fn one_check_leaves_nothing_for_the_next() {
    let config = "validation: {acceptance: ['sh fresh.sh']}\nmerge: {verify: ['sh fresh.sh']}\n";
    let fresh = "set -e\nfor place in $HOME $TMPDIR; do\n\
                 test -z \"$(ls -A $place)\"\ntouch $place/poison\ndone\n";
    let stage = one_task(config, Script::new()).with_file("fresh.sh", fresh);
    stage.run().exits(0);
    assert_eq!(failures(&stage), Vec::<String>::new());
    assert_eq!(stage.events("verify.finished")[0]["result"], "passed");
    stage.assert_tidy();
}

#[test]
fn what_a_killed_orchestrator_was_checking_is_removed_in_the_end() {
    let stage = one_task("merge: {verify: ['sh wait.sh checked']}\n", Script::new());
    let mut running = stage.begin();
    running.wait_for_event("verify.started", 1);
    wait_until("there is a checkout", || places(&stage) == 1);
    running.kill();
    wait_until("no process is left", || stage.processes().is_empty());
    assert_eq!(places(&stage), 1, "nobody was there to remove it");
    stage.signal("checked");
    stage.resume().exits(0);
    assert_eq!(places(&stage), 0);
    stage.assert_tidy();
}

#[test]
fn a_planner_that_wants_a_command_run_that_agents_may_not_run_plans_again() {
    let task = |commands: &[&str]| task("task-001", "only", "src/a.txt").accepts(commands);
    let (evil, good) = ("touch ../../../../evil && true", "sh wait.sh checked");
    let again = json!({"role": "planner", "contains": "acceptance[1]"});
    let script = Script::new()
        .reply(json!({"when": again, "output": plan_value(&[task(&[good])])}))
        .plans(&[task(&[good, evil])])
        .works("task-001", &[("src/a.txt", "a\n")])
        .passes();
    let stage = Stage::new("").script(&script).decisions(APPROVE);
    stage.signal("checked");
    stage.run().exits(0);
    let ends = stage.events("agent.exited");
    let problems = ends[0]["outcome"]["problems"][0].as_str().unwrap();
    assert!(problems.starts_with("tasks[0].acceptance[1]"), "{problems}");
    assert!(problems.contains(evil), "{problems}");
    assert_eq!(stage.gates()[0], "plan");
    assert_eq!(stage.events("gate.opened").iter().filter(|it| it["gate"] == "plan").count(), 1);
    assert_eq!(stage.landed(), [subject("task-001")]);
    stage.assert_tidy();
}

#[test]
fn commands_in_a_plan_of_the_persons_are_theirs() {
    let command = "sh -c 'echo as the person wants it'";
    let tasks = [task("task-001", "only", "src/a.txt").accepts(&[command])];
    let stage = one_task("", Script::new()).plan(&plan(&tasks));
    stage.run().exits(0);
    let kept = stage.session().join("attempts/task-001.a1/acceptance.json");
    let results: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(results[0]["output"], "as the person wants it\n");
    assert_eq!(stage.landed(), [subject("task-001")]);
}

/// What the validator was told.
fn validator_prompt(stage: &Stage) -> String {
    let entries = fs::read_dir(stage.session().join("attempts")).unwrap();
    let specs = entries.map(|it| {
        let text = fs::read(it.unwrap().path().join("spec.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()
    });
    let mut found = specs.filter(|spec| spec["work"]["validate"].is_object());
    found.next().unwrap()["order"]["prompt"].as_str().unwrap().to_owned()
}

#[test]
fn diagnostics_are_run_for_the_validator_and_decide_nothing_by_themselves() {
    let config = "validation: {acceptance: ['sh first.sh'], validator_diagnostics: {timeout: 1s, \
                  commands: ['sh first.sh', 'sh look.sh', 'sh wait.sh never', 'no-such-tool']}}\n";
    let stage = one_task(config, Script::new())
        .with_file("first.sh", "echo it was the first\n")
        .with_file("look.sh", "echo the letter looks small; exit 3\n");
    stage.run().exits(0);
    assert_eq!(failures(&stage), Vec::<String>::new());
    assert_eq!(stage.landed(), [subject("task-001")]);
    let told = validator_prompt(&stage);
    assert_eq!(told.matches("it was the first").count(), 1, "{told}");
    assert!(told.contains("diagnostic 1: FAILED with exit code 3"), "{told}");
    assert!(told.contains("$ sh look.sh\nthe letter looks small\n"), "{told}");
    assert!(told.contains("diagnostic 2: FAILED, took too long"), "{told}");
    assert!(!told.contains("no-such-tool"), "{told}");
    stage.assert_tidy();
}

#[test]
fn empty_submodules_are_told_of_once() {
    let stage = one_task("", Script::new());
    let head = stage.git(&["rev-parse", "HEAD"]);
    let entry = format!("160000,{head},vendor/lib");
    stage.git(&["update-index", "--add", "--cacheinfo", &entry]);
    stage.git(&["commit", "-q", "--amend", "--no-edit"]);
    fs::create_dir_all(stage.repository().join("vendor/lib")).unwrap();
    let told = stage.run().exits(0);
    let warning = "warning: submodules are empty for agents and checks: vendor/lib;";
    assert_eq!(told.stderr.matches(warning).count(), 1, "{told}");
    assert_eq!(stage.landed(), [subject("task-001")]);

    let without = one_task("", Script::new()).run().exits(0);
    assert!(!without.stderr.contains("submodules"), "{without}");
}
