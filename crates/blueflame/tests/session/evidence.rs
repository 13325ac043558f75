//! What the person is shown before they decide is what is so.

use serde_json::{Value, json};

use crate::script::{Script, bash, plan, subject, task, write};
use crate::stage::{MANY, Stage};
use crate::terminal::Terminal;

fn stage(script: Script) -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt")];
    let script = script.works("task-001", &[("src/a.txt", "a\n")]).passes();
    Stage::new("").plan(&plan(&tasks)).script(&script).decisions("plan: [approve]\n")
}

/// Goes on with a person at a terminal.
fn go_on(stage: &Stage) -> Terminal {
    let mut command = stage.command(&["resume"]);
    command.env("PAGER", "cat");
    Terminal::start(command, (120, 60))
}

#[test]
fn a_review_shows_what_was_run_on_the_tree_and_not_what_is_configured_by_now() {
    let stage = stage(Script::new());
    stage.run().exits(4).says("`changeset one`");
    let config = stage.read("blueflame.yaml");
    stage.write("blueflame.yaml", &format!("{config}merge: {{verify: [\"test -e src/a.txt\"]}}\n"));
    let mut terminal = go_on(&stage);
    let page = terminal.read_until("[a]pprove");
    assert!(page.contains("passed on exactly this tree: test -e src/a.txt"), "{page}");
    assert!(page.contains(&subject("task-001")), "the commits are not shown: {page}");
    terminal.type_in("a\n");
    let (rest, code) = terminal.finish();
    assert_eq!(code, Some(0), "{rest}");
    // It was run, by the one who resumed.
    let checks: Vec<_> =
        stage.events("verify.finished").into_iter().map(|it| it["result"].clone()).collect();
    assert_eq!(checks, ["not_configured", "passed"]);
    assert_eq!(stage.landed(), [subject("task-001")]);
}

#[test]
fn a_check_that_was_configured_meanwhile_can_turn_the_changeset_down() {
    let stage = stage(Script::new());
    stage.run().exits(4).says("`changeset one`");
    let config = stage.read("blueflame.yaml");
    stage.write("blueflame.yaml", &format!("{config}merge: {{verify: [\"false\"]}}\n"));
    stage.decide("changesets: {'*': approve}\nsession: [stop]\n");
    stage.resume().exits(4);
    assert_eq!(stage.landed(), Vec::<String>::new());
}

#[test]
fn the_diff_can_be_read_where_validation_is_in_question() {
    let down = Script::new().turns_down("task-001", 1, "It is too short.");
    let when = json!({"role": "validator", "task": "task-001"});
    let lost = Script::new().reply(json!({"when": when, "say": "It looks fine to me."}));
    for (script, gate, answer) in [
        (down, "`validation_failed task-001`", "d\n"),
        (lost, "`validator_failed task-001`", "s\n"),
    ] {
        let stage = stage(script);
        stage.run().exits(4).says(gate);
        let mut terminal = go_on(&stage);
        terminal.read_until("[v]iew");
        terminal.type_in("v\n");
        let diff = terminal.read_until("[v]iew");
        assert!(diff.contains("+++ b/src/a.txt"), "{diff}");
        terminal.type_in(answer);
        let (rest, code) = terminal.finish();
        assert_eq!(code, Some(1), "{rest}");
    }
}

/// The micro-dollars of all runs for some work.
fn spent(stage: &Stage, is_meant: impl Fn(&Value) -> bool) -> u64 {
    let claimed = stage.events("agent.claimed").into_iter();
    let agents: Vec<Value> =
        claimed.filter(|it| is_meant(&it["work"])).map(|it| it["agent"].clone()).collect();
    let exited = stage.events("agent.exited").into_iter();
    let ours = exited.filter(|it| agents.contains(&it["agent"]));
    ours.map(|it| it["spend"]["cost"].as_u64().unwrap()).sum()
}

fn usd(micros: u64) -> String {
    blueflame_core::money::Usd::from_micros(micros).to_string()
}

/// The values of a trailer of the last commit on the base branch.
fn trailers(stage: &Stage, key: &str) -> Vec<String> {
    let format = format!("--format=%(trailers:key={key},valueonly)");
    let values = stage.git(&["log", "-1", &format, "main"]);
    values.lines().filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_landed_commit_says_who_passed_it_what_it_is_and_what_everyone_cost() {
    // A first attempt that comes to nothing, a second one in two commits, and
    // validators that nobody understands.
    let second = [
        write("src/a.txt", "a\n"),
        bash("git add src/a.txt && git commit -q -m 'fix(task-001): begin'"),
        write("src/a.txt", "aa\n"),
        bash("git add src/a.txt && git commit -q -m 'fix(task-001): finish'"),
    ];
    let when = json!({"role": "validator", "task": "task-001"});
    let usage = json!({"input": 900, "output": 100});
    let script = Script::new()
        .idles("task-001", 1)
        .attempt("task-001", 2, &second)
        .reply(json!({"when": when, "say": "It looks fine to me.", "usage": usage}));
    let stage = stage(script).decisions("plan: [approve]\nvalidator_failed: [manual-pass]\n");
    stage.run().exits(4).says("`changeset one`");
    let all = spent(&stage, |_| true);
    let workers = spent(&stage, |work| work["develop"].is_object());
    assert!(0 < workers && workers < all, "{workers} of {all}");

    let mut terminal = go_on(&stage);
    let page = terminal.read_until("[a]pprove");
    assert!(page.contains(&usd(all)), "{} is not in {page}", usd(all));
    assert!(page.contains("no validator could judge it; passed by hand"), "{page}");
    terminal.type_in("a\n");
    let (rest, code) = terminal.finish();
    assert_eq!(code, Some(0), "{rest}");
    assert_eq!(stage.landed(), ["fix(task-001): Write src/a.txt"]);
    assert_eq!(trailers(&stage, "Blueflame-Validation"), ["passed by hand"]);
    assert_eq!(trailers(&stage, "Blueflame-Cost"), [usd(all)]);
}

#[test]
fn a_resolved_changeset_says_what_its_merger_cost() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/a.txt")];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "of one\n")])
        .works("task-002", &[("src/a.txt", "of two\n")])
        .resolves("two.c1", &[("src/a.txt", "of both\n")])
        .passes();
    let stage = Stage::new(MANY)
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {'*': approve}\n");
    stage.run().exits(0);
    let on_task = spent(&stage, |work| {
        ["develop", "validate"].iter().any(|it| work[it]["task"] == "task-002")
    });
    let on_merger = spent(&stage, |work| work["resolve"].is_object());
    assert!(on_task > 0 && on_merger > 0, "{on_task} {on_merger}");
    assert_eq!(trailers(&stage, "Blueflame-Cost"), [usd(on_task), usd(on_merger)]);
    let agents = trailers(&stage, "Blueflame-Agent");
    assert!(agents.len() == 2 && agents[1].starts_with("merger-"), "{agents:?}");
    stage.assert_tidy();
}
