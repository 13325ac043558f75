//! What the person is shown before they decide is what is so.

use serde_json::json;

use crate::script::{Script, plan, subject, task};
use crate::stage::Stage;
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
