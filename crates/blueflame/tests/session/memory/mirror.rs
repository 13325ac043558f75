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
use serde_json::{Value, json};

use super::{is_untouched, kinds, notes};
use crate::stage::{Stage, wait_until};

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

    fn identify(&self) -> Result<Bd, Unusable> {
        self.identify_within(MINUTE)
    }

    fn identify_within(&self, patience: Duration) -> Result<Bd, Unusable> {
        let path = self.directory.path().as_os_str().to_owned();
        Bd::identify(&path, &self.path("project"), patience)
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
    let program = place.path("bd").display().to_string();
    wait_until("nothing of it runs", || {
        let mut processes = fs::read_dir("/proc").unwrap().flatten();
        !processes.any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&program)
        })
    });
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

#[test]
fn what_is_forgotten_here_is_emptied_there() {
    let place = Place::new();
    let mut book = three();
    place.mirror(&book).unwrap();
    let secret = book.notes().find(|note| note.kind == Kind::Failure).unwrap().clone();
    let mut forgotten = Forgotten::default();
    forgotten.note(&secret);
    book.retain(|note| !forgotten.has(note));
    let done = place.mirror_without(&book, &forgotten).unwrap();
    assert_eq!(done, Mirrored { updated: 1, ..Mirrored::default() });
    let emptied = place.issues();
    let emptied = emptied.iter().find(|it| it["external_ref"] == secret.key.as_str()).unwrap();
    assert!(!emptied.to_string().contains("quoted"), "{emptied}");
    assert_eq!(place.mirror_without(&book, &forgotten).unwrap(), Mirrored::default());
}

/// Hooks in a `.beads` run with all rights of the person, so that one which the
/// repository brings along is used only where the person wrote so.
#[test]
fn what_a_repository_brings_along_for_bd_is_not_run_unasked() {
    type Bring = fn(&Stage);
    let cases: [(&str, Bring); 2] = [
        ("`.beads/hooks` has hooks in it", |stage| {
            stage.write(".beads/hooks/on_create", "#!/bin/sh\n");
        }),
        ("`.beads` is committed", |stage| {
            stage.write(".beads/config.yaml", "");
            stage.git(&["add", "-f", ".beads"]);
            stage.git(&["commit", "-qm", "beads"]);
        }),
    ];
    for (why, bring) in cases {
        for (more, accepted) in [("", false), ("beads: {mirror: true}\n", true)] {
            let stage = super::stage(more);
            bring(&stage);
            let place = Place::new();
            let path =
                format!("{}:{}", place.directory.path().display(), std::env::var("PATH").unwrap());
            let run = |arguments: &[&str]| stage.start_with(arguments, &[("PATH", &path)]).end();
            let told = run(&stage.run_arguments()).exits(1);
            if accepted {
                told.says("`bd` has a copy (");
                assert!(!place.issues().is_empty());
                continue;
            }
            told.says(why).says("beads: {mirror: true}");
            assert_eq!(place.calls(), 0, "{why}");
            run(&["memory", "forget", &stage.session_id()]).exits(0).says(why);
            assert_eq!(place.calls(), 0, "{why}");
        }
    }
}

/// The same with whole sessions: `bd` is set up when the person says so and not
/// before, gets a copy, and what it does wrong is a warning.
#[test]
fn a_session_ends_well_whatever_becomes_of_the_copy() {
    let stage = super::stage("");
    let place = Place::new();
    let path = format!("{}:{}", place.directory.path().display(), std::env::var("PATH").unwrap());
    let variables = [("PATH", path.as_str()), ("BEADS_DB", "x"), ("CLAUDECODE", "1")];
    let run = |arguments: &[&str]| stage.start_with(arguments, &variables).end();
    let session = stage.run_arguments();

    run(&session).exits(1).says("once there is a `.beads` (`blueflame memory init --beads`)");
    assert!(is_untouched(&stage.repository()), "nobody asked for it");
    run(&["memory", "init", "--beads"]).exits(4).says("nobody is there to ask");
    assert!(is_untouched(&stage.repository()));
    run(&["memory", "init", "--beads", "--yes"]).exits(0).says("commit nothing");
    run(&["memory", "init", "--beads", "--yes"]).exits(2).says("is there already");

    run(&session).exits(1).says("`bd` has a copy (");
    // All of both sessions, and a pattern of the two.
    let known = notes(&stage);
    assert_eq!(place.issues().len(), known.len(), "{:?}", kinds(&known));
    assert_eq!(place.refused(), "");

    // When it is asked who it is, and in the middle.
    for at in [1, 5] {
        place.mode(&json!({"at": at, "when": "before", "how": "error"}));
        run(&session).exits(1).says("warning: `bd` has no full copy").says("out of order");
    }
    let list = run(&["memory"]).exits(0).stdout;
    assert!(list.contains("`bd` is behind since"), "{list}");
    place.mode(&json!({}));
    run(&session).exits(1).says("`bd` has a copy (");
    assert_eq!(place.issues().len(), notes(&stage).len());
    assert!(!run(&["memory"]).exits(0).stdout.contains("is behind"));
    assert_eq!(place.refused(), "");
}
