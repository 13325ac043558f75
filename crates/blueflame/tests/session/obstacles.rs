//! What the person does to the repository that nobody else can put right: the
//! session stops in order, says what to do, and goes on once that is done.

use crate::script::{Script, plan, subject, task};
use crate::stage::Stage;

/// Two groups of one task each. Only the first is answered for.
fn stage() -> Stage {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = Script::new()
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    Stage::new("")
        .with_file("src/a.txt", "as committed\n")
        .plan(&plan(&tasks))
        .script(&script)
        .decisions("plan: [approve]\nchangesets: {one: approve}\n")
}

/// Goes on, and is stopped by this.
#[track_caller]
fn stopped_by(stage: &Stage, why: &str) {
    stage.decide("changesets: {two: approve}\n");
    stage.resume().exits(3).says(why).says("once that is put right, `blueflame resume");
    let log = stage.blueflame(&["log"]).exits(0);
    assert!(log.stdout.contains("something is in the way"), "{log}");
    let status = stage.blueflame(&["status"]).exits(0);
    assert!(status.stdout.contains("suspended, because"), "{status}");
    assert!(stage.processes().is_empty());
}

#[test]
fn a_base_that_lost_what_was_published_stops_the_session_until_it_is_back() {
    let stage = stage();
    stage.run().exits(4).says("`changeset two`");
    let published = stage.git(&["rev-parse", "main"]);
    stage.git(&["reset", "-q", "--hard", "HEAD~1"]);
    stopped_by(&stage, "`main` no longer has what was published to it; `git merge");
    // It is as true the next time.
    stopped_by(&stage, "`main` no longer has what was published to it");
    stage.git(&["merge", "-q", &published]);
    stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    assert_eq!(stage.outcomes("task-002"), ["finished"]);
    stage.assert_tidy();
}

#[test]
fn a_base_that_conflicts_with_landed_work_stops_the_session_until_they_are_merged() {
    let stage = stage();
    // The first changeset lands and cannot be published.
    stage.write("src/a.txt", "of the person\n");
    stage.run().exits(4).says("`changeset two`");
    stage.git(&["commit", "-qam", "the person's"]);
    stopped_by(&stage, "`main` moved and now conflicts with landed work in `src/a.txt`; merge");
    let integration = format!("refs/blueflame/{}/integration", stage.session_id());
    stage.git(&["merge", "-q", "-X", "ours", "-m", "both", &integration]);
    stage.resume().exits(0);
    assert_eq!(stage.read("src/a.txt"), "of the person\n");
    assert_eq!(stage.read("src/b.txt"), "b\n");
    stage.assert_tidy();
}

#[test]
fn commits_that_cannot_be_signed_stop_the_session_until_they_can() {
    let stage = stage();
    stage.git(&["config", "commit.gpgsign", "true"]);
    stage.git(&["config", "gpg.program", "/bin/false"]);
    stage.run().exits(3).says("could not be signed").says("blueflame resume");
    assert_eq!(stage.landed(), Vec::<String>::new());
    stage.git(&["config", "commit.gpgsign", "false"]);
    stage.decide("changesets: {'*': approve}\n");
    stage.resume().exits(0);
    assert_eq!(stage.landed(), [subject("task-001"), subject("task-002")]);
    assert_eq!(stage.outcomes("task-001"), ["finished"]);
    stage.assert_tidy();
}
