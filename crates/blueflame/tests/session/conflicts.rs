//! Work that conflicts, and a person who goes on meanwhile.

use serde_json::json;

use crate::script::{Script, bash, commit, plan, task};
use crate::stage::{MANY, Stage};

const APPROVE: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: [continue]\n";

/// Eight lines, some of them others.
fn lines(others: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let other = others.iter().find(|(at, _)| *at == number);
        other.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=8).map(line).collect()
}

/// Two groups write the same line of one file, and a merger brings them together;
/// the first one waits for the file `go`.
fn stage(more: &str) -> Stage {
    let tasks = [task("task-001", "one", "src/x.txt"), task("task-002", "two", "src/x.txt")];
    let resolved = |line_8: &str| {
        let text = lines(&[(1, "of both"), (8, line_8)]);
        commit("task-000", &[("src/x.txt", text.as_str())])
    };
    let mut early = vec![bash("sh wait.sh go")];
    early.extend(resolved("line 8"));
    let late = resolved("the fix of the person");
    let mends = json!({"role": "merger", "turn": 0, "contains": "the fix of the person"});
    let begins = json!({"role": "merger", "turn": 0});
    let report = json!({"status": "resolved", "notes": "Both are kept.", "issues": []});
    let script = Script::new()
        .works("task-001", &[("src/x.txt", &lines(&[(1, "of one")]))])
        .works("task-002", &[("src/x.txt", &lines(&[(1, "of two")]))])
        .reply(json!({"when": mends, "call": late}))
        .reply(json!({"when": begins, "call": early}))
        .reply(json!({"when": {"role": "merger"}, "output": report}))
        .passes();
    Stage::new(&format!("{MANY}{more}"))
        .with_file("src/x.txt", &lines(&[]))
        .plan(&plan(&tasks))
        .script(&script)
        .decisions(APPROVE)
}

#[test]
fn what_the_person_commits_while_a_merger_works_is_not_taken_back() {
    let stage = stage("");
    let mut running = stage.begin();
    running.wait_for("a merger has started", |journal| {
        let merger = |it: &&serde_json::Value| it["d"]["work"]["resolve"].is_object();
        journal.iter().find(merger).is_some_and(|claim| {
            let agent = &claim["d"]["agent"];
            journal.iter().any(|it| it["t"] == "agent.started" && it["d"]["agent"] == *agent)
        })
    });
    let landed = stage.read("src/x.txt").replace("line 8", "the fix of the person");
    stage.write("src/x.txt", &landed);
    stage.git(&["commit", "-qam", "fix: the person's"]);
    stage.signal("go");
    running.end().exits(0);

    assert_eq!(stage.read("src/x.txt"), lines(&[(1, "of both"), (8, "the fix of the person")]));
    // Nothing on top of the fix touches it.
    let since = stage.git(&["log", "-p", "--format=%s", ":/fix: the person's..main"]);
    assert!(!since.contains("-the fix of the person"), "{since}");
    let results: Vec<_> =
        stage.events("land.finished").into_iter().map(|it| it["result"].clone()).collect();
    assert_eq!(results, ["landed", "base_moved", "landed"]);
    stage.assert_tidy();
}
