//! The hook of the real codex, whole and broken in every way that codex itself
//! takes no notice of.

use std::fmt::Write as _;
use std::fs;

use crate::install;
use crate::stage::{Agent, Run, Stage};

/// Calls a tool once.
const ONE_CALL: &str = "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: \"echo ran > src.txt\"}}]
  - say: Done.
";

/// codex behind a script that changes its arguments first.
fn altered(change: &str) -> Option<Stage> {
    let lines = format!(
        "set -f\narguments=()\nfor it in \"$@\"; do\n{change}\narguments+=(\"$it\")\ndone\n\
         set -- \"${{arguments[@]}}\""
    );
    Some(Stage::behind("codex", &install::codex()?, &lines).script(ONE_CALL))
}

/// Trusted although it is another one than Blue Flame named.
const TRUSTED: &str =
    "[ \"$it\" = exec ] && { arguments+=(exec --dangerously-bypass-hook-trust); continue; }";

fn unarmed(run: &Run) {
    run.was_never_armed();
    assert_eq!(run.file("src.txt"), None);
}

#[test]
fn an_unchanged_command_line_works() {
    let Some(stage) = altered(":") else { return };
    let run = stage.run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!((run.sealed.calls, run.sealed.denied), (1, 1), "{}", run.story());
}

#[test]
fn a_hook_that_is_not_trusted_is_never_armed() {
    let Some(stage) = altered("it=${it//sha256:/sha256:00}") else { return };
    unarmed(&stage.run());
}

#[test]
fn a_hook_program_that_is_missing_is_never_armed() {
    let missing = format!("{TRUSTED}\nit=${{it// __hook /-is-not-there __hook }}");
    let Some(stage) = altered(&missing) else { return };
    unarmed(&stage.run());
}

#[test]
fn a_hook_with_another_proof_is_never_armed() {
    let other = format!(
        "{TRUSTED}\ncase $it in hooks.S*) it=${{it/\\\",\\\"timeout/x\\\",\\\"timeout}};; esac"
    );
    let Some(stage) = altered(&other) else { return };
    unarmed(&stage.run());
}

#[test]
fn hooks_that_are_switched_off_are_never_armed() {
    let Some(stage) = altered("[ \"$it\" = - ] && arguments+=(--disable hooks)") else { return };
    unarmed(&stage.run());
}

/// The hook is alive at the start; and then, before each call, this runs instead.
fn broken_later(command: &str) -> Option<Run> {
    let broken = format!(
        "{TRUSTED}\ncase $it in hooks.PreToolUse=*) it='hooks.PreToolUse=[{{hooks=[{{type=\"command\",command=\"{command}\",timeout=1}}]}}]';; esac"
    );
    Some(altered(&broken)?.run())
}

#[test]
fn a_hook_that_is_killed_ends_the_run() {
    let Some(run) = broken_later("kill -9 $$") else { return };
    run.was_caught();
}

#[test]
fn a_hook_that_crashes_ends_the_run() {
    let Some(run) = broken_later("exit 1") else { return };
    run.was_caught();
}

#[test]
fn a_hook_that_hangs_ends_the_run() {
    let Some(run) = broken_later("sleep 60") else { return };
    run.was_caught();
}

#[test]
fn a_hook_that_says_nothing_ends_the_run() {
    let Some(run) = broken_later("true") else { return };
    run.was_caught();
}

#[test]
fn many_hooks_at_once_write_whole_lines() {
    for agent in [Agent::Codex, Agent::Opencode] {
        many_hooks_at_once(agent);
    }
}

fn many_hooks_at_once(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let mut calls = String::new();
    for n in 0..40 {
        let command = if n % 2 == 0 { format!("echo {n}") } else { format!("forbidden {n}") };
        let _ = writeln!(calls, "      - {{tool: Bash, input: {{command: \"{command}\"}}}}");
    }
    let script = format!("replies:\n  - when: {{turn: 0}}\n    call:\n{calls}  - say: Done.\n");
    let run = stage.script(&script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    // Each line is read as JSON of its own.
    let audit = run.audit();
    assert_eq!((audit.len(), run.sealed.calls, run.sealed.denied), (40, 40, 20));
    let mut targets: Vec<&str> =
        audit.iter().map(|line| line["target"].as_str().unwrap()).collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len(), 40, "{targets:?}");
}

#[test]
fn where_and_how_a_command_runs_is_judged_too() {
    let Some(stage) = Stage::new(Agent::Codex) else { return };
    let script = "
replies:
  - when: {turn: 0}
    call:
      - {tool: exec_command, input: {cmd: \"echo x > a.txt\", workdir: /}}
      - {tool: exec_command, input: {cmd: \"echo x > a.txt\", workdir: \"..\"}}
      - {tool: exec_command, input: {cmd: echo x, shell: /tmp/mine}}
      - {tool: exec_command, input: {cmd: cat, tty: true}}
      - {tool: exec_command, input: {cmd: echo fine, workdir: .}}
      - {tool: write_stdin, input: {session_id: 1, chars: \"rm -rf .\\n\"}}
      - {tool: exec, input: \"text('x')\"}
  - say: Done.
";
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let decisions: Vec<(String, String)> = run
        .audit()
        .iter()
        .map(|line| ["decision", "rule"].map(|key| line[key].as_str().unwrap().to_owned()))
        .map(|[decision, rule]| (decision, rule))
        .collect();
    let denied =
        |rule: &str| decisions.iter().filter(|it| **it == ("deny".into(), rule.into())).count();
    assert_eq!(denied("paths.outside"), 2, "{decisions:?}");
    assert_eq!(denied("tools.input"), 2, "{decisions:?}");
    assert_eq!(decisions.iter().filter(|(it, _)| it == "allow").count(), 1, "{decisions:?}");
}

#[test]
fn the_socket_of_the_hook_cannot_be_replaced_from_inside() {
    let Some(stage) = Stage::new(Agent::Codex) else { return };
    // As if a test that the agent may run had turned on it.
    let stage = stage.with(|spec| spec.policy.allowed_commands.push("sh attack.sh".into()));
    let script = "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: \"sh attack.sh\"}}]
  - say: Done.
";
    fs::write(stage.workspace.join("attack.sh"), ATTACK).unwrap();
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let told = run.last_message() + &run.requests().last().unwrap().to_string();
    assert!(told.contains("socket found"), "{told}");
    for failed in ["removed it", "moved it", "put one there"] {
        assert!(!told.contains(failed), "{failed}: {told}");
    }
}

/// The hook's command line is on codex's own, which everything inside can read.
const ATTACK: &str = "
hook=$(tr '\\0' '\\n' < /proc/$PPID/cmdline | grep -o '/[^ ]*/hook' | head -1)
for it in /proc/[0-9]*/cmdline; do
  found=$(tr '\\0' '\\n' < $it 2>/dev/null | grep -o \"/[^ ']*/hook'\" | head -1 | tr -d \"'\")
  [ -n \"$found\" ] && hook=$found
done
test -S \"$hook\" && echo socket found
rm -f \"$hook\" && ! test -e \"$hook\" && echo removed it
mv \"$hook\" \"$hook.old\" && echo moved it
touch \"$(dirname $hook)/new\" && echo put one there
true
";
