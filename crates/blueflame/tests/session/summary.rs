//! The summary at the end of a session, and the same again from its journal.

use rustix::process::Signal;

use crate::script::{Script, bash, plan, subject, task};
use crate::stage::{MANY, Stage, Told};

/// The page between its title and the end.
fn page(text: &str) -> &str {
    let start = text.find("== Summary of").unwrap_or_else(|| panic!("no summary in {text}"));
    &text[start..]
}

#[track_caller]
fn has(told: &Told, texts: &[&str]) {
    let page = page(&told.stderr);
    for text in texts {
        assert!(page.contains(text), "`{text}` is not in:\n{page}");
    }
    for line in
        page.lines().filter(|line| !line.starts_with("error: ") && !line.starts_with("hint: "))
    {
        assert!(line.chars().count() <= 80, "too wide: {line}");
        assert!(!line.contains('\u{1b}'), "coloured: {line}");
    }
}

/// `status --summary` shows the very same, from the journal.
#[track_caller]
fn same_again(stage: &Stage, told: &Told) {
    let again = stage.blueflame(&["status", "--summary"]);
    assert_eq!(again.code, Some(0), "{again}");
    assert!(told.stderr.contains(again.stdout.trim()), "{told}\nis not\n{}", again.stdout);
}

#[test]
fn what_landed_what_did_not_and_what_it_took() {
    let tasks = [
        task("task-001", "one", "src/a.txt"),
        task("task-002", "two", "src/b.txt"),
        task("task-003", "three", "src/c.txt").needs(&["task-002"]),
    ];
    let script = Script::new()
        .idles("task-001", 1)
        .works("task-001", &[("src/a.txt", "a\n")])
        .idles("task-002", 1)
        .idles("task-002", 2)
        .passes();
    let stage =
        Stage::new(&format!("{MANY}limits: {{max_retries: 1}}\nhooks: {{on_failure: 'exit 7'}}\n"))
            .plan(&plan(&tasks))
            .script(&script)
            .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: [stop]\n");
    let told = stage.run().exits(1);
    let commit = stage.git(&["rev-parse", "main"]);
    has(
        &told,
        &[
            "session   ended: some tasks failed",
            "forecast with 4 workers",
            "with every retry",
            &format!("one.c1 as {}: task-001 Write src/a.txt", &commit[..10]),
            "All of it is on the base branch",
            "task-002  failed: stopped without changing anything",
            "task-003  blocked: needs task-002",
            "no-op, finished",
            "no-op, no-op",
            // Two and two attempts, with two answers for the good one.
            "worker        4    5000",
            "validator     1    1000",
            "total         5    6000",
            "001-on_failure failed with exit code 7",
            "no merge.verify",
            &format!("blueflame log {} --task task-002", stage.session_id()),
        ],
    );
    same_again(&stage, &told);
}

#[test]
fn work_that_waits_for_the_person_is_said_with_what_to_do() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let script = Script::new().works("task-001", &[("src/a.txt", "a\n")]).passes();
    let stage = Stage::new(MANY)
        .with_file("src/a.txt", "old\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {'*': approve}\n");
    // The person is in the middle of something in the very same file.
    stage.write("src/a.txt", "mine\n");
    let told = stage.run();
    let publish = format!("blueflame publish {}", stage.session_id());
    has(&told, &["Not yet on the base branch", &publish]);
    assert_eq!(stage.read("src/a.txt"), "mine\n");
    same_again(&stage, &told);
}

#[test]
fn a_session_that_was_stopped_says_how_to_go_on() {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let script = Script::new()
        .attempt("task-001", 1, &[bash("sh wait.sh never")])
        .works("task-001", &[("src/a.txt", "a\n")])
        .passes();
    let stage = Stage::new(MANY)
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {'*': approve}\n");
    let mut running = stage.begin();
    running.wait_for_event("agent.started", 1);
    running.signal(Signal::INT);
    let told = running.end().exits(130);
    let resume = format!("blueflame resume {}", stage.session_id());
    has(&told, &["suspended, can be resumed", "Landed\n  Nothing.", &resume]);
    same_again(&stage, &told);

    let told = stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001")]);
    has(&told, &["ended: everything landed", "killed, finished"]);
    same_again(&stage, &told);
}
