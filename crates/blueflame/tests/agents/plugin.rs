//! The plugin of the real opencode, whole and broken in every way that opencode
//! itself takes no notice of; and what else opencode would load or ask for.

use std::fs;
use std::path::Path;

use blueflame::sandbox::Tier;

use crate::install;
use crate::needed;
use crate::stage::{Agent, Run, Stage};

/// Calls a tool once, which is allowed.
const ONE_CALL: &str = "
replies:
  - when: {turn: 0}
    call: [{tool: Write, input: {file_path: src/made.txt, content: made}}]
  - say: Done.
";

/// opencode behind a script that runs first. In it, `$plugin` is a plugin of which
/// there is a copy that can be changed, and `$settings` the settings that name it.
fn altered(change: &str) -> Option<Stage> {
    let lines = format!(
        "set -e
plugin=$TMPDIR/plugin.js settings=$TMPDIR/settings.json
cp \"$(dirname \"$OPENCODE_CONFIG\")/blueflame-plugin.js\" \"$plugin\"
sed \"s|file://[^\\\"]*blueflame-plugin.js|file://$plugin|\" \"$OPENCODE_CONFIG\" > \"$settings\"
export OPENCODE_CONFIG=$settings
{change}"
    );
    let stage = Stage::behind("opencode", &install::opencode()?, &lines);
    fs::create_dir(stage.workspace.join("src")).unwrap();
    Some(stage.script(ONE_CALL))
}

fn unarmed(change: &str) {
    let Some(stage) = altered(change) else { return };
    let run = stage.run();
    run.was_never_armed();
    assert_eq!(run.file("src/made.txt"), None);
}

fn violated(change: &str) -> Option<Run> {
    let run = altered(change)?.run();
    run.was_caught();
    Some(run)
}

#[test]
fn an_unchanged_plugin_works() {
    let Some(stage) = altered(":") else { return };
    let run = stage.run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!((run.sealed.calls, run.sealed.denied), (1, 0), "{}", run.story());
    assert_eq!(run.file("src/made.txt").as_deref(), Some("made"));
}

#[test]
fn a_plugin_that_is_not_named_is_never_armed() {
    unarmed(r#"sed -i 's|"plugin":\[[^]]*\]|"plugin":[]|' "$settings""#);
}

#[test]
fn a_plugin_that_is_missing_is_never_armed() {
    unarmed(r#"rm "$plugin""#);
}

#[test]
fn a_plugin_that_cannot_be_read_is_never_armed() {
    unarmed(r#"echo 'this is { no program' > "$plugin""#);
}

#[test]
fn plugins_that_are_switched_off_are_never_armed() {
    unarmed("export OPENCODE_PURE=1");
}

#[test]
fn a_plugin_without_its_hook_program_is_never_armed() {
    unarmed(r#"sed -i 's|const HOOK = \["|const HOOK = ["/nowhere|' "$plugin""#);
}

#[test]
fn a_plugin_with_another_proof_is_never_armed() {
    unarmed(r#"sed -i '1s|"\];|x"];|' "$plugin""#);
}

/// The hook is alive at the start; and then, before each call, this runs instead.
fn broken_later(command: &str) -> String {
    let hook = format!(
        "event=$(cat); case $event in *SessionStart*) printf %s \\\"$event\\\" | \\\"$@\\\";; \
         *) {command};; esac"
    );
    format!(
        "cat > \"$TMPDIR/start\" <<'START'\nconst HOOK = [\"/bin/bash\",\"-c\",\"{hook}\",\"hook\",\nSTART\n\
         {{ cat \"$TMPDIR/start\"; sed '1s|const HOOK = .||; s|PATIENCE = 60_000|PATIENCE = 2_000|' \"$plugin\"; }} > \"$plugin.new\"\n\
         mv \"$plugin.new\" \"$plugin\""
    )
}

#[test]
fn when_its_hook_is_killed_no_call_is_made() {
    let Some(run) = violated(&broken_later("kill -9 $$")) else { return };
    assert_eq!(run.file("src/made.txt"), None);
}

#[test]
fn when_its_hook_crashes_no_call_is_made() {
    let Some(run) = violated(&broken_later("exit 1")) else { return };
    assert_eq!(run.file("src/made.txt"), None);
}

#[test]
fn when_its_hook_hangs_no_call_is_made() {
    let Some(run) = violated(&broken_later("sleep 600")) else { return };
    assert_eq!(run.file("src/made.txt"), None);
}

#[test]
fn a_hook_that_says_nothing_ends_the_run() {
    violated(&broken_later("true"));
}

#[test]
fn a_plugin_that_asks_only_once_ends_the_run() {
    violated(r#"sed -i 's|"tool.execute.before"|"something.else"|' "$plugin""#);
}

#[test]
fn a_plugin_that_takes_no_for_a_yes_ends_the_run() {
    let change = r#"sed -i 's|else deny(|else resolve(|' "$plugin""#;
    let Some(stage) = altered(change) else { return };
    let script = "
replies:
  - when: {turn: 0}
    call: [{tool: Write, input: {file_path: forbidden.md, content: made}}]
  - say: Done.
";
    let run = stage.script(script).run();
    run.was_caught();
}

#[test]
fn every_tool_is_judged_by_what_it_does() {
    let Some(stage) = Stage::new(Agent::Opencode) else { return };
    if !needed::is_there("rg") {
        return;
    }
    let script = "
replies:
  - when: {turn: 0}
    call:
      - {tool: bash, input: {command: \"echo x > a.txt\", workdir: /}}
      - {tool: bash, input: {command: \"echo x > a.txt\", workdir: \"..\"}}
      - {tool: bash, input: {command: echo fine, workdir: .}}
      - {tool: read, input: {filePath: /etc/passwd}}
      - {tool: read, input: {filePath: README.md}}
      - {tool: glob, input: {pattern: \"*\", path: /etc}}
      - {tool: glob, input: {pattern: \"*.md\"}}
      - {tool: grep, input: {pattern: root, path: /etc}}
      - {tool: grep, input: {pattern: project}}
      - {tool: edit, input: {filePath: README.md, oldString: A, newString: B}}
      - {tool: webfetch, input: {url: \"http://127.0.0.1/\", format: text}}
      - {tool: task, input: {prompt: do it, description: d, subagent_type: general}}
      - {tool: todowrite, input: {todos: []}}
      - {tool: bash, input: \"{broken\"}
  - say: Done.
";
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let mut decisions: Vec<[String; 3]> = run
        .audit()
        .iter()
        .map(|line| ["tool", "decision", "rule"].map(|key| line[key].as_str().unwrap().to_owned()))
        .collect();
    decisions.sort();
    let expected = [
        ["Bash", "allow", "commands.allowed"],
        ["Bash", "deny", "paths.outside"],
        ["Bash", "deny", "paths.outside"],
        ["Edit", "deny", "paths.not-allowed"],
        ["Glob", "allow", "paths.read"],
        ["Glob", "deny", "paths.outside"],
        ["Grep", "allow", "paths.read"],
        ["Grep", "deny", "paths.outside"],
        ["Read", "allow", "paths.read"],
        ["Read", "deny", "paths.outside"],
    ];
    assert_eq!(decisions, expected, "{}", run.story());
    // The others are not even there to be called.
    let told = run.requests().last().unwrap().to_string();
    assert_eq!(told.matches("Model tried to call unavailable tool").count(), 4, "{told}");
    assert!(told.contains("README.md"), "{told}");
    let offered = &run.requests()[0]["tools"];
    let names: Vec<&str> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bash", "edit", "glob", "grep", "read", "write"]);
}

#[test]
fn without_the_program_that_searches_there_is_nothing_to_search_with() {
    let Some(stage) = Stage::new(Agent::Opencode) else { return };
    let run =
        stage.with(|spec| spec.path = "/nowhere".into()).script("replies: [{say: Hi.}]").run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let offered = run.requests()[0]["tools"].to_string();
    assert!(offered.contains(r#""name":"read""#), "{offered}");
    assert!(!offered.contains(r#""name":"grep""#) && !offered.contains(r#""name":"glob""#));
    assert!(run.sealed.warnings[0].contains("`rg` is not in PATH"), "{}", run.story());
}

/// All connections of opencode and of what it starts, outside of any sandbox.
#[test]
fn it_reaches_for_nobody_but_the_gateway() {
    let Some(opencode) = install::opencode() else { return };
    if !needed::is_there("strace") || !needed::is_there("rg") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let watched = "strace -f -e trace=connect,sendto,sendmsg -o";
    let lines = format!("exec {watched} '{}' '{}' \"$@\"", trace.display(), opencode.display());
    let stage = Stage::behind("opencode", &opencode, &lines);
    let stage = stage.with(|spec| spec.sandbox.tier = Tier::Off);
    let script = "
replies:
  - when: {turn: 0}
    call:
      - {tool: Grep, input: {pattern: project}}
      - {tool: Read, input: {file_path: README.md}}
  - say: Done.
";
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let trace = fs::read_to_string(&trace).unwrap();
    let called: Vec<&str> = trace.lines().filter(|line| line.contains("AF_INET")).collect();
    assert!(!called.is_empty(), "nothing was traced: {trace}");
    for line in called {
        assert!(line.contains("inet_addr(\"127.0.0.1\")"), "{line}");
    }
}

/// Some models are given patches to write, by their names.
#[test]
fn patches_are_judged_file_by_file_and_made_in_the_workspace() {
    let Some(stage) = Stage::new(Agent::Opencode) else { return };
    let script = r#"
replies:
  - when: {turn: 0}
    call:
      - {tool: apply_patch, input: {patchText: "*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch"}}
      - {tool: apply_patch, input: {patchText: "*** Begin Patch\n*** Add File: src/a.txt\n+x\n*** Add File: no.md\n+x\n*** End Patch"}}
  - say: Done.
"#;
    let run = stage.with(|spec| spec.order.model = "gpt-5.2".into()).script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!(run.file("hello.txt").as_deref(), Some("hello\n"), "{}", run.story());
    assert_eq!((run.file("src/a.txt"), run.file("no.md")), (None, None));
    assert_eq!((run.sealed.calls, run.sealed.denied), (3, 1), "{}", run.story());
}

#[test]
fn nothing_that_the_repository_brings_along_is_loaded() {
    let Some(stage) = Stage::new(Agent::Opencode) else { return };
    let write = |name: &str, text: &str| {
        let path = stage.workspace.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let touch = |name: &str| {
        let place = stage.workspace.join(name);
        format!(
            "import fs from 'node:fs'; fs.writeFileSync({place:?}, 'loaded');\nexport const X = async () => ({{}});\n"
        )
    };
    write(".opencode/plugin/one.js", &touch("plugin-loaded.txt"));
    write(".opencode/plugins/two.js", &touch("plugins-loaded.txt"));
    write(".opencode/tool/three.ts", &touch("tool-loaded.txt"));
    write(".opencode/agent/blueflame.md", "---\nmode: primary\n---\nRULES-OF-THE-REPOSITORY\n");
    write(
        ".opencode/skill/s/SKILL.md",
        "---\nname: s\ndescription: RULES-OF-THE-REPOSITORY\n---\n",
    );
    for name in ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"] {
        write(name, "RULES-OF-THE-REPOSITORY");
    }
    let server = r#"["/bin/sh", "-c", "touch mcp-started.txt; cat"]"#;
    write(
        "opencode.json",
        &format!(
            r#"{{"mcp": {{"evil": {{"type": "local", "command": {server}, "enabled": true}}}},
                "formatter": {{"evil": {{"command": ["/bin/sh", "-c", "touch formatted.txt"], "extensions": [".txt"]}}}},
                "instructions": ["AGENTS.md"], "permission": "allow"}}"#
        ),
    );
    let run = stage.script(ONE_CALL).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!(run.file("src/made.txt").as_deref(), Some("made"));
    let here = fs::read_dir(&run.stage.workspace).unwrap().flatten();
    let names: Vec<String> = here.map(|entry| entry.file_name().into_string().unwrap()).collect();
    let loaded = names.iter().any(|name| Path::new(name).extension().is_some_and(|it| it == "txt"));
    assert!(!loaded, "{names:?}");
    let told = run.told(0);
    assert!(!told.contains("RULES-OF-THE-REPOSITORY"), "{told}");
}

#[test]
fn what_opencode_goes_by_cannot_be_changed_from_inside() {
    let Some(stage) = Stage::new(Agent::Opencode) else { return };
    // As if a test that the agent may run had turned on it.
    let stage = stage.with(|spec| spec.policy.allowed_commands.push("sh attack.sh".into()));
    fs::write(stage.workspace.join("attack.sh"), ATTACK).unwrap();
    let script = "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: \"sh attack.sh\"}}]
  - say: Done.
";
    let run = stage.script(script).run();
    assert_eq!(run.end(), "stopped", "{}", run.story());
    let told = run.last_message() + &run.requests().last().unwrap().to_string();
    for found in [
        "socket found",
        "plugin found",
        "settings found",
        "config found",
        "settings of commands can be written",
    ] {
        assert!(told.contains(found), "{found}: {told}");
    }
    assert!(!told.contains("succeeded"), "{told}");
}

const ATTACK: &str = r#"
plugin=$(dirname "$OPENCODE_CONFIG")/blueflame-plugin.js
config=$(dirname "$OPENCODE_CONFIG")/config
test -s "$config/opencode/package-lock.json" && echo config found
mkdir -p "$XDG_CONFIG_HOME/mine" && echo settings of commands can be written
hook=$(grep -o '"/[^"]*/hook"' "$plugin" | head -1 | tr -d '"')
test -S "$hook" && echo socket found
test -s "$plugin" && echo plugin found
test -s "$OPENCODE_CONFIG" && echo settings found
for it in "$hook" "$plugin" "$OPENCODE_CONFIG" "$config/opencode/package-lock.json"; do
  rm -f "$it" 2>/dev/null && ! test -e "$it" && echo removing succeeded
  mv "$it" "$it.old" 2>/dev/null && echo moving succeeded
  touch "$(dirname "$it")/new" 2>/dev/null && echo adding succeeded
done
{ echo >> "$plugin"; } 2>/dev/null && echo writing succeeded
{ mkdir "$config/opencode/plugin"; } 2>/dev/null && echo another plugin succeeded
env | grep -q ^BLUEFLAME_TOKEN && echo reading the token succeeded
true
"#;

/// It makes its conversation shorter, asks again, and so on: for ever.
#[test]
fn a_context_that_never_fits_is_a_loop_that_ends() {
    let Some(stage) = Stage::new(Agent::Opencode) else { return };
    let fail = "status: 400, type: context_length_exceeded, \
                message: \"This model's maximum context length is 8 tokens.\"";
    let run = stage.script(&format!("replies: [{{fail: {{{fail}}}}}]")).run();
    assert_eq!(run.end(), "crashed", "{}", run.story());
    assert!(run.requests().len() < 40, "{} requests", run.requests().len());
}
