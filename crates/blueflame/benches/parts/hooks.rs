//! Hooks that could stand in our place, as programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// In bash itself, with one `jq` for everything that it has to know.
pub const TUNED: &str = r#"#!/bin/bash
IFS=$'\t' read -r tool file command < <(
  jq -r '[.tool_name, .tool_input.file_path // "-", .tool_input.command // "-"] | @tsv')
deny() { echo "$1" >&2; exit 2; }
case $tool in Read|Write|Edit|Glob|Grep|Bash) ;; *) deny "tool $tool" ;; esac
[[ $file =~ (^|/)(\.env|\.git/|secrets/) ]] && deny "path $file"
[[ $command =~ (git[[:space:]]+push|curl|wget|sudo) ]] && deny "command $command"
echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
"#;

/// As the plans of the seeds have it: a check for each line of their table, each by
/// programs, and a line in the audit log.
pub const SEED: &str = r#"#!/bin/bash
INPUT=$(cat)
TOOL=$(echo "$INPUT" | jq -r '.tool_name')
FILE=$(echo "$INPUT" | jq -r '.tool_input.file_path // empty')
COMMAND=$(echo "$INPUT" | jq -r '.tool_input.command // empty')
CWD=$(echo "$INPUT" | jq -r '.cwd')
log() {
  jq -cn --arg t "$(date -u +%FT%TZ)" --arg tool "$TOOL" --arg target "$FILE$COMMAND" \
    --arg decision "$1" --arg rule "$2" '{timestamp: $t, agent_id: "worker-a1b2c3d4",
    tool: $tool, target: $target, decision: $decision, rule: $rule, details: ""}' \
    >> "${TMPDIR:-/tmp}/audit.jsonl"
}
block() { log block "$1"; echo "$1" >&2; exit 2; }
printf '%s\n' Read Write Edit Glob Grep Bash | grep -qx "$TOOL" || block tool_not_allowed
printf '%s\n' WebFetch WebSearch | grep -qx "$TOOL" && block tool_blocked
if [ -n "$FILE" ]; then
  TARGET=$(realpath -m --relative-to="$CWD" "$FILE")
  for PATTERN in '^\.env' '(^|/)\.git/' '^secrets/'; do
    echo "$TARGET" | grep -qE "$PATTERN" && block path_blocked
  done
  echo "$TARGET" | grep -qE '^(src|tests|notes)/|\.(md|txt)$' || block path_not_allowed
fi
if [ -n "$COMMAND" ]; then
  echo "$COMMAND" | grep -qE '^(git|cargo|ls|cat)( |$)' || block command_not_allowed
  for PATTERN in 'git +push' 'curl|wget' 'sudo'; do
    echo "$COMMAND" | grep -qE "$PATTERN" && block command_blocked
  done
fi
log allow path_allowed
jq -cn '{hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "allow"}}'
"#;

pub fn script(place: &Path, name: &str, text: &str) -> PathBuf {
    let path = place.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
