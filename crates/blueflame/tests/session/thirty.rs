//! Thirty tasks in six groups, with nearly everything that can go wrong on the
//! way, from a decisions file: what lands is exactly what was approved.

use std::collections::BTreeMap;

use crate::script::{Script, Task, commit, plan, subject, task};
use crate::stage::{MANY, Stage};

const GROUPS: [&str; 6] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];

fn id(number: usize) -> String {
    format!("task-{number:03}")
}

/// The file that only this task writes.
fn own(number: usize) -> String {
    format!("src/{}/{number}.txt", GROUPS[(number - 1) / 5])
}

/// Five tasks for each group. Within a group the third needs the first; groups
/// need each other as the first task of each says.
fn tasks() -> Vec<Task> {
    (1..=30)
        .map(|number| {
            let needs: Vec<String> = match number {
                6 | 26 => vec![id(1)],
                11 => vec![id(7)],
                21 => vec![id(2)],
                _ if number % 5 == 3 && number != 23 => vec![id(number - 2)],
                _ => Vec::new(),
            };
            let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
            let files = [own(number), shared(number).unwrap_or_default().to_owned()];
            let files: Vec<&str> =
                files.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
            task(&id(number), GROUPS[(number - 1) / 5], files[0]).needs(&needs).locks(&files)
        })
        .collect()
}

/// Two pairs of tasks of different groups write the same file.
fn shared(number: usize) -> Option<&'static str> {
    match number {
        5 | 15 => Some("src/greeting.txt"),
        10 | 20 => Some("src/farewell.txt"),
        _ => None,
    }
}

fn work(number: usize, more: &[(&str, &str)]) -> Vec<serde_json::Value> {
    let (file, text) = (own(number), format!("by {}\n", id(number)));
    let mut files = vec![(file.as_str(), text.as_str())];
    files.extend(more);
    commit(&id(number), &files)
}

fn script() -> Script {
    let mut script = Script::new()
        // gamma conflicts with alpha, and the merger brings them together.
        .attempt("task-005", 1, &work(5, &[("src/greeting.txt", "hello from alpha\n")]))
        .attempt("task-015", 1, &work(15, &[("src/greeting.txt", "hello from gamma\n")]))
        .resolves("gamma.c1", &[("src/greeting.txt", "hello from alpha\nhello from gamma\n")])
        // delta conflicts with beta, and the merger cannot; the next attempt
        // starts from what has landed.
        .attempt("task-010", 1, &work(10, &[("src/farewell.txt", "bye from beta\n")]))
        .attempt("task-020", 1, &work(20, &[("src/farewell.txt", "bye from delta\n")]))
        .cannot_resolve("delta.c1", "nobody can tell which is meant")
        .attempt(
            "task-020",
            2,
            &work(20, &[("src/farewell.txt", "bye from beta\nbye from delta\n")]),
        )
        // The check does not like this one.
        .attempt("task-023", 1, &commit("task-023", &[(&own(23), "BROKEN\n")]))
        // zeta is turned down, and done otherwise.
        .attempt("task-030", 1, &commit("task-030", &[(&own(30), "too loud\n")]));
    for number in 1..=30 {
        let (file, text) = (own(number), format!("by {}\n", id(number)));
        script = script.works(&id(number), &[(&file, &text)]);
    }
    script.passes()
}

const DECISIONS: &str = "
plan: [approve]
changesets: {zeta: [{reject: 'too loud'}, approve], '*': approve}
session: [continue]
budget: [{raise_tokens: 1000000}]
";

#[test]
fn thirty_tasks_in_six_groups_land_exactly_as_approved() {
    // 30 workers with two requests each and 30 validators take 90,000 tokens.
    let config = format!(
        "{MANY}merge: {{verify: [\"sh check.sh\"]}}\nlimits:\n  max_session_cost_usd: 0\n  \
         max_session_tokens: 60000\n  \
         token_budget: {{planner_usd: 0, worker_usd: 0, validator_usd: 0, merger_usd: 0}}\n"
    );
    let stage = Stage::new(&config);
    // The first time it fails, whatever the tree is. It remembers, which nothing in
    // a sandbox does.
    let marker = stage.env.path("flaky").display().to_string();
    let check = format!(
        "#!/bin/sh\nif ! test -e {marker}; then touch {marker}; echo flaky; exit 1; fi\n\
         ! grep -r BROKEN src\n"
    );
    let unconfined = stage.read("blueflame.yaml").replace("sandbox: {", "sandbox: {mode: off, ");
    let stage = stage
        .with_file("check.sh", &check)
        .with_file("blueflame.yaml", &unconfined)
        .with_file("src/greeting.txt", "hello\n")
        .with_file("src/farewell.txt", "bye\n")
        .plan(&plan(&tasks()))
        .script(&script())
        .decisions(DECISIONS);
    stage.run().exits(0);

    assert_eq!(stage.landed(), expected_subjects());
    assert_eq!(stage.sources(), expected_sources());

    // It all came about as planned.
    let of = |changeset: &str, event: &str| {
        let events = stage.events(event).into_iter();
        let found: Vec<String> = events
            .filter(|it| it["changeset"] == changeset)
            .map(|it| it["result"].to_string())
            .collect();
        found
    };
    assert_eq!(of("alpha.c1", "verify.finished"), ["\"passed_on_rerun\""]);
    assert!(of("gamma.c1", "fold.finished")[0].contains("greeting.txt"));
    assert!(of("delta.c1", "fold.finished")[0].contains("farewell.txt"));
    assert_eq!(of("delta.c1", "land.finished"), Vec::<String>::new());
    let red = of("epsilon.c1", "verify.finished");
    assert!(red[0].contains("\"culprit\":\"task-023\""), "{red:?}");
    assert_eq!(red[1], "\"passed\"");
    let gates = stage.gates();
    let asked = |name: &str| gates.iter().filter(|gate| *gate == name).count();
    assert_eq!((asked("budget"), asked("session"), asked("changeset:zeta.c1")), (1, 1, 1));
    // Who was not at fault worked once; who was, twice; nobody more often.
    for number in 1..=30 {
        let again = [16, 17, 18, 19, 20, 23, 26, 27, 28, 29, 30].contains(&number);
        let attempts = stage.outcomes(&id(number)).len();
        assert_eq!(attempts, if again { 2 } else { 1 }, "{}", id(number));
    }
    stage.assert_tidy();
}

/// One commit for each task, in landing order; a resolved changeset is one.
fn expected_subjects() -> Vec<String> {
    let all = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|number| subject(&id(*number))).collect()
    };
    let resolved = "feat(task-011): Write src/gamma/11.txt (and others)".to_owned();
    [
        all(&[1, 2, 3, 4, 5]),
        all(&[6, 7, 8, 9, 10]),
        vec![resolved],
        all(&[21, 22, 24, 25]),
        all(&[16, 17, 18, 19, 20]),
        all(&[23]),
        all(&[26, 27, 28, 29, 30]),
    ]
    .concat()
}

fn expected_sources() -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> =
        (1..=30).map(|number| (own(number), format!("by {}", id(number)))).collect();
    files.insert("src/greeting.txt".into(), "hello from alpha\nhello from gamma".into());
    files.insert("src/farewell.txt".into(), "bye from beta\nbye from delta".into());
    files
}
