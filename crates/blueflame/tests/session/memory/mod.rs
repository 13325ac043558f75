//! What is remembered from one session to the next, with the real program.

mod many;
mod mirror;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::install;
use crate::script::{Script, plan_value, task};
use crate::stage::{Stage, Told};

/// Plans one task that no worker does anything about; sent back once.
fn script() -> Script {
    Script::new().plans(&[task("task-001", "one", "src/a.txt")]).reply(json!(
        {"when": {"role": "worker"}, "say": "Nothing to do."}
    ))
}

const ANSWERS: &str = "plan: [{replan: \"Keep to plain text files.\"}, approve]\nsession: [stop]\n";

fn stage(more: &str) -> Stage {
    Stage::new(&format!("limits: {{max_retries: 0}}\n{more}")).script(&script()).decisions(ANSWERS)
}

/// The memory of a stage, as the program tells it.
fn notes(stage: &Stage) -> Vec<Value> {
    let told = stage.blueflame(&["memory", "list", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    document["notes"].as_array().unwrap().clone()
}

fn kinds(notes: &[Value]) -> Vec<&str> {
    notes.iter().map(|note| note["kind"].as_str().unwrap()).collect()
}

fn memory_file(stage: &Stage) -> std::path::PathBuf {
    stage.repository().join(".git/blueflame/memory/issues.jsonl")
}

/// The last request of each agent of a role, in the newest session, as it reached
/// the model.
fn requests(stage: &Stage, role: &str) -> Vec<String> {
    let attempts = fs::read_dir(stage.session().join("attempts")).unwrap();
    let mut found = Vec::new();
    for attempt in attempts {
        let path = attempt.unwrap().path();
        let text = fs::read_to_string(path.join("traffic.jsonl")).unwrap_or_default();
        for line in text.lines() {
            let exchange: Value = serde_json::from_str(line).unwrap();
            let request = exchange["request"].to_string();
            if request.contains(&format!("role={role}")) {
                found.push(request);
            }
        }
    }
    assert!(!found.is_empty(), "no {role} asked anything");
    found
}

/// What stands between the fences of a prompt's memory.
fn memory_in(request: &str) -> &str {
    let (_, after) = request.split_once(" memory\\n").expect("there is a memory in the prompt");
    after.split_once("\\ndata-").unwrap().0
}

/// Two sessions on one repository: the agents of the second are told what went
/// wrong in the first, and what the person said.
fn the_second_knows_of_the_first(stage: &Stage, run: &dyn Fn() -> Told) {
    run().exits(1).says("(`blueflame memory`)");
    let first = stage.session_id();
    let one = requests(stage, "planner");
    assert!(one.iter().all(|it| !it.contains("From earlier sessions")), "nothing came before");
    run().exits(1);
    assert_ne!(stage.session_id(), first);
    for request in requests(stage, "planner") {
        let memory = memory_in(&request);
        for told in [
            first.as_str(),
            "Failures that nobody has put right yet:",
            "task-001: Write src/a.txt [src/a.txt]",
            "stopped without changing anything",
            "What the person decided:",
            "Keep to plain text files.",
        ] {
            assert!(memory.contains(told), "`{told}` is not in {memory}");
        }
        assert!(memory.len() <= 4 * 500, "{} bytes", memory.len());
        let (before, _) = request.split_once(memory).unwrap();
        assert!(before.contains("<<<data-"), "it is fenced");
    }
    for request in requests(stage, "worker") {
        let memory = memory_in(&request);
        assert!(memory.contains("task-001: Write src/a.txt"), "{memory}");
        assert!(!memory.contains("plain text"), "what is not about its files: {memory}");
        assert!(memory.len() <= 4 * 125, "{} bytes", memory.len());
    }
}

const BOUND: &str = "beads: {context_tokens: 500}\n";

#[test]
fn the_second_session_knows_of_the_first() {
    let stage = stage(BOUND);
    the_second_knows_of_the_first(&stage, &|| stage.run());
}

#[test]
fn the_second_session_knows_of_the_first_with_the_real_claude() {
    let Some(claude) = install::claude() else { return };
    let stage = stage(BOUND);
    let place = claude.parent().unwrap().display().to_string();
    let path = format!("{place}:{}", std::env::var("PATH").unwrap());
    let run = || {
        let arguments = [&stage.run_arguments()[..], &["--executor", "claude"]].concat();
        stage.start_with(&arguments, &[("PATH", &path)]).end()
    };
    the_second_knows_of_the_first(&stage, &run);
}

#[test]
fn what_is_remembered_is_shown_forgotten_and_not_found_again() {
    let stage = stage("");
    stage.run().exits(1).says("no `bd`, so they are kept here alone");
    let before = notes(&stage);
    assert_eq!(kinds(&before), ["failure", "decision", "session", "cost"]);
    let bytes = fs::read(memory_file(&stage)).unwrap();
    assert_eq!(notes(&stage), before);
    assert_eq!(fs::read(memory_file(&stage)).unwrap(), bytes, "looking changed something");

    let failure = before[0]["id"].as_str().unwrap();
    let shown = stage.blueflame(&["memory", "show", &failure[..8]]).exits(0).stdout;
    assert!(shown.contains("standing  unresolved"), "{shown}");
    assert!(shown.contains("stopped without changing anything"), "{shown}");
    let context = stage.blueflame(&["memory", "show"]).exits(0).stdout;
    assert!(context.contains("Keep to plain text files."), "{context}");
    let list = stage.blueflame(&["memory"]).exits(0).stdout;
    assert!(list.contains(failure) && list.contains("4 notes of 1 session\n"), "{list}");
    stage.blueflame(&["memory", "show", "bf-"]).exits(2).says("could be any of 4 notes");
    stage.blueflame(&["memory", "forget", "nothing"]).exits(2).says("there is no note");

    stage.blueflame(&["memory", "forget", failure]).exits(0).says("1 note forgotten");
    assert_eq!(kinds(&notes(&stage)), ["decision", "session", "cost"]);
    // Even if everything is worked out from the journals again.
    fs::remove_file(memory_file(&stage)).unwrap();
    assert_eq!(kinds(&notes(&stage)), ["decision", "session", "cost"]);
    stage.blueflame(&["memory", "forget", &stage.session_id()]).exits(0).says("3 notes forgotten");
    fs::remove_file(memory_file(&stage)).unwrap();
    assert_eq!(kinds(&notes(&stage)), [""; 0]);
    let list = stage.blueflame(&["memory"]).exits(0).stdout;
    assert!(list.contains("Nothing is remembered yet"), "{list}");
}

#[test]
fn an_orchestrator_that_dies_before_it_saved_has_lost_nothing() {
    let stage = stage("");
    let mut running = stage.begin();
    running.wait_for_event("session.ended", 1);
    running.kill();
    assert_eq!(kinds(&notes(&stage)), ["failure", "decision", "session", "cost"]);

    // A line that was torn, and one that was never a note.
    let bytes = fs::read(memory_file(&stage)).unwrap();
    let mut damaged = b"nonsense\n".to_vec();
    damaged.extend_from_slice(&bytes[..bytes.len() - 40]);
    fs::write(memory_file(&stage), &damaged).unwrap();
    let told = stage.blueflame(&["memory"]).exits(0);
    let told = told.says("was torn").says("cannot be read in line 1");
    assert!(told.stdout.contains("4 notes"), "{told}");
    assert_eq!(fs::read(memory_file(&stage)).unwrap(), bytes, "it is whole again");
    let aside = memory_file(&stage).with_extension("jsonl.damaged");
    assert_eq!(fs::read(aside).unwrap(), damaged);
}

/// What is not as it was written is noticed even where every line of it is fine.
#[test]
fn notes_that_somebody_took_away_come_back_from_the_journals() {
    let stage = stage("");
    stage.run().exits(1);
    let bytes = fs::read(memory_file(&stage)).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let altered = "is not what was last written to it";
    for (damaged, said) in [
        (String::new(), altered),
        (lines[..2].concat(), altered),
        (lines[1..].concat(), altered),
        (text.replacen("\"created_at\"", "\"made_at\"", 1), "has 1 line of something else in it"),
    ] {
        assert_ne!(damaged, text);
        fs::write(memory_file(&stage), &damaged).unwrap();
        let told = stage.blueflame(&["memory"]).exits(0).says(said);
        assert!(told.stdout.contains("4 notes"), "{told}");
        assert_eq!(fs::read(memory_file(&stage)).unwrap(), bytes, "{damaged}");
        let aside = memory_file(&stage).with_extension("jsonl.damaged");
        assert_eq!(fs::read_to_string(aside).unwrap(), damaged);
        let again = stage.blueflame(&["memory"]).exits(0);
        assert!(!again.stderr.contains("warning"), "{again}");
    }
}

/// A journal that could not be read is read once it can be, however long it is.
#[test]
fn a_journal_that_could_not_be_read_is_tried_again() {
    let stage = stage("");
    let mut running = stage.begin();
    running.wait_for_event("session.ended", 1);
    running.kill();
    let journal = stage.session().join("journal.jsonl");
    let good = fs::read(&journal).unwrap();
    let bad = vec![b'x'; good.len()];
    let _ = fs::remove_dir_all(memory_file(&stage).parent().unwrap());
    fs::write(&journal, bad).unwrap();
    stage.blueflame(&["memory"]).exits(0).says("nothing is remembered of session");
    fs::write(&journal, good).unwrap();
    assert_eq!(kinds(&notes(&stage)), ["failure", "decision", "session", "cost"]);
}

#[test]
fn notes_go_from_one_repository_to_another() {
    let one = stage("");
    one.run().exits(1);
    let file = one.env.path("notes.jsonl");
    let name = file.to_str().unwrap();
    one.blueflame(&["memory", "export", name]).exits(0).says("4 notes written");
    let mut exported = fs::read_to_string(&file).unwrap();
    exported.push_str("{\"_type\":\"memory\",\"key\":\"x\"}\nnonsense\n");
    fs::write(&file, &exported).unwrap();

    let other = stage("");
    let told = other.blueflame(&["memory", "import", name]).exits(0);
    told.says("4 new, 0 newer than ours, 0 known already")
        .says("1 line of others passed over")
        .says("1 line could not be read");
    assert_eq!(notes(&other), notes(&one));
    other.blueflame(&["memory", "import", name]).exits(0).says("0 new, 0 newer");
    let told = other.blueflame(&["memory", "export"]).exits(0);
    assert!(exported.starts_with(&told.stdout), "{told}");
    other.blueflame(&["memory", "import", "README.md"]).exits(2).says("there are no notes");
}

#[test]
fn nothing_is_remembered_where_the_person_does_not_want_it() {
    let stage = stage("beads: {enabled: false}\n");
    let told = stage.run().exits(1);
    assert!(!told.stderr.contains("memory:"), "{told}");
    assert!(!memory_file(&stage).exists());
    stage.blueflame(&["memory"]).exits(2).says("nothing is remembered").says("beads.enabled");

    let stage = self::stage("beads: {include_failure_notes: false}\n");
    stage.run().exits(1);
    let failure = notes(&stage).remove(0);
    assert_eq!((&failure["kind"], &failure["text"]), (&json!("failure"), &Value::Null));
}

#[test]
fn what_landed_is_remembered_before_the_session_is_over() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = Script::new()
        .reply(json!({"when": {"role": "planner"}, "output": plan_value(&tasks)}))
        .works("task-001", &[("src/a.txt", "a\n")])
        .attempt("task-002", 2, &[crate::script::bash("sh wait.sh go")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let stage = Stage::new("limits: {max_retries: 0}\n").script(&script).decisions(
        "plan: [approve]\nchangesets: {one: approve, two: {reject: \"Not like this.\"}}\n\
         session: [continue, stop]\n",
    );
    let mut running = stage.begin();
    running.wait_for_event("cycle.started", 2);
    crate::stage::wait_until("it is remembered", || {
        let text = fs::read_to_string(memory_file(&stage)).unwrap_or_default();
        text.contains("result: task-001") && !text.contains(":session:session")
    });
    stage.signal("go");
    let _ = running.end();
    let notes = notes(&stage);
    assert!(kinds(&notes).contains(&"session"));
    let decision = notes.iter().find(|note| note["kind"] == "decision").unwrap();
    assert_eq!(decision["title"], "rejected changeset two.c1: Not like this.");
    assert_eq!(decision["paths"], json!(["src/b.txt"]));
}

/// Whether a directory has anything in it that `bd` or we would have made.
fn is_untouched(repository: &Path) -> bool {
    !repository.join(".beads").exists()
}
