//! Command lines as agents write them all day. Not one may be refused: each
//! refusal costs a turn.

use blueflame_core::ids::Role;
use blueflame_core::policy::Policy;

use super::ground::{bash, rules};

const ORDINARY: &[&str] = &[
    "ls -la",
    "ls src tests",
    "pwd",
    "cat README.md",
    "cat src/a.rs | head -50",
    "head -100 src/a.rs",
    "tail -n 20 src/a.rs",
    "wc -l src/*.rs",
    "grep -rn \"fn main\" src",
    "grep -n \"TODO\\|FIXME\" -r src --include=*.rs",
    "git status",
    "git status --short",
    "git status --porcelain",
    "git diff",
    "git diff --stat",
    "git diff HEAD~1 -- src/a.rs",
    "git diff --cached",
    "git log --oneline -10",
    "git log -5 --stat",
    "git log -p -1 -- src/a.rs",
    "git add src/a.rs tests/a.rs",
    "git add -A",
    "git add .",
    "git commit -m \"feat(task-001): add a cache\"",
    "git commit -m 'fix(task-001): it; really && truly | yes'",
    "git add -A && git commit -m \"feat(task-001): add a cache\"",
    "git add src && git commit -q -m \"fix(task-001): x\" && git log --oneline -1",
    "go test ./...",
    "go test ./... 2>&1 | tail -30",
    "go test -run TestFoo ./pkg/... -v 2>&1 | grep -E \"FAIL|ok\"",
    "go build ./...",
    "go vet ./... && go test ./...",
    "make",
    "make test",
    "make -j4 test",
    "npm test",
    "npm test -- --watch=false",
    "npm run lint",
    "npm run build 2>&1 | tail -20",
    "CI=1 npm test",
    "cd src && go build ./... && cd ..",
    "cd src && ls",
    "cat package.json | grep '\"version\"'",
    "echo \"done\"",
    "echo \"exit: $?\"",
    "go test ./... ; echo \"exit: $?\"",
    "go test ./... || true",
    "go test ./... > /tmp/out.txt 2>&1; tail -5 /tmp/out.txt",
    "timeout 60 go test ./...",
    "time go build ./...",
    "for f in src/*.go; do echo \"$f\"; done",
    "if [ -f go.mod ]; then echo yes; else echo no; fi",
    "test -f src/a.rs && echo exists",
    "[ -d src ] && ls src",
    "ls src | sort | uniq -c",
    "git diff | head -100",
    "git log --format='%h %s' -5",
    "printf '%s\\n' hello",
    "true && echo ok",
    "wc -l < src/a.rs",
    "cat <<'EOF' > src/new.txt\nhello $world `x`\nEOF",
    "git commit -m \"$(cat <<'EOF'\nfeat(task-001): add it\n\nBody with `code` and $vars.\n\nCo-Authored-By: Claude <noreply@anthropic.com>\nEOF\n)\"",
];

#[test]
fn ordinary_lines_of_agents_are_allowed_by_default() {
    let policy = Policy::new(rules("", Role::Worker)).expect("good rules");
    let refused: Vec<String> = ORDINARY
        .iter()
        .map(|line| (line, bash(&policy, line)))
        .filter(|(_, verdict)| !verdict.is_allowed())
        .map(|(line, verdict)| format!("{line}: {} {}", verdict.rule, verdict.details))
        .collect();
    assert_eq!(refused, [""; 0]);
}
