//! A weaker sandbox is used only if the person says so, and is seen everywhere.

use crate::script::{Script, subject, task};
use crate::stage::Stage;

fn one_task(mode: &str) -> Stage {
    let script = Script::new()
        .plans(&[task("task-001", "greeting", "src/hello.txt")])
        .works("task-001", &[("src/hello.txt", "hello\n")])
        .passes();
    let stage = Stage::new("merge: {verify: [\"test -d src\"]}\n").script(&script);
    let stage = stage.decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    let config = stage.read("blueflame.yaml");
    let chosen = config.replace("sandbox: {read", &format!("sandbox: {{mode: {mode}, read"));
    stage.with_file("blueflame.yaml", &chosen)
}

#[test]
fn a_weaker_boundary_works_and_is_shown_wherever_work_is_shown() {
    for (mode, words) in [("landlock", "a weaker sandbox (landlock)"), ("off", "no sandbox")] {
        let stage = one_task(mode);
        stage.run().exits(0).says(&format!("warning: {words}")).says(&format!("  - {words}"));
        assert_eq!(stage.landed(), [subject("task-001")], "{mode}");
        let page = stage.blueflame(&["status"]).exits(0);
        assert!(page.stdout.contains(words), "{page}");
        let document = stage.blueflame(&["status", "--json"]).exits(0);
        assert!(document.stdout.contains(words), "{document}");
    }
}

#[test]
fn of_the_strongest_there_is_nothing_to_say() {
    let stage = one_task("auto");
    let told = stage.run();
    told.exits(0);
    assert!(!stage.events("session.started")[0]["weaker"].to_string().contains("sandbox"));
}
