//! Tools and paths, row by row.

use blueflame_core::ids::Role;
use blueflame_core::policy::Policy;
use serde_json::json;

use super::ground::{WORKSPACE, judge, locked, rules};

/// The sandbox has to open the directory for it, so this is where it is held.
#[test]
fn a_locked_file_is_no_leave_for_others_beside_it() {
    let policy = Policy::new(locked(rules("", Role::Worker), &["src/a.go"])).unwrap();
    for (path, expected) in
        [("src/a.go", "paths.write"), ("src/b.go", "paths.scope"), ("src/a.go.new", "paths.scope")]
    {
        let verdict = judge(&policy, "Write", json!({ "file_path": path, "content": "" }));
        assert_eq!(verdict.rule, expected, "{path}");
    }
}

#[test]
fn files_are_judged_by_where_they_lead() {
    let policy =
        Policy::new(locked(rules("worktree: {scratch: [target]}", Role::Worker), &["src"]))
            .unwrap();
    for (path, expected) in [
        ("src/a.go", "paths.write"),
        ("./src/../src//a.go", "paths.write"),
        ("src/deep/er/new.go", "paths.write"),
        ("target/x.bin", "paths.write"),
        ("src/out/passwd", "paths.outside"),
        ("src/dangling", "paths.outside"),
        ("src/in/x.md", "paths.scope"),
        ("src/in/../a.go", "paths.strange"),
        ("src/round", "paths.strange"),
        ("src/twice.go", "paths.links"),
        ("src/pipe", "paths.links"),
        ("src/auth", "paths.strange"),
        ("src/A.KEY", "paths.blocked"),
        ("src/.git /config", "paths.protected"),
        ("src/GIT~1/config", "paths.protected"),
        ("SRC/a.go", "paths.not-allowed"),
        ("src/NewFile.go", "names.style"),
        ("src/b\\c.go", "paths.strange"),
        ("src/b\u{200f}.go", "paths.strange"),
        ("", "paths.strange"),
        (".", "paths.not-allowed"),
        ("~/x", "paths.outside"),
        ("/tmp/x", "paths.outside"),
        ("/dev/null", "paths.outside"),
        ("/home/agent/a1x/src/a.go", "paths.outside"),
    ] {
        let verdict = judge(&policy, "Write", json!({ "file_path": path, "content": "" }));
        assert_eq!(verdict.rule, expected, "{path}: {verdict:?}");
        let edit = json!({ "file_path": path, "old_string": "a", "new_string": "b" });
        assert_eq!(judge(&policy, "Edit", edit).rule, expected, "{path}");
    }
}

#[test]
fn reading_is_free_inside_but_for_secrets() {
    let policy = Policy::new(rules("", Role::Worker)).unwrap();
    for (path, expected) in [
        ("go.mod", "paths.read"),
        ("blueflame.yaml", "paths.read"),
        ("src/twice.go", "paths.read"),
        ("docs", "paths.read"),
        (".env", "paths.secret"),
        ("src/.ENV.local", "paths.secret"),
        (".git/config", "paths.protected"),
        ("src/out/passwd", "paths.outside"),
        ("src/pipe", "paths.links"),
        ("/tmp/x", "paths.outside"),
    ] {
        let verdict = judge(&policy, "Read", json!({ "file_path": path }));
        assert_eq!(verdict.rule, expected, "{path}: {verdict:?}");
    }
}

#[test]
fn searches_stay_inside() {
    let policy = Policy::new(rules("", Role::Worker)).unwrap();
    for (tool, input, expected) in [
        ("Glob", json!({"pattern": "src/**/*.go"}), "paths.read"),
        ("Glob", json!({"pattern": format!("{WORKSPACE}/src/*")}), "paths.read"),
        ("Glob", json!({"pattern": "*", "path": "src"}), "paths.read"),
        ("Glob", json!({"pattern": "../*"}), "paths.outside"),
        ("Glob", json!({"pattern": "{src,..}/*"}), "paths.outside"),
        ("Glob", json!({"pattern": "{/etc,src}/*"}), "paths.outside"),
        ("Glob", json!({"pattern": "src/out/*"}), "paths.outside"),
        ("Glob", json!({"pattern": "out/*", "path": "src"}), "paths.outside"),
        ("Glob", json!({"pattern": "~/*"}), "paths.outside"),
        ("Glob", json!({"pattern": "*", "path": 5}), "tools.input"),
        ("Grep", json!({"pattern": "/etc/passwd"}), "paths.read"),
        ("Grep", json!({"pattern": "a", "path": "src/a.go", "glob": "*.go"}), "paths.read"),
        ("Grep", json!({"pattern": "a", "path": ".env"}), "paths.secret"),
        ("Grep", json!({"pattern": "a", "glob": "**/.e*"}), "paths.secret"),
        ("Grep", json!({"pattern": "a", "glob": "*.{go,key}"}), "paths.secret"),
        ("Grep", json!({"pattern": "a", "glob": "*.{go,md}"}), "paths.read"),
        ("Grep", json!({"pattern": "a", "glob": "src/*.go,docs/*.key"}), "paths.secret"),
        ("Grep", json!({"pattern": "a", "glob": "{a"}), "paths.secret"),
        ("Grep", json!({"pattern": "a", "glob": "!*.key"}), "paths.read"),
        ("Grep", json!({"pattern": "a", "path": "/etc"}), "paths.outside"),
    ] {
        let verdict = judge(&policy, tool, input.clone());
        assert_eq!(verdict.rule, expected, "{tool} {input}: {verdict:?}");
    }
}
