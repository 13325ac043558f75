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
    stage.run().exits(1).says("memory: 4 notes kept here (`blueflame memory`)");
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
    let mut number = 0;
    for (damaged, said) in [
        (String::new(), altered),
        (lines[..2].concat(), altered),
        (lines[1..].concat(), altered),
        (text.replacen("\"created_at\"", "\"made_at\"", 1), "has 1 line of something else in it"),
        (text.replacen("{\"id\"", "[\"id\"", 2), "cannot be read in lines 1, 2"),
    ] {
        assert_ne!(damaged, text);
        fs::write(memory_file(&stage), &damaged).unwrap();
        let told = stage.blueflame(&["memory"]).exits(0).says(said);
        assert!(told.stdout.contains("4 notes"), "{told}");
        assert_eq!(fs::read(memory_file(&stage)).unwrap(), bytes, "{damaged}");
        // Each of them, in a file of its own.
        number += 1;
        let name = if number == 1 { "damaged".into() } else { format!("damaged.{number}") };
        let aside = memory_file(&stage).with_extension(format!("jsonl.{name}"));
        assert_eq!(fs::read_to_string(&aside).unwrap(), damaged);
        told.says(&format!("what it was is kept as `{}`", aside.display()));
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
    let off = "`beads.enabled` is false: nothing new is remembered";
    let told = stage.blueflame(&["memory"]).exits(0).says(off);
    assert!(told.stdout.contains("Nothing is remembered"), "{told}");
    assert!(!memory_file(&stage).parent().unwrap().exists(), "looking made something");
    stage.blueflame(&["memory", "show"]).exits(0).says(off).says("nothing to tell");

    let stage = self::stage("beads: {include_failure_notes: false}\n");
    stage.run().exits(1);
    let failure = notes(&stage).remove(0);
    assert_eq!((&failure["kind"], &failure["text"]), (&json!("failure"), &Value::Null));
}

/// What was remembered before is the person's, to look at and to forget.
#[test]
fn notes_from_before_can_be_used_where_nothing_new_is_remembered() {
    let stage = stage("");
    stage.run().exits(1);
    let before = notes(&stage);
    let config = stage.read("blueflame.yaml");
    stage.write("blueflame.yaml", &format!("{config}\nbeads: {{enabled: false}}\n"));
    stage.run().exits(1);
    assert_eq!(notes(&stage), before, "nothing is new");
    let failure = before[0]["id"].as_str().unwrap();
    let doctor = stage.blueflame(&["doctor"]).stdout;
    assert!(doctor.contains("off, by `beads.enabled`"), "{doctor}");
    stage.blueflame(&["memory", "show", failure]).exits(0);
    let exported = stage.blueflame(&["memory", "export"]).exits(0).stdout;
    assert_eq!(exported.lines().count(), 4);
    stage.blueflame(&["memory", "forget", failure]).exits(0).says("1 note forgotten");
    assert_eq!(kinds(&notes(&stage)), ["decision", "session", "cost"]);
    fs::write(stage.env.path("notes.jsonl"), exported).unwrap();
    stage.blueflame(&["memory", "import", "../notes.jsonl"]).exits(0).says("3 known already");
    // And later everything is as if it had never been off, but for what is forgotten.
    stage.write("blueflame.yaml", &config);
    let (first, other) = (before[0]["session"].as_str().unwrap(), stage.session_id());
    let after = notes(&stage);
    let of = |session: &str| {
        let all = after.iter().filter(|note| note["session"] == session);
        all.map(|note| note["kind"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of(first), ["decision", "session", "cost"]);
    assert_eq!(of(&other), ["failure", "decision", "session", "cost"]);
}

/// Forgotten for good is also forgotten for whoever brings it back unasked.
#[test]
fn what_is_forgotten_is_not_imported_again_unless_the_person_says_so() {
    let stage = stage("");
    stage.run().exits(1);
    stage.blueflame(&["memory", "export", "../notes.jsonl"]).exits(0).says("4 notes written");
    let all = notes(&stage);
    let (failure, key) = (all[0]["id"].as_str().unwrap(), all[0]["key"].as_str().unwrap());
    stage.blueflame(&["memory", "forget", failure]).exits(0);
    let import = || stage.blueflame(&["memory", "import", "../notes.jsonl"]).exits(0);
    import()
        .says("0 new, 0 newer than ours, 3 known already")
        .says("1 note left out, because you wanted that forgotten")
        .says("hint: to have one back, take its line out of");
    assert_eq!(kinds(&notes(&stage)), ["decision", "session", "cost"]);
    let list = memory_file(&stage).with_file_name("forgotten");
    assert_eq!(fs::read_to_string(&list).unwrap(), format!("{key}\n"));
    fs::write(&list, "").unwrap();
    let told = import().says("1 new, 0 newer than ours, 3 known already");
    assert!(!told.stderr.contains("left out"), "{told}");
    assert_eq!(notes(&stage), all);
}

/// Who writes a key into an answer does not find it in any note.
#[test]
fn no_key_is_remembered_or_exported() {
    let token = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
    let answers =
        format!("plan: [{{replan: \"Use {token} for it.\"}}, approve]\nsession: [stop]\n");
    let stage = stage("").decisions(&answers);
    stage.run().exits(1);
    let exported = stage.blueflame(&["memory", "export"]).exits(0).stdout;
    let listed = stage.blueflame(&["memory", "list", "--json"]).exits(0).stdout;
    let kept = fs::read_to_string(memory_file(&stage)).unwrap();
    for text in [exported, listed, kept] {
        assert!(text.contains("Use [hidden] for it."), "{text}");
        assert!(!text.contains(token), "{text}");
    }
}

#[test]
fn doctor_tells_what_is_remembered_and_what_the_machine_has_left() {
    let stage = stage("");
    stage.run().exits(1);
    let told = stage.blueflame(&["doctor", "--json"]);
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    let says = |subject: &str| {
        let findings = document["findings"].as_array().unwrap().iter();
        let mut of_it = findings.filter(|it| it["subject"] == subject);
        let said = of_it.next().unwrap_or_else(|| panic!("{subject}: {document}"))["says"].clone();
        assert!(of_it.next().is_none(), "{subject} is there twice");
        said.as_str().unwrap().to_owned()
    };
    let file = memory_file(&stage).canonicalize().unwrap();
    let expected = format!("4 notes of 1 session in `{}`; no copy for `bd`", file.display());
    assert_eq!(says("memory"), expected);
    assert!(says("free memory").contains("MB free"), "{document}");
}

/// Everybody who looks finds the same, at the beginning, between cycles and at the end.
#[test]
fn a_warning_about_memory_is_told_once_on_resume() {
    let tasks = [task("task-001", "one", "src/a.txt"), task("task-002", "two", "src/b.txt")];
    let script = Script::new()
        .plans(&tasks)
        .works("task-001", &[("src/a.txt", "a\n")])
        .works("task-002", &[("src/b.txt", "b\n")])
        .passes();
    let answers = "plan: [approve]\nchangesets: {one: approve, two: {reject: \"No.\"}}\n\
                   session: [continue]\n";
    let stage =
        Stage::new("limits: {max_retries: 0}\n").script(&script).decisions("plan: [quit]\n");
    let _ = stage.run();
    let first = stage.session();
    stage.decide("plan: []\n");
    stage.run().exits(4);
    fs::write(first.join("journal.jsonl"), "nonsense\n").unwrap();
    let mut damaged = fs::read(memory_file(&stage)).unwrap();
    damaged.extend_from_slice(b"nonsense\n");
    fs::write(memory_file(&stage), damaged).unwrap();

    let first = first.file_name().unwrap().to_str().unwrap().to_owned();
    let unread = format!("nothing is remembered of session {first}");
    stage.decide(answers);
    let told = stage.resume().exits(4);
    assert_eq!(stage.events("cycle.started").len(), 2, "{told}");
    for warning in [unread.as_str(), "cannot be read in line ", "what it was is kept as"] {
        assert_eq!(told.stderr.matches(warning).count(), 1, "{warning}: {told}");
    }
    // The next time again, also if there is nothing to go on with.
    stage.decide("changesets: {'*': approve}\n");
    for said in ["goes on", "has ended"] {
        let told = stage.resume().exits(0).says(said);
        assert_eq!(told.stderr.matches(&unread).count(), 1, "{told}");
    }
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
