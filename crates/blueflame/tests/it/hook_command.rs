//! `blueflame __hook`: whatever goes wrong, the call is denied.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use std::{ffi::OsString, thread};

use blueflame::executor::Ruling;
use blueflame::hook;
use serde_json::Value;

const EVENT: &str = r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#;
const ALLOW: &str = "{\"version\":1,\"decision\":\"allow\"}\n";

/// Something that answers in place of an attempt process.
struct Answerer {
    place: tempfile::TempDir,
}

impl Answerer {
    fn socket(&self) -> PathBuf {
        self.place.path().join("hook")
    }

    /// Says the same to everyone, and hangs up; what it was asked is checked.
    fn saying(answer: &'static str) -> Answerer {
        Answerer::with(move |mut stream| {
            let mut question = String::new();
            let asked = BufReader::new(&stream).read_line(&mut question);
            // A hook that finds somebody else here says nothing.
            if asked.is_ok_and(|read| read > 0) {
                let question: Value = serde_json::from_str(&question).unwrap();
                assert_eq!(question["proof"], "PROOF");
                let _ = stream.write_all(answer.as_bytes());
            }
        })
    }

    fn with(answer: impl Fn(UnixStream) + Send + 'static) -> Answerer {
        let place = tempfile::tempdir_in("/tmp").unwrap();
        let listener = UnixListener::bind(place.path().join("hook")).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap());
            }
        });
        Answerer { place }
    }
}

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_blueflame"))
        .arg("__hook")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that has read enough hangs up.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn ask(socket: &Path, input: &[u8]) -> Output {
    let own = std::process::id().to_string();
    run(&["codex", socket.to_str().unwrap(), &own, "PROOF"], input)
}

/// A denial as agent programs understand it, in both ways that they have.
fn assert_denied(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = &said["hookSpecificOutput"];
    assert_eq!(said["hookEventName"], "PreToolUse");
    assert_eq!(said["permissionDecision"], "deny");
    let reason = said["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains(why), "{reason}");
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), reason);
}

#[test]
fn an_allowed_call_has_no_word_against_it() {
    let answerer = Answerer::saying(ALLOW);
    let output = ask(&answerer.socket(), b"{\n \"hook_event_name\": \"PreToolUse\"\r\n}\n");
    let nothing = output.stdout.is_empty() && output.stderr.is_empty();
    assert!(output.status.success() && nothing, "{output:?}");
}

#[test]
fn a_denial_is_said_in_the_words_of_the_attempt() {
    let answerer = Answerer::saying(
        "{\"version\":1,\"decision\":\"deny\",\"reason\":\"[paths.scope] not yours\"}\n",
    );
    let output = ask(&answerer.socket(), EVENT.as_bytes());
    assert_denied(&output, "[paths.scope] not yours");
}

#[test]
fn input_that_is_no_event_is_denied() {
    let answerer = Answerer::saying(ALLOW);
    let socket = answerer.socket();
    let (opened, closed) = ("[".repeat(100_000), "]".repeat(100_000));
    let deep = format!("{{\"hook_event_name\":\"a\",\"b\":{opened}{closed}}}");
    let huge = format!("{{\"hook_event_name\":\"{}\"}}", "x".repeat(9 << 20));
    for (input, why) in [
        (&b""[..], "what it was told cannot be read"),
        (b"hello", "what it was told cannot be read"),
        (b"{\"hook_event_name\":\"PreToolUse\"", "what it was told cannot be read"),
        (b"{\"hook_event_name\":\"PreToolUse\"} {}", "what it was told cannot be read"),
        (b"{\"tool_name\":\"Bash\"}", "hook_event_name"),
        (b"{\"hook_event_name\":\"a\",\"hook_event_name\":\"b\"}", "duplicate field"),
        (
            b"{\"hook_event_name\":\"PreToolUse\",\"tool_input\":{\"command\":\"id\",\"command\":\"ls\"}}",
            "the key `command` is said twice",
        ),
        (deep.as_bytes(), "recursion limit"),
        (b"{\"hook_event_name\":7}", "what it was told cannot be read"),
        (b"[]", "what it was told cannot be read"),
        (b"{\"hook_event_name\":\"Pre\xff\xfe\"}", "utf-8"),
        (huge.as_bytes(), "more than 8388608 bytes"),
    ] {
        assert_denied(&ask(&socket, input), why);
    }
}

#[test]
fn without_an_answer_it_is_denied() {
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let missing = ask(&place.path().join("hook"), EVENT.as_bytes());
    assert_denied(&missing, "the attempt process cannot be asked");
    // What an attempt that was killed leaves: a socket that nobody listens at.
    let left = place.path().join("left");
    drop(UnixListener::bind(&left).unwrap());
    assert_denied(&ask(&left, EVENT.as_bytes()), "the attempt process cannot be asked");
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_denied(&ask(&file, EVENT.as_bytes()), "the attempt process cannot be asked");
}

#[test]
fn an_answer_that_breaks_off_is_a_denial() {
    // Killed before it has read the question, after that, and while it speaks.
    let at_once = Answerer::with(drop);
    assert_denied(&ask(&at_once.socket(), EVENT.as_bytes()), "gave no answer");
    let after = Answerer::saying("");
    assert_denied(&ask(&after.socket(), EVENT.as_bytes()), "gave no answer");
    let half = Answerer::saying("{\"version\":1,\"decision\":\"allow\"}");
    assert_denied(&ask(&half.socket(), EVENT.as_bytes()), "it is cut");
}

#[test]
fn an_answer_that_is_not_understood_is_a_denial() {
    for answer in [
        "allow\n",
        "\n",
        "{}\n",
        "{\"version\":1}\n",
        "{\"version\":1,\"decision\":\"ALLOW\"}\n",
        "{\"version\":1,\"decision\":\"allow\",\"but\":1}\n",
        "{\"version\":1,\"decision\":\"allow\"}\n{\"version\":1,\"decision\":\"deny\"}\n",
        "{\"version\":2,\"decision\":\"allow\"}\n",
    ] {
        let answerer = Answerer::saying(answer);
        assert_denied(
            &ask(&answerer.socket(), EVENT.as_bytes()),
            "the answer cannot be understood",
        );
    }
}

#[test]
fn an_answer_without_end_is_a_denial() {
    let endless = Answerer::with(|mut stream| {
        let _ = BufReader::new(&stream).read_line(&mut String::new());
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    assert_denied(&ask(&endless.socket(), EVENT.as_bytes()), "the answer cannot be understood");
}

#[test]
fn somebody_else_in_the_place_of_the_attempt_is_not_believed() {
    let answerer = Answerer::saying(ALLOW);
    let socket = answerer.socket();
    for expected in ["0", "1"] {
        let output = run(&["codex", socket.to_str().unwrap(), expected, "PROOF"], EVENT.as_bytes());
        assert_denied(&output, "somebody else answers");
    }
}

#[test]
fn a_call_in_another_dialect_is_a_denial() {
    let answerer = Answerer::saying(ALLOW);
    let (socket, own) = (answerer.socket(), std::process::id().to_string());
    let socket = socket.to_str().unwrap();
    for arguments in [
        &["gemini", socket, &own, "PROOF"][..],
        &["", socket, &own, "PROOF"],
        &["codex", socket, "me", "PROOF"],
        &["codex", socket, &own],
        &["codex"],
        &[],
        &["codex", socket, &own, "PROOF", "--help"],
    ] {
        assert_denied(&run(arguments, EVENT.as_bytes()), "not called as it should be");
    }
}

/// What the tests below run in a process of its own, which it ends.
#[test]
#[ignore = "started by other tests"]
fn breaking_down() {
    match std::env::var("HOOK_BREAKS").unwrap().as_str() {
        "panic" => hook::verdict_within(hook::PATIENCE, || panic!("something odd")),
        "late" => hook::verdict_within(Duration::from_millis(50), || {
            std::thread::sleep(Duration::from_secs(600));
            Ok(Ruling::Allow)
        }),
        "asking" => {
            let arguments = std::env::var("HOOK_ARGUMENTS").unwrap();
            let arguments: Vec<OsString> = arguments.split(' ').map(OsString::from).collect();
            hook::run_within(Duration::from_millis(300), arguments.into_iter())
        }
        "stuck" => hook::verdict_within(Duration::from_millis(50), || {
            let _ = std::io::stdin().read(&mut [0]);
            Ok(Ruling::Allow)
        }),
        other => panic!("{other}"),
    }
}

fn broken(how: &str) -> Output {
    broken_with(how, "", b"")
}

fn broken_with(how: &str, arguments: &str, event: &[u8]) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hook_command::breaking_down", "--ignored", "--nocapture"])
        .env("HOOK_BREAKS", how)
        .env("HOOK_ARGUMENTS", arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held open if nothing is to be said: nothing comes, and no end either.
    let mut input = child.stdin.take();
    if let Some(mut input) = input.take_if(|_| !event.is_empty()) {
        input.write_all(event).unwrap();
    }
    let mut output = child.wait_with_output().unwrap();
    drop(input);
    // The test runner has said something before.
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    output.stdout = last.as_bytes().to_vec();
    output
}

#[test]
fn a_panic_is_a_denial() {
    assert_denied(&broken("panic"), "something odd");
}

#[test]
fn what_takes_too_long_is_a_denial() {
    assert_denied(&broken("late"), "no answer within");
    assert_denied(&broken("stuck"), "no answer within");
}

#[test]
fn an_answer_that_stops_halfway_or_never_begins_is_a_denial() {
    for half in ["", "{\"version\":1,\"decision\":\"allow\"}"] {
        let hanging = Answerer::with(move |mut stream| {
            let _ = BufReader::new(&stream).read_line(&mut String::new());
            let _ = stream.write_all(half.as_bytes());
            // It goes when the hook has gone.
            let _ = stream.read(&mut [0]);
        });
        let socket = hanging.socket();
        let arguments = format!("codex {} {} PROOF", socket.display(), std::process::id());
        let output = broken_with("asking", &arguments, EVENT.as_bytes());
        assert_denied(&output, "no answer within");
    }
}

/// One that is not listened to is not waited for either.
#[test]
fn a_denial_does_not_need_anybody_to_hear_it() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_blueflame"))
        .args(["__hook", "codex", "/nowhere", "1", "PROOF"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let mut input = child.stdin.take().unwrap();
    let writing = thread::spawn(move || {
        // A hundred megabytes, of which it reads as much as it likes.
        let block = vec![b' '; 1 << 20];
        for _ in 0..100 {
            if input.write_all(&block).is_err() {
                return;
            }
        }
    });
    assert_eq!(child.wait().unwrap().code(), Some(2));
    writing.join().unwrap();
}
