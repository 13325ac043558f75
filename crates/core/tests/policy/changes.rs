//! Finished changes.

use blueflame_core::ids::Role;
use blueflame_core::policy::{Change, ChangeKind, Policy};

use super::ground::{locked, rules};

fn change(path: &str, kind: ChangeKind) -> Change {
    Change { path: path.to_owned(), kind }
}

#[test]
fn a_change_is_judged_as_a_whole() {
    let rules = locked(rules("worktree: {scratch: [src/gen]}", Role::Worker), &["src"]);
    let policy = Policy::new(rules).unwrap();
    let test = || change("src/a_test.go", ChangeKind::Added);
    for (changes, expected) in [
        (vec![change("src/a.go", ChangeKind::Modified), test()], vec![]),
        (vec![change("src/a.go", ChangeKind::Modified)], vec!["changes.tests"]),
        (vec![change("src/a.go", ChangeKind::Deleted)], vec![]),
        (vec![test()], vec![]),
        (vec![change("src/a.md", ChangeKind::Added)], vec![]),
        (vec![change("docs/a.md", ChangeKind::Added)], vec!["paths.scope"]),
        (vec![change("go.mod", ChangeKind::Modified)], vec!["paths.blocked"]),
        (vec![change("src/BadName.go", ChangeKind::Added), test()], vec!["names.style"]),
        (vec![change("src/BadName.go", ChangeKind::Modified), test()], vec![]),
        (vec![change("src/l", ChangeKind::Link)], vec!["changes.kind"]),
        (vec![change("src/gen/a.txt", ChangeKind::Added)], vec!["paths.not-allowed"]),
        (vec![change("src/../x", ChangeKind::Added)], vec!["paths.strange"]),
        (vec![change(".gitmodules", ChangeKind::Added)], vec!["paths.protected"]),
    ] {
        let found = policy.judge_changes(&changes);
        let rules: Vec<&str> = found.iter().map(|verdict| verdict.rule.as_str()).collect();
        assert_eq!(rules, expected, "{changes:?}");
    }
    assert!(policy.judge_message("feat(task-001): x\n\nmore").is_allowed());
    assert_eq!(policy.judge_message("wip").rule, "commit.format");
}
