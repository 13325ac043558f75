//! The copy for `bd`, with a stand-in that checks what it is given: whatever it
//! does, no session fails, and doing it again makes it good.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use blueflame::memory::Forgotten;
use blueflame::memory::mirror::{self, Bd, BdError, Mirrored, Unusable};
use blueflame_core::ids::SessionId;
use blueflame_core::memory::{Kind, Note, Notebook, Standing};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{is_untouched, kinds, notes};
use crate::stage::{Running, Stage, Told, wait_until};

const MINUTE: Duration = Duration::from_secs(60);

/// A place with a `bd` in it, and a repository with a `.beads`.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { directory: tempfile::tempdir().unwrap() };
        let bd = place.path("bd");
        fs::write(&bd, include_str!("bd.py")).unwrap();
        fs::set_permissions(&bd, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(place.path("project/.beads")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How the program behaves from now on.
    fn mode(&self, mode: &Value) {
        fs::write(self.path("mode.json"), mode.to_string()).unwrap();
        let _ = fs::remove_file(self.path("calls"));
    }

    fn identify(&self) -> Result<Bd<'static>, Unusable> {
        self.identify_within(MINUTE)
    }

    fn identify_within(&self, patience: Duration) -> Result<Bd<'static>, Unusable> {
        let path = self.directory.path().as_os_str().to_owned();
        Bd::identify(&path, &mirror::Place::in_directory(&self.path("project")), patience, None)
    }

    /// Whether it waits for ever, with another that it started.
    fn hangs(&self) -> bool {
        self.processes() == 2
    }

    /// Whether anything of the program runs.
    fn runs(&self) -> bool {
        self.processes() > 0
    }

    fn processes(&self) -> usize {
        let program = self.path("bd").display().to_string();
        let is_of_it = |entry: &fs::DirEntry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&program)
        };
        fs::read_dir("/proc").unwrap().flatten().filter(is_of_it).count()
    }

    fn mirror(&self, notebook: &Notebook) -> Result<Mirrored, BdError> {
        self.mirror_without(notebook, &Forgotten::default())
    }

    fn mirror_without(
        &self,
        notebook: &Notebook,
        forgotten: &Forgotten,
    ) -> Result<Mirrored, BdError> {
        let bd = self.identify().unwrap();
        mirror::reconcile(&bd, notebook, forgotten, MINUTE)
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.path("calls")).unwrap_or_default().lines().count()
    }

    fn issues(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("issues.json")).unwrap_or("{}".into());
        let issues: Value = serde_json::from_str(&text).unwrap();
        issues.as_object().unwrap().values().cloned().collect()
    }

    /// What was not as the contract has it.
    fn refused(&self) -> String {
        fs::read_to_string(self.path("refused")).unwrap_or_default()
    }

    /// It says what the notes say, nothing twice and nothing open.
    #[track_caller]
    fn has(&self, notebook: &Notebook) {
        let mut found: Vec<(String, String)> = Vec::new();
        for issue in self.issues() {
            assert_eq!(issue["status"], "closed", "{issue}");
            let text = |key: &str| issue[key].as_str().unwrap().to_owned();
            found.push((text("external_ref"), text("description")));
        }
        found.sort();
        let beads = notebook.notes().map(blueflame::memory::Bead::of);
        let wanted: Vec<_> = beads.map(|bead| (bead.external_ref, bead.description)).collect();
        assert_eq!(found, wanted);
        assert_eq!(self.refused(), "");
    }
}

fn note(number: u32, subject: &str, kind: Kind) -> Note {
    let session = SessionId::new(format!("ses-20260206-1430{number:02}")).unwrap();
    let at = "2026-02-06T15:00:00Z".parse().unwrap();
    let title = format!("-{subject}: \"Ünusual\" `$(title)` --json");
    Note::new(&session, subject, kind, at, &title).saying("--description=x\n\"quoted\" 'text'\n- a")
}

fn three() -> Notebook {
    let failed =
        Note { standing: Some(Standing::Unresolved), ..note(1, "task-001", Kind::Failure) };
    Notebook::new([
        failed,
        note(1, "decision-1", Kind::Decision),
        note(1, "session", Kind::Session),
    ])
}

/// The same with one note that says something else, and one more.
fn later() -> Notebook {
    let mut book = three();
    let failed = Note { standing: Some(Standing::Resolved), ..note(1, "task-001", Kind::Failure) };
    let decision = note(1, "decision-1", Kind::Decision);
    book.replace(
        &failed.session.clone(),
        [failed.saying("landed since"), decision, note(1, "session", Kind::Session)],
    );
    book.replace(&note(2, "x", Kind::Session).session, [note(2, "session", Kind::Session)]);
    book
}

#[test]
fn a_copy_is_made_followed_and_left_alone() {
    for shape in ["bare", "envelope", "items"] {
        for old in [true, false] {
            let place = Place::new();
            place.mode(&json!({"shape": shape, "old": old}));
            let done = place.mirror(&three()).unwrap();
            assert_eq!(done, Mirrored { created: 3, ..Mirrored::default() }, "{shape} {old}");
            place.has(&three());
            let done = place.mirror(&later()).unwrap();
            assert_eq!(done, Mirrored { created: 1, updated: 1, ..Mirrored::default() });
            place.has(&later());
            assert_eq!(place.mirror(&later()).unwrap(), Mirrored::default());
        }
    }
}

/// Whatever call it dies at, before it did anything or after, and however it shows:
/// doing it again makes it good, and a third time changes nothing.
#[test]
fn a_copy_that_was_cut_short_anywhere_is_made_good() {
    let whole = Place::new();
    whole.mirror(&three()).unwrap();
    whole.mode(&json!({}));
    whole.mirror(&later()).unwrap();
    let calls = whole.calls();
    assert!(calls > 5, "{calls}");
    let begun = Place::new();
    begun.mirror(&three()).unwrap();
    for at in 3..=calls {
        for (when, how, errors) in [
            ("before", "error", "stdout"),
            ("before", "error", "stderr"),
            ("after", "error", "stdout"),
            ("after", "killed", ""),
            ("before", "garbage", ""),
            ("after", "garbage", ""),
            ("before", "silent", ""),
        ] {
            let place = Place::new();
            fs::copy(begun.path("issues.json"), place.path("issues.json")).unwrap();
            place.mode(&json!({"at": at, "when": when, "how": how, "errors": errors}));
            let error = place.mirror(&later()).unwrap_err();
            let story = format!("call {at}, {when}, {how} on {errors}: {error}");
            assert_eq!(place.calls(), at, "it went on after {story}");
            if how == "error" && when == "before" {
                assert!(error.why.contains("out of order"), "{story}");
            }
            place.mode(&json!({}));
            place.mirror(&later()).unwrap_or_else(|again| panic!("{story}; again: {again}"));
            place.has(&later());
            assert_eq!(place.mirror(&later()).unwrap(), Mirrored::default(), "{story}");
        }
    }
}

#[test]
fn one_that_hangs_is_ended_with_all_that_it_started() {
    let place = Place::new();
    let bd = place.identify_within(Duration::from_secs(3)).unwrap();
    place.mode(&json!({"always": true, "how": "hang"}));
    let why = mirror::reconcile(&bd, &three(), &Forgotten::default(), MINUTE).unwrap_err().why;
    assert!(why.contains("was not done in 3 s"), "{why}");
    assert!(!place.runs(), "something of it runs");
    // It may be the right one, in trouble: that is no reason to give it up.
    let why = place.identify_within(Duration::from_secs(2)).unwrap_err();
    assert!(matches!(why, Unusable::NoAnswer { .. }), "{why}");
    place.mode(&json!({"always": true, "how": "error"}));
    let why = place.identify().unwrap_err();
    assert!(matches!(why, Unusable::NoAnswer { .. }), "{why}");
}

/// A note that no program takes as a word on its command line, or that is too
/// large for one, does not keep the others from getting there.
#[test]
fn a_note_that_bd_cannot_take_does_not_keep_the_others_from_it() {
    let place = Place::new();
    let mut book: Vec<Note> = three().notes().cloned().collect();
    let strange = Note {
        title: "a\u{0}b".to_owned(),
        text: format!("c\u{0}d{}", "x".repeat(200 << 10)),
        ..note(0, "task-001", Kind::Result)
    };
    let unkeyed = Note { key: format!("blueflame:{}", "k".repeat(300)), ..strange.clone() };
    book.extend([strange, unkeyed]);
    let book = Notebook::new(book);
    let done = place.mirror(&book).unwrap();
    assert_eq!(done, Mirrored { created: 4, ..Mirrored::default() });
    assert_eq!(place.mirror(&book).unwrap(), Mirrored::default(), "it is left alone then");
    assert_eq!(place.refused(), "");
}

#[test]
fn a_program_of_the_same_name_is_not_used() {
    let place = Place::new();
    for stranger in ["bd: a text editor", "{\"version\": \"very old\"}", "{\"version\": \"1.2.3\"}"]
    {
        place.mode(&json!({"stranger": stranger}));
        let why = place.identify().unwrap_err();
        assert!(matches!(why, Unusable::NotBeads { .. }), "{stranger}: {why}");
        let calls = fs::read_to_string(place.path("calls")).unwrap();
        assert!(calls.lines().all(|call| call == "version"), "{calls}");
    }
    fs::remove_file(place.path("bd")).unwrap();
    assert_eq!(place.identify().unwrap_err(), Unusable::NotInstalled);
}

#[test]
fn what_there_is_no_time_for_follows_next_time() {
    let place = Place::new();
    let bd = place.identify().unwrap();
    let none = Forgotten::default();
    let done = mirror::reconcile(&bd, &three(), &none, Duration::ZERO).unwrap();
    assert_eq!(done, Mirrored { left: 3, ..Mirrored::default() });
    place.mirror(&three()).unwrap();
    place.has(&three());
}

/// However often it is there, and before anything new comes: what comes later may fail.
#[test]
fn what_is_forgotten_here_is_emptied_there_first_of_all() {
    let place = Place::new();
    place.mirror(&three()).unwrap();
    let mut book = later();
    let secret = book.notes().find(|note| note.kind == Kind::Failure).unwrap().clone();
    let mut issues: Value =
        serde_json::from_str(&fs::read_to_string(place.path("issues.json")).unwrap()).unwrap();
    let rows = issues.as_object_mut().unwrap();
    let mut twice = rows.values().find(|it| it["external_ref"] == *secret.key).unwrap().clone();
    twice["id"] = "x-9".into();
    twice["status"] = "open".into();
    rows.insert("x-9".into(), twice);
    fs::write(place.path("issues.json"), issues.to_string()).unwrap();

    let mut forgotten = Forgotten::default();
    forgotten.note(&secret);
    book.retain(|note| !forgotten.has(note));
    // Who it is, twice; the list; two are emptied, and one of them closed.
    place.mode(&json!({"at": 7, "when": "before", "how": "error"}));
    let error = place.mirror_without(&book, &forgotten).unwrap_err();
    assert_eq!(error.call, "create");
    let emptied = || {
        let issues = place.issues();
        let of_it = issues.into_iter().filter(|it| it["external_ref"] == *secret.key);
        of_it.collect::<Vec<_>>()
    };
    assert_eq!(emptied().len(), 2);
    for issue in emptied() {
        let text = issue.to_string();
        assert!(!text.contains("quoted") && !text.contains("nusual"), "{text}");
        assert_eq!((&issue["status"], &issue["title"]), (&json!("closed"), &json!("forgotten")));
        assert_eq!(issue["metadata"], json!({"blueflame": null}));
    }
    place.mode(&json!({}));
    let done = place.mirror_without(&book, &forgotten).unwrap();
    assert_eq!(done, Mirrored { created: 1, ..Mirrored::default() });
    assert_eq!(place.mirror_without(&book, &forgotten).unwrap(), Mirrored::default());
    assert_eq!(place.refused(), "");
}

/// What only followed from forgotten notes tells of them as well.
#[test]
fn what_followed_from_what_is_forgotten_is_emptied_there_too() {
    let failed = |number| Note {
        standing: Some(Standing::Unresolved),
        causes: vec!["failed: the same".to_owned()],
        ..note(number, "task-001", Kind::Failure)
    };
    let mut book = Notebook::new([failed(1), failed(2), failed(3)]);
    book.settle(None);
    let pattern = book.notes().find(|note| note.kind == Kind::Pattern).unwrap().clone();
    let place = Place::new();
    place.mirror(&book).unwrap();
    let mut forgotten = Forgotten::default();
    let forget = |number, forgotten: &mut Forgotten, book: &mut Notebook| {
        forgotten.note(&failed(number));
        forgotten.followed(book);
        *forgotten = Forgotten::read(&forgotten.text());
        book.retain(|note| !forgotten.has(note));
        book.settle(None);
    };
    forget(1, &mut forgotten, &mut book);
    place.mirror_without(&book, &forgotten).unwrap();
    assert!(!forgotten.was_taken_away(&pattern.key), "two are left");
    forget(2, &mut forgotten, &mut book);
    assert!(book.get(&pattern.key).is_none() && !forgotten.has(&pattern));
    place.mirror_without(&book, &forgotten).unwrap();
    let of_pattern = |issues: Vec<Value>| {
        let mut issues = issues.into_iter();
        issues.find(|it| it["external_ref"] == *pattern.key).unwrap().to_string()
    };
    assert!(!of_pattern(place.issues()).contains("the same"));
    // When it is true again, it is told again.
    book.replace(&failed(4).session, [failed(4)]);
    book.settle(None);
    place.mirror_without(&book, &forgotten).unwrap();
    assert!(of_pattern(place.issues()).contains("the same"));
    assert_eq!(place.refused(), "");
}

/// Keys do not get there, whoever kept the note.
#[test]
fn bd_gets_no_keys() {
    let token = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
    let book = Notebook::new([Note {
        title: format!("a title with {token}"),
        text: format!("a text with {token}"),
        causes: vec![format!("a cause with {token}")],
        ..note(1, "task-001", Kind::Failure)
    }]);
    let place = Place::new();
    place.mirror(&book).unwrap();
    let issues = fs::read_to_string(place.path("issues.json")).unwrap();
    assert!(!issues.contains(token), "{issues}");
    for said in ["a title with [hidden]", "a text with [hidden]", "a cause with [hidden]"] {
        assert!(issues.contains(said), "{issues}");
    }
}

/// A repository whose configuration wants a copy, and a `bd` on the search path.
struct Scene {
    stage: Stage,
    place: Place,
    path: String,
}

impl Scene {
    fn new() -> Scene {
        let place = Place::new();
        let path =
            format!("{}:{}", place.directory.path().display(), std::env::var("PATH").unwrap());
        Scene { stage: super::stage("beads: {mirror: true}\n"), place, path }
    }

    fn start(&self, arguments: &[&str]) -> Running<'_> {
        let variables = [("PATH", self.path.as_str()), ("BEADS_DB", "x"), ("CLAUDECODE", "1")];
        self.stage.start_with(arguments, &variables)
    }

    fn run(&self, arguments: &[&str]) -> Told {
        self.start(arguments).end()
    }

    fn session(&self) -> Told {
        self.run(&self.stage.run_arguments())
    }

    /// The person agrees.
    fn agree(&self) -> Told {
        self.run(&["memory", "init", "--beads", "--yes"])
    }
}

/// Hooks in a `.beads` run with all rights of the person, so that nothing which the
/// repository brings along starts `bd`: not its hooks, not what is committed, and not
/// its configuration. The person agrees on their machine, and only to what was there.
#[test]
fn what_a_repository_brings_along_for_bd_is_not_run_unasked() {
    type Bring = fn(&Stage);
    let cases: [(&str, Bring); 2] = [
        ("`.beads/hooks` has hooks in it", |stage| {
            stage.write(".beads/hooks/on_create", "#!/bin/sh\n");
        }),
        ("`.beads` is committed", |stage| {
            stage.write(".beads/config.yaml", "");
            stage.git(&["add", "-f", ".beads/config.yaml"]);
            stage.git(&["commit", "-qm", "beads"]);
        }),
    ];
    for (why, bring) in cases {
        let scene = Scene::new();
        let Scene { stage, place, .. } = &scene;
        stage.write(".beads/embeddeddolt/x", "");
        scene.session().exits(1).says("gets a copy once you agreed to it");
        assert_eq!(place.calls(), 0, "{why}: nobody agreed");
        scene.agree().exits(0).says("not in the repository");
        scene.session().exits(1).says("`bd` has a copy (");

        bring(stage);
        place.mode(&json!({}));
        scene.session().exits(1).says(why).says("memory init --beads");
        scene.run(&["memory", "forget", &stage.session_id()]).exits(0).says(why);
        assert_eq!(place.calls(), 0, "{why}: nobody agreed to that");
        scene.run(&["memory", "init", "--beads"]).exits(4).says(why).says("nobody is there to ask");
        scene.agree().exits(0).says(why);
        scene.agree().exits(0).says("you agreed to it already");
        scene.session().exits(1).says("`bd` has a copy (");
        assert_eq!(place.refused(), "");
    }
}

#[test]
fn a_half_made_beads_is_told_apart_and_left_alone() {
    let scene = Scene::new();
    let Scene { stage, place, .. } = &scene;
    place.mode(&json!({"half": true}));
    scene.agree().exits(3).says("made no database in");
    place.mode(&json!({}));
    let why = "has no database in it: a `bd init` did not come to its end";
    scene.agree().exits(3).says(why).says("`bd init`");
    scene.session().exits(1).says(why);
    let doctor = scene.run(&["doctor"]).stdout;
    assert!(doctor.split_whitespace().collect::<Vec<_>>().join(" ").contains(why), "{doctor}");
    assert_eq!(place.calls(), 0, "nothing is called");
    fs::create_dir(stage.repository().join(".beads/embeddeddolt")).unwrap();
    scene.agree().exits(0);
}

/// Forgotten while `bd` cannot be reached, and gone from the notes: the next time it
/// is emptied there all the same.
#[test]
fn what_was_forgotten_while_bd_was_away_is_emptied_later() {
    let scene = Scene::new();
    let Scene { stage, place, .. } = &scene;
    scene.agree().exits(0);
    scene.session().exits(1).says("`bd` has a copy (");
    assert!(place.issues().iter().any(|it| it.to_string().contains("plain text files")));
    let first = stage.session_id();
    // Not even installed.
    stage
        .blueflame(&["memory", "forget", &first])
        .exits(0)
        .says("4 notes forgotten")
        .says("what `bd` has stays as it is for now: `bd` is not installed");
    assert!(place.issues().iter().any(|it| it.to_string().contains("plain text files")));
    scene.run(&["memory", "import", "../notes.jsonl"]).exits(2).says("cannot be read");
    fs::write(stage.env.path("notes.jsonl"), "").unwrap();
    scene.run(&["memory", "import", "../notes.jsonl"]).exits(0);
    for issue in place.issues() {
        assert_eq!((&issue["title"], &issue["status"]), (&json!("forgotten"), &json!("closed")));
        assert!(!issue.to_string().contains("plain text files"), "{issue}");
    }
    assert_eq!(place.refused(), "");
}

/// Whoever has enough of waiting leaves nothing behind, and the next time makes it
/// good. By one signal or another, in a command or at the end of a session.
#[test]
fn an_interrupt_ends_bd_with_all_that_it_started() {
    let scene = Scene::new();
    let Scene { stage, place, .. } = &scene;
    scene.agree().exits(0);
    let begun = stage.run_arguments();
    scene.session().exits(1);
    let first = stage.session_id();
    let interrupt = |arguments: &[&str], signal: Signal| {
        // The list, after it said who it is; its child has left the group.
        place.mode(&json!({"at": 3, "when": "before", "how": "hang"}));
        let running = scene.start(arguments);
        wait_until("it hangs", || place.calls() == 3 && place.hangs());
        running.signal(signal);
        let told = running.end();
        assert!(!place.runs(), "something of it runs: {told}");
        assert_eq!(place.calls(), 3, "it went on");
        place.mode(&json!({}));
        told.says("gets it next time: interrupted")
    };
    interrupt(&begun, Signal::INT).exits(1);
    interrupt(&begun, Signal::TERM).exits(1);
    interrupt(&["memory", "forget", &first], Signal::INT).exits(130).says("forgotten");
    let list = scene.run(&["memory"]).exits(0).stdout;
    assert!(list.contains("`bd` is behind since") && !list.contains(&first), "{list}");
    scene.session().exits(1).says("`bd` has a copy (");
    let emptied = place.issues().into_iter().filter(|it| it["title"] == "forgotten").count();
    assert_eq!(emptied, 4);
}

/// The same with whole sessions: `bd` is set up when the person says so and not
/// before, gets a copy, and what it does wrong is a warning.
#[test]
fn a_session_ends_well_whatever_becomes_of_the_copy() {
    let scene = Scene::new();
    let Scene { stage, place, .. } = &scene;

    scene.session().exits(1).says("once you agreed to it: `blueflame memory init --beads`");
    assert!(is_untouched(&stage.repository()), "nobody asked for it");
    scene.run(&["memory", "init", "--beads"]).exits(4).says("nobody is there to ask");
    assert!(is_untouched(&stage.repository()));
    scene.agree().exits(0).says("commit nothing");
    scene.agree().exits(0).says("you agreed to it already");

    scene.session().exits(1).says("`bd` has a copy (");
    // All of both sessions, and a pattern of the two.
    let known = notes(stage);
    assert_eq!(place.issues().len(), known.len(), "{:?}", kinds(&known));
    assert_eq!(place.refused(), "");

    // When it is asked who it is, and in the middle.
    for at in [1, 5] {
        place.mode(&json!({"at": at, "when": "before", "how": "error"}));
        scene.session().exits(1).says("warning: `bd` has no full copy").says("out of order");
    }
    let list = scene.run(&["memory"]).exits(0).stdout;
    assert!(list.contains("`bd` is behind since"), "{list}");
    place.mode(&json!({}));
    scene.session().exits(1).says("`bd` has a copy (");
    assert_eq!(place.issues().len(), notes(stage).len());
    assert!(!scene.run(&["memory"]).exits(0).stdout.contains("is behind"));
    assert_eq!(place.refused(), "");
}
