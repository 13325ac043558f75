//! Every question at a real pseudo-terminal.
//!
//! The person is a script: wait for this text, type that. The program is this
//! test program again, started with the terminal as its input and standard
//! error, as `blueflame run` would be.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blueflame_testkit::screen::Screen;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::LocalModes;

use super::samples::Sample;
use super::*;
use crate::executor::Choice;

const SCENE: &str = "BLUEFLAME_TEST_SCENE";
const RESULT: &str = "BLUEFLAME_TEST_RESULT";
/// Waits without typing anything.
const NOTHING: &str = "nothing";
const PATIENCE: Duration = Duration::from_secs(60);

fn sample(scene: &str) -> Sample {
    match scene {
        "plan" => Sample::plan(),
        "changeset" => Sample::changeset(),
        "disputed" => Sample::disputed(),
        "unjudged" => Sample::unjudged(),
        "budget" => Sample::budget(),
        "session" => Sample::session(),
        other => panic!("no scene {other}"),
    }
}

/// The program under test; without a scene this is nothing.
#[test]
fn program() {
    let Some(scene) = std::env::var_os(SCENE) else { return };
    let scene = scene.into_string().unwrap();
    let result = PathBuf::from(std::env::var_os(RESULT).unwrap());
    let (scene, calling_off) = scene.split_once('/').unwrap_or((&scene, ""));
    let cancel = Cancel::new().unwrap();
    let other = cancel.clone();
    let go = result.with_extension("go");
    match calling_off {
        "" => {}
        how => {
            let how = how.to_owned();
            std::thread::spawn(move || {
                while !go.exists() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                if how == "withdraw" { other.withdraw() } else { other.interrupt() }
            });
        }
    }
    let mut respondent = Respondent::new(None, false, Terminal::of_process());
    let said = if scene == "questions" {
        let answers = respondent.answer_questions(&questions(), &cancel);
        answers.map(|answers| serde_json::to_string(&answers).unwrap())
    } else {
        let sample = sample(scene);
        let answer = respondent.ask(&sample.occasion(), &cancel);
        answer.map(|answer| serde_json::to_string(&answer).unwrap())
    };
    let said = said.unwrap_or_else(|unanswered| unanswered.to_string());
    fs::write(result, said).unwrap();
}

fn questions() -> Vec<Question> {
    let option = |label: &str| Choice { label: label.to_owned(), description: String::new() };
    let question = |question: &str, options: &[&str], multi_select| Question {
        question: question.to_owned(),
        header: String::new(),
        options: options.iter().map(|label| option(label)).collect(),
        multi_select,
    };
    vec![
        question("Which store?", &["memory", "redis"], false),
        question("Which routes?", &["login", "logout", "me"], true),
    ]
}

/// A person at a terminal of their own.
struct Person {
    screen: Screen,
    program: Child,
    seen: String,
    /// How much of it was waited for already.
    read_to: usize,
    directory: tempfile::TempDir,
}

impl Person {
    fn begin(scene: &str, variables: &[(&str, &str)]) -> Self {
        Person::begin_after(scene, variables, "")
    }

    /// With something typed before the program runs.
    fn begin_after(scene: &str, variables: &[(&str, &str)], typed: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (mut screen, terminal) = Screen::open((72, 40)).unwrap();
        screen.write_all(typed.as_bytes()).unwrap();
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "people::at_a_terminal::program", "--nocapture"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TERM", "xterm")
            .env("PAGER", "cat")
            .env("NO_COLOR", "1")
            .env(SCENE, scene)
            .env(RESULT, directory.path().join("result"))
            .envs(variables.iter().copied())
            .stdin(terminal.try_clone().unwrap())
            .stdout(Stdio::null())
            .stderr(terminal)
            .spawn()
            .unwrap();
        Person { screen, program, seen: String::new(), read_to: 0, directory }
    }

    /// Waits for a text that was not there before.
    fn wait_for(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen[self.read_to..].find(text) {
                self.read_to += at + text.len();
                return self;
            }
            assert!(Instant::now() < deadline, "{text:?} never came:\n{}", self.seen);
            self.look();
        }
    }

    /// Takes in what is on the screen; false once nobody writes to it any more.
    fn look(&mut self) -> bool {
        let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let ready = poll(&mut [PollFd::new(&self.screen, PollFlags::IN)], Some(&moment)).unwrap();
        let mut buffer = [0; 4096];
        if ready == 0 {
            return true;
        }
        match self.screen.read(&mut buffer) {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                let text = String::from_utf8_lossy(&buffer[..length]).replace('\r', "");
                self.seen.push_str(&text);
                true
            }
        }
    }

    fn types(&mut self, text: &str) -> &mut Self {
        self.screen.write_all(text.as_bytes()).unwrap();
        self
    }

    fn answers(&mut self, prompt: &str, text: &str) -> &mut Self {
        self.wait_for(prompt).types(text).types("\n")
    }

    fn plays(&mut self, lines: &[(&str, &str)]) {
        for (prompt, text) in lines {
            self.wait_for(prompt);
            if *text != NOTHING {
                self.types(text).types("\n");
            }
        }
    }

    fn calls_off(&mut self) {
        fs::write(self.directory.path().join("result.go"), "").unwrap();
    }

    /// What the program made of it all.
    fn result(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.program.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it never ended:\n{}", self.seen);
            self.look();
        }
        while Instant::now() < deadline && self.look() {}
        fs::read_to_string(self.directory.path().join("result")).unwrap()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A program that stands in for an editor: a shell script that is given a file.
fn editor(script: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("editor");
    fs::write(&path, script).unwrap();
    let command = format!("sh {}", path.display());
    (directory, command)
}

fn lines_of(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn a_plan_is_approved_after_a_wrong_answer() {
    let mut person = Person::begin("plan", &[]);
    person.answers(" > ", "yes").answers(" > ", "").answers(" > ", "a");
    assert_eq!(person.result(), r#"{"plan":"approve"}"#);
    insta::assert_snapshot!(person.seen);
}

#[test]
fn plans_are_sent_back_and_declined() {
    for (keys, said) in [
        (&[(" > ", "q")][..], r#"{"plan":"quit"}"#),
        (&[(" > ", "quit")], r#"{"plan":"quit"}"#),
        (&[(" > ", "r split task-001")], r#"{"plan":{"replan":{"notes":"split task-001"}}}"#),
        (
            &[
                (" > ", "r"),
                ("\n> ", ""),
                ("Nothing was decided.", NOTHING),
                (" > ", "replan"),
                ("\n> ", "smaller\ntasks\n\nand fewer\n"),
            ],
            r#"{"plan":{"replan":{"notes":"smaller\ntasks\n\nand fewer"}}}"#,
        ),
        (&[(" > ", "v"), ("forged tokens.", NOTHING), (" > ", "a")], r#"{"plan":"approve"}"#),
    ] {
        let mut person = Person::begin("plan", &[]);
        person.plays(keys);
        assert_eq!(person.result(), said, "{keys:?}");
    }
}

#[test]
fn a_plan_is_edited_until_it_is_one() {
    // The first time it makes a mistake, the second time it corrects it.
    let (_kept, command) = editor(
        "echo once >> \"$0.calls\"\n\
         if [ $(wc -l < \"$0.calls\") = 1 ]; then\n\
           sed -i 's/priority: 2/priority: soon/' \"$1\"\n\
         else\n\
           sed -i 's/priority: soon/priority: 7/' \"$1\"\n\
         fi\n",
    );
    let mut person = Person::begin("plan", &[("VISUAL", &command), ("EDITOR", "false")]);
    person.answers(" > ", "e");
    person.wait_for("must be a whole number").wait_for("1 problem in ");
    person.answers("[e]dit  [d]iscard > ", "e");
    let said = person.result();
    assert!(said.starts_with(r#"{"plan":{"edit":{"plan":{"tasks":[{"id":"task-001""#), "{said}");
    assert!(said.contains(r#""priority":7"#), "{said}");
}

#[test]
fn an_edit_is_discarded_and_an_edit_of_nothing_is_none() {
    let (kept, command) = editor("echo once >> \"$0.calls\"\necho 'tasks: [' > \"$1\"\n");
    let mut person = Person::begin("plan", &[("EDITOR", &command)]);
    person.answers(" > ", "e").answers("[d]iscard > ", "d").answers(" > ", "a");
    assert_eq!(person.result(), r#"{"plan":"approve"}"#);
    assert_eq!(lines_of(&kept.path().join("editor.calls")), 1);

    let mut person = Person::begin("plan", &[("EDITOR", "true")]);
    person.answers(" > ", "e").wait_for("The plan is the same as before.").answers(" > ", "q");
    assert_eq!(person.result(), r#"{"plan":"quit"}"#);
}

#[test]
fn without_an_editor_the_file_can_be_edited_elsewhere() {
    for variables in [&[("EDITOR", "no-such-editor")][..], &[("TERM", "dumb")]] {
        let mut person = Person::begin("plan", variables);
        person.answers(" > ", "e").answers("Press Enter when it is saved > ", "");
        person.answers(" > ", "q");
        assert_eq!(person.result(), r#"{"plan":"quit"}"#, "{variables:?}");
    }
}

#[test]
fn a_changeset_is_read_and_rejected_with_a_reason() {
    let mut person = Person::begin("changeset", &[]);
    person.answers(" > ", "v").wait_for("+pub fn check() {}").wait_for("+mod jwt;");
    person.answers(" > ", "f 2").wait_for("+mod jwt;");
    person.answers(" > ", "f").answers("number or path? > ", "nothing.rs");
    person.wait_for("no such file");
    person.answers(" > ", "f").answers("number or path? > ", "jwt.rs").wait_for("+pub fn check");
    person.answers(" > ", "r").answers("\n> ", "").wait_for("A rejection needs a reason");
    person.answers(" > ", "r").answers("\n> ", "exp is ignored\n");
    assert_eq!(person.result(), r#"{"changeset":{"reject":{"reason":"exp is ignored"}}}"#);
    insta::assert_snapshot!(person.seen);
}

#[test]
fn each_gate_takes_each_of_its_keys() {
    for (scene, keys, said) in [
        ("changeset", &[(" > ", "a")][..], r#"{"changeset":"approve"}"#),
        ("changeset", &[(" > ", "s")], r#"{"changeset":"skip"}"#),
        ("changeset", &[(" > ", "reject bad")], r#"{"changeset":{"reject":{"reason":"bad"}}}"#),
        ("disputed", &[(" > ", "d")], r#"{"validation_failed":"drop"}"#),
        (
            "disputed",
            &[(" > ", "v"), ("+x", NOTHING), (" > ", "r"), ("\n> ", "")],
            r#"{"validation_failed":{"requeue":{"notes":""}}}"#,
        ),
        (
            "disputed",
            &[(" > ", "r compare with now")],
            r#"{"validation_failed":{"requeue":{"notes":"compare with now"}}}"#,
        ),
        ("unjudged", &[(" > ", "m")], r#"{"validator_failed":"manual_pass"}"#),
        ("unjudged", &[(" > ", "x"), (" > ", "s")], r#"{"validator_failed":"skip"}"#),
        ("unjudged", &[(" > ", "retry")], r#"{"validator_failed":"retry"}"#),
        ("budget", &[(" > ", "s")], r#"{"budget":"stop"}"#),
        (
            "budget",
            &[(" > ", "r"), ("much? > ", "lots"), (" > ", "r 5k tokens"), (" > ", "r $5")],
            r#"{"budget":{"raise":{"by":{"usd":5000000}}}}"#,
        ),
        ("session", &[(" > ", "s")], r#"{"session":"stop"}"#),
        ("session", &[(" > ", "c"), (" > ", "")], r#"{"session":{"continue":{}}}"#),
        (
            "session",
            &[(" > ", "c"), (" > ", "9"), (" > ", "c"), (" > ", "all")],
            r#"{"session":{"continue":{"retry":["task-003"]}}}"#,
        ),
        ("session", &[(" > ", "c 1")], r#"{"session":{"continue":{"retry":["task-003"]}}}"#),
        (
            "session",
            &[(" > ", "r"), ("\n> ", "only docs\n")],
            r#"{"session":{"replan":{"notes":"only docs"}}}"#,
        ),
        (
            "questions",
            &[(" > ", "3"), (" > ", "2"), (" > ", "1, 3")],
            r#"{"Which routes?":"login, me","Which store?":"redis"}"#,
        ),
    ] {
        let mut person = Person::begin(scene, &[]);
        person.plays(keys);
        assert_eq!(person.result(), said, "{scene} {keys:?}\n{}", person.seen);
    }
}

#[test]
fn a_task_is_edited() {
    let (_kept, command) = editor("sed -i 's#src/auth#src/api#' \"$1\"\n");
    let mut person = Person::begin("disputed", &[("EDITOR", &command)]);
    person.answers(" > ", "e");
    assert_eq!(person.result(), r#"{"validation_failed":{"edit":{"file_locks":["src/api"]}}}"#);
}

#[test]
fn the_end_of_input_is_nobodys_answer() {
    for (scene, keys) in [
        ("plan", &[][..]),
        ("changeset", &[(" > ", "r")]),
        ("changeset", &[(" > ", "r"), ("\n> ", "half a rea")]),
        ("session", &[]),
        ("questions", &[]),
    ] {
        let mut person = Person::begin(scene, &[]);
        person.plays(keys);
        person.wait_for(if keys.len() == 2 { "\n" } else { "> " }).types("\u{4}");
        let said = person.result();
        assert!(said.starts_with("no answer to the question: `"), "{scene} {keys:?}: {said}");
    }
}

#[test]
fn a_question_is_taken_back_while_the_person_thinks() {
    for (how, said) in [
        ("withdraw", "the question was taken back"),
        ("interrupt", "interrupted while waiting for an answer"),
    ] {
        let mut person = Person::begin(&format!("budget/{how}"), &[]);
        person.wait_for(" > ").types("half a li");
        person.calls_off();
        person.wait_for(&format!("\n{said}\n"));
        assert_eq!(person.result(), said);
    }
}

#[test]
fn a_question_is_taken_back_while_an_editor_is_open() {
    // It also leaves the terminal without echo, as editors do that are killed.
    let (_kept, command) = editor("stty -echo -icanon; echo open; exec sleep 60\n");
    let mut person = Person::begin("plan/withdraw", &[("EDITOR", &command)]);
    person.answers(" > ", "e").wait_for("open");
    person.calls_off();
    assert_eq!(person.result(), "the question was taken back");
    let modes = rustix::termios::tcgetattr(&person.screen).unwrap();
    assert!(modes.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let mut person = Person::begin_after("changeset", &[], "a\na\n");
    person.answers("[s]kip > ", "s");
    assert_eq!(person.result(), r#"{"changeset":"skip"}"#);
}

#[test]
fn colours_are_there_only_where_they_are_wanted() {
    for (variables, coloured) in [
        (&[("NO_COLOR", "")][..], true),
        (&[("NO_COLOR", "1")], false),
        (&[("NO_COLOR", ""), ("TERM", "dumb")], false),
    ] {
        let mut person = Person::begin("changeset", variables);
        person.answers(" > ", "v").answers(" > ", "a");
        assert_eq!(person.result(), r#"{"changeset":"approve"}"#);
        assert_eq!(person.seen.contains('\u{1b}'), coloured, "{variables:?}: {:?}", person.seen);
        let bare = anstream::adapter::strip_str(&person.seen).to_string();
        assert!(bare.contains("+pub fn check() {}"), "{bare}");
    }
}

#[test]
fn a_pager_that_is_not_there_is_done_without() {
    let mut person = Person::begin("changeset", &[("PAGER", "no-such-pager")]);
    person.answers(" > ", "v").wait_for("+pub fn check() {}").answers(" > ", "s");
    assert_eq!(person.result(), r#"{"changeset":"skip"}"#);
}

#[test]
fn a_question_needs_a_terminal_on_both_ends() {
    let (null, other) = (File::open("/dev/null").unwrap(), File::open("/dev/null").unwrap());
    assert!(Terminal::new(null.into(), other.into(), Programs::default()).is_none());
}
