//! `blueflame demo`, as a person sees it: unattended, at a real terminal, and
//! with a real agent program.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../agents/install.rs"]
mod install;
mod screen;

use std::path::{Path, PathBuf};
use std::process::Command;

use blueflame_testkit::TestEnv;

use screen::Screen;

const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");

fn demo(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.command(BLUEFLAME);
    command.arg("demo").args(arguments).arg("--keep").arg(env.path("kept"));
    command
}

fn project(env: &TestEnv) -> PathBuf {
    env.path("kept/project")
}

fn git(env: &TestEnv, arguments: &[&str]) -> String {
    let mut command = env.command("git");
    let output = command.args(arguments).current_dir(project(env)).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What the demo promises: everything landed, checked, and nothing is left.
fn everything_landed(env: &TestEnv) {
    assert_eq!(
        git(env, &["log", "--reverse", "--format=%s", "main"]),
        "chore: a small project\n\
         feat(task-001): greet by name\n\
         test(task-002): the greeting, with and without a name\n\
         feat(task-003): say goodbye"
    );
    assert_eq!(git(env, &["status", "--porcelain"]), "", "the checkout is not clean");
    let check = env.command("sh").arg("check.sh").current_dir(project(env)).status().unwrap();
    assert!(check.success());
    let left = std::fs::read_dir(project(env).join(".trees")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "workspaces were left behind");
    let replay = env.command(BLUEFLAME).arg("replay").current_dir(project(env)).output().unwrap();
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stderr));
}

/// Nobody answers, so it can go on: then its directory is still there.
#[test]
fn one_that_can_go_on_is_not_removed() {
    let env = TestEnv::new();
    let output = env.command(BLUEFLAME).arg("demo").output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{words}");
    let (_, place) = words.rsplit_once("or `blueflame demo --keep ").unwrap();
    let place = Path::new(place.trim_end().trim_end_matches('`'));
    assert!(place.starts_with(env.path("tmp")) && place.join("project").is_dir(), "{words}");
    std::fs::rename(place, env.path("kept")).unwrap();
    assert!(demo(&env, &["--yes"]).status().unwrap().success());
    everything_landed(&env);
}

#[test]
fn it_lands_everything_by_itself() {
    let env = TestEnv::new();
    let output = demo(&env, &["--yes"]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    // One call that was denied, and one attempt that came to nothing.
    assert!(words.contains("denied (paths.blocked): Write"), "{words}");
    assert!(words.contains("stopped without changing anything"), "{words}");
    everything_landed(&env);
    // No key, no login and no network were needed, and none was asked for.
    let trailers = git(&env, &["log", "-1", "--format=%(trailers:only,unfold)", "main"]);
    for name in
        ["Session", "Task: task-003", "Changeset: goodbye.c1", "Agent", "Cost", "Validation"]
    {
        assert!(trailers.contains(&format!("Blueflame-{name}")), "{trailers}");
    }
}

#[test]
fn with_the_real_claude_it_lands_the_same() {
    let Some(claude) = install::claude() else { return };
    it_lands_the_same_with("claude", &claude);
}

#[test]
fn with_the_real_codex_it_lands_the_same() {
    let Some(codex) = install::codex() else { return };
    it_lands_the_same_with("codex", &codex);
}

#[test]
fn with_the_real_opencode_it_lands_the_same() {
    let Some(opencode) = install::opencode() else { return };
    it_lands_the_same_with("opencode", &opencode);
}

fn it_lands_the_same_with(executor: &str, program: &Path) {
    let env = TestEnv::new();
    let path = format!(
        "{}:{}",
        program.parent().unwrap_or(Path::new("/")).display(),
        std::env::var("PATH").unwrap()
    );
    let output = demo(&env, &["--yes", "--executor", executor]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    everything_landed(&env);
}

#[test]
fn at_a_terminal_the_person_is_asked_and_obeyed() {
    let env = TestEnv::new();
    let mut screen = Screen::of(demo(&env, &[]));
    screen.wait_for("[q]uit >");
    screen.type_line("no idea");
    screen.wait_for("is not one of the choices");
    screen.type_line("a");
    screen.wait_for("Changeset 1 of 2: greeting");
    screen.type_line("r it does not say please");
    screen.wait_for("Changeset 2 of 2: goodbye");
    screen.type_line("a");
    screen.wait_for("Cycle 1 of 5 is over");
    screen.type_line("c");
    screen.wait_for("Changeset 1 of 1: greeting");
    screen.type_line("a");
    let (status, shown) = screen.until_the_end();
    assert!(status.success(), "{shown}");
    assert_eq!(
        git(&env, &["log", "--reverse", "--format=%s", "main"]),
        "chore: a small project\n\
         feat(task-003): say goodbye\n\
         feat(task-001): greet by name\n\
         test(task-002): the greeting, with and without a name"
    );
    // The reason reached the next worker.
    let record = std::fs::read_dir(project(&env).join(".git/blueflame/sessions")).unwrap();
    let session = record.flatten().next().unwrap().path();
    let spec = std::fs::read_to_string(session.join("attempts/task-001.a2/spec.json")).unwrap();
    assert!(spec.contains("it does not say please"), "the rejection was not passed on");
}

#[test]
fn a_stopped_demo_is_gone_on_with() {
    let env = TestEnv::new();
    let mut screen = Screen::of(demo(&env, &[]));
    screen.wait_for("[q]uit >");
    screen.type_line("a");
    screen.wait_for("cycle 1 began");
    screen.interrupt();
    let (status, shown) = screen.until_the_end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.contains("blueflame resume"), "{shown}");
    let output = demo(&env, &["--yes"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(git(&env, &["rev-list", "--count", "main"]), "4");
}

#[test]
fn without_anyone_to_ask_it_says_which_question_is_open() {
    let env = TestEnv::new();
    let output = demo(&env, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("no answer to the question: `plan`"), "{words}");
}

/// A planner that asks before it plans, with the real claude: its question comes
/// to the person's terminal and the answer goes back to it.
/// A session whose planner, the real claude, asks a question.
fn with_a_planner_that_asks(env: &TestEnv) -> Option<Screen> {
    let claude = install::claude()?;
    let repository = env.repository("asked");
    repository.write(
        "blueflame.yaml",
        "schema_version: 2\n\
         project: {name: asked, base_branch: main}\n\
         planning: {interactive: true}\n\
         gateway: {upstream: 'script:../script.yaml'}\n",
    );
    repository.commit("chore: begin");
    std::fs::write(
        env.path("script.yaml"),
        "
replies:
  - when: {role: planner, turn: 0}
    call:
      - tool: AskUserQuestion
        input:
          questions:
            - question: Which language?
              header: Language
              multiSelect: false
              options:
                - {label: English, description: The usual}
                - {label: French, description: The other}
  - when: {contains: French}
    output:
      tasks:
        - {id: task-001, title: Greet in French, description: Say bonjour, priority: 1, file_locks: [src/greet.txt]}
",
    )
    .unwrap();
    let path = format!(
        "{}:{}",
        claude.parent().unwrap_or(Path::new("/")).display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = env.command(BLUEFLAME);
    command.args(["run", "--task", "greet"]).current_dir(repository.path()).env("PATH", path);
    let mut screen = Screen::of(command);
    screen.wait_for("Which language?");
    screen.wait_for("French");
    screen.wait_for(">");
    Some(screen)
}

#[test]
fn a_planner_asks_the_person_at_the_terminal() {
    let env = TestEnv::new();
    let Some(mut screen) = with_a_planner_that_asks(&env) else { return };
    screen.type_line("2");
    screen.wait_for("Greet in French");
    screen.wait_for("[q]uit >");
    screen.type_line("q");
    let (status, shown) = screen.until_the_end();
    assert_eq!(status.code(), Some(4), "{shown}");
}

#[test]
fn an_interrupt_at_a_planners_question_leaves() {
    let env = TestEnv::new();
    let Some(screen) = with_a_planner_that_asks(&env) else { return };
    screen.interrupt();
    let (status, shown) = screen.until_the_end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.contains("blueflame resume"), "{shown}");
}

#[test]
fn with_prepared_answers_the_planner_plans_alone() {
    let env = TestEnv::new();
    let repository = env.repository("alone");
    repository.write(
        "blueflame.yaml",
        "schema_version: 2\n\
         project: {name: alone, base_branch: main}\n\
         planning: {interactive: true}\n\
         executors: {default: embedded}\n\
         gateway: {upstream: 'script:../script.yaml'}\n",
    );
    repository.commit("chore: begin");
    let task = "{id: task-001, title: T, description: D, priority: 1, file_locks: [src/a.txt]}";
    let script = format!("replies: [{{when: {{role: planner}}, output: {{tasks: [{task}]}}}}]");
    std::fs::write(env.path("script.yaml"), script).unwrap();
    std::fs::write(env.path("answers.yaml"), "plan: [quit]\n").unwrap();
    let mut command = env.command(BLUEFLAME);
    command.args(["run", "--task", "greet", "--decisions-file"]).arg(env.path("answers.yaml"));
    let output = command.current_dir(repository.path()).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("it plans alone"), "{words}");
    assert!(words.contains("returned a plan of 1 task"), "{words}");
    assert_eq!(output.status.code(), Some(4), "{words}");
}
