//! Traffic is kept and can stand in for the provider later.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::gateway::Settings;
use blueflame_gateway::recording::Recording;
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::{Replay, Upstream};

use crate::wire::*;

const SCRIPT: &str = "replies:
  - {when: {contains: first}, say: one, usage: {input: 5, output: 7}}
  - {when: {contains: second}, call: [{tool: Read, input: {file_path: a}}]}
  - {when: {contains: third}, fail: {status: 529, retry_after: 3s}}
  - {when: {contains: fourth}, say: a long story about nothing, cut_after: 3}
";

const PATHS: [&str; 3] = ["/v1/messages", "/v1/responses", "/v1/chat/completions"];

fn request(path: &str, text: &str, noise: &str) -> String {
    let key = if path.ends_with("responses") { "input" } else { "messages" };
    format!(
        r#"{{"model":"m","stream":true,"metadata":{{"user_id":"{noise}"}},"{key}":[{{"role":"user","content":"{text}"}}]}}"#
    )
}

fn body(answer: &str) -> String {
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_replay_answers_as_it_was_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("traffic.jsonl");
    let (script, _) = Script::read(SCRIPT.as_bytes()).unwrap();
    let settings = Settings {
        recording: Some(Recording::open(&path).unwrap()),
        ..Settings::new(Upstream::Script(script.into()))
    };
    let served = serve(settings, Allowance::unlimited()).await;
    let mut recorded = Vec::new();
    for at in PATHS {
        for text in ["first", "second", "third", "fourth"] {
            recorded.push(served.ask(at, &request(at, text, "run 1")).await);
        }
    }
    let spent = served.gateway.close().await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let replay = Arc::new(Replay::read(&[&path]).unwrap());
    let served = serve(Settings::new(Upstream::Replay(replay)), Allowance::unlimited()).await;
    let mut expected = recorded.into_iter();
    for at in PATHS {
        for text in ["first", "second", "third", "fourth"] {
            let again = served.ask(at, &request(at, text, "run 2")).await;
            let before = expected.next().unwrap();
            assert_eq!(status(&again), status(&before));
            assert_eq!(body(&again), body(&before), "{at} {text}");
            assert_eq!(again.contains("retry-after: 3"), text == "third");
        }
        let twice = served.ask(at, &request(at, "first", "run 2")).await;
        assert!(matches!(status(&twice), 400), "it was asked once: {twice}");
        assert_eq!(status(&served.ask(at, &request(at, "never", "")).await), 400);
    }
    assert_eq!(served.gateway.close().await, spent, "and it is counted the same");
}

#[tokio::test]
async fn a_recording_that_a_crash_tore_is_read_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("traffic.jsonl");
    let (script, _) = Script::read(b"replies: [{say: hello}]").unwrap();
    let settings = Settings {
        recording: Some(Recording::open(&path).unwrap()),
        ..Settings::new(Upstream::Script(script.into()))
    };
    let served = serve(settings, Allowance::unlimited()).await;
    served.ask_messages().await;
    served.gateway.close().await;
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
    assert!(Replay::read(&[&path]).is_ok());
    std::fs::write(&path, format!("{}\n{whole}", &whole[..whole.len() / 2])).unwrap();
    let error = Replay::read(&[&path]).unwrap_err();
    assert!(error.to_string().starts_with("line 1 of the recording"), "{error}");
}
