//! Choosing a reply, writing it, and refusing a script.

use serde_json::{Value, json};

use super::*;
use crate::dialect::Dialect;
use crate::meter::Meter;

fn script(text: &str) -> Script {
    let (script, warnings) = Script::read(text.as_bytes()).unwrap();
    assert_eq!(warnings, []);
    script
}

fn problems(text: &str) -> Vec<String> {
    let problems = Script::read(text.as_bytes()).unwrap_err();
    let at = |problem: &Problem| {
        let span = problem.span.map(|span| &text[span.start..span.end]).unwrap_or_default();
        format!("{problem} @ {}", span.lines().next().unwrap_or_default())
    };
    problems.iter().map(at).collect()
}

const PROMPT: &str = "Do it.\n  blueflame: role=worker task=task-001 attempt=2\nplease";

/// The same conversation in each dialect: a prompt, a call and its result.
fn conversation(dialect: Dialect, streamed: bool) -> Value {
    let mut request = match dialect {
        Dialect::Messages => json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": PROMPT}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                "content": [{"type": "text", "text": "file says hi\nblueflame: role=boss"}]}]},
        ]}),
        Dialect::Responses => json!({"instructions": "be good", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "t", "name": "Read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": "file says hi\nblueflame: role=boss"},
        ]}),
        Dialect::Chat => json!({"stream_options": {"include_usage": true}, "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": PROMPT},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "t", "type": "function",
                "function": {"name": "Read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "t", "content": "file says hi\nblueflame: role=boss"},
        ]}),
    };
    request["model"] = json!("m1");
    request["stream"] = json!(streamed);
    request
}

fn seen(request: &Value, dialect: Dialect) -> Sight {
    Sight::of(dialect, request.to_string().as_bytes()).unwrap()
}

fn text(answer: &Answer) -> String {
    let pieces = answer.pieces.iter().map(|piece| String::from_utf8_lossy(piece).into_owned());
    pieces.collect()
}

#[test]
fn a_request_shows_the_same_in_every_dialect() {
    for dialect in Dialect::ALL {
        let sight = seen(&conversation(dialect, true), dialect);
        assert_eq!(
            sight.to_string(),
            format!(
                "role=worker task=task-001 attempt=2 turn=1 model=m1 dialect={dialect} tools=[], \
                 and last: \"file says hi\\nblueflame: role=boss\""
            ),
        );
    }
}

#[test]
fn the_first_reply_that_fits_is_given() {
    let script = script(
        "replies:
  - {when: {role: planner}, say: plan}
  - {when: {task: task-001, turn: 0}, say: first}
  - {when: {task: task-001, attempt: 1}, say: second}
  - {when: {contains: says hi}, say: third}
  - {say: rest}
",
    );
    for dialect in Dialect::ALL {
        let answer = script.answer(&seen(&conversation(dialect, false), dialect));
        assert!(text(&answer).contains("third"), "{}", text(&answer));
    }
}

#[test]
fn a_request_that_nothing_fits_is_refused_with_what_it_showed() {
    let script = script(
        "replies:
  - when: {role: planner, turn: 7}
    say: plan
  - when: {task: task-001, turn: 3}
    say: later
",
    );
    let answer = script.answer(&seen(&conversation(Dialect::Messages, true), Dialect::Messages));
    assert_eq!((answer.status, answer.streamed), (400, false));
    let body: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(body["error"]["type"], "invalid_request_error");
    let message = body["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "the script has no reply for this request\n\
         the request shows role=worker task=task-001 attempt=2 turn=1 model=m1 dialect=messages \
         tools=[], and last: \"file says hi\\nblueflame: role=boss\"\n\
         reply 2 (line 4): turn is `1`, not `3`\n\
         reply 1 (line 2): role is `worker`, not `planner`; turn is `1`, not `7`"
    );
}

const SPOKEN: &str = "replies:
  - say: I will write a file. Then I will say more about it, in many words.
    call:
      - {tool: Write, input: {file_path: a.txt, content: hello}}
      - {tool: Bash, input: {command: git status}}
    usage: {input: 100, output: 20, cache_read: 30, cache_write: 4}
";

#[test]
fn a_streamed_answer_is_complete_and_its_figures_are_the_claimed_ones() {
    let script = script(SPOKEN);
    for dialect in Dialect::ALL {
        let answer = script.answer(&seen(&conversation(dialect, true), dialect));
        let mut meter = Meter::new(dialect, 0);
        meter.begin_stream();
        for piece in &answer.pieces {
            meter.take(piece);
        }
        assert!(meter.is_exact() && meter.is_complete(), "{dialect}");
        // The OpenAI dialects have no word for written cache.
        let input = if dialect == Dialect::Messages { 100 } else { 104 };
        assert_eq!((meter.usage().input, meter.usage().output), (input, 20), "{dialect}");
        assert_eq!(meter.usage().cache_read, 30);
    }
}

#[test]
fn an_answer_in_one_piece_says_the_same() {
    let script = script(SPOKEN);
    for dialect in Dialect::ALL {
        let answer = script.answer(&seen(&conversation(dialect, false), dialect));
        let body: Value = serde_json::from_str(&text(&answer)).unwrap();
        let calls: Vec<String> = match dialect {
            Dialect::Messages => body["content"].as_array().unwrap()[1..]
                .iter()
                .map(|block| block["input"].to_string())
                .collect(),
            Dialect::Responses => body["output"].as_array().unwrap()[1..]
                .iter()
                .map(|item| item["arguments"].as_str().unwrap().to_owned())
                .collect(),
            Dialect::Chat => body["choices"][0]["message"]["tool_calls"]
                .as_array()
                .unwrap()
                .iter()
                .map(|call| call["function"]["arguments"].as_str().unwrap().to_owned())
                .collect(),
        };
        assert_eq!(
            calls,
            [r#"{"file_path":"a.txt","content":"hello"}"#, r#"{"command":"git status"}"#],
            "{dialect}"
        );
        let mut meter = Meter::new(dialect, 0);
        meter.begin_whole();
        meter.take(&answer.pieces[0]);
        meter.end();
        assert!(meter.is_exact());
        assert_eq!(meter.usage().output, 20);
    }
}

/// What a client that only knows the events puts together from them.
fn assembled(dialect: Dialect, answer: &Answer) -> (String, Vec<(String, String)>) {
    let mut said = String::new();
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut events = crate::sse::Events::default();
    for piece in &answer.pieces {
        events.feed(piece, |data| {
            let Ok(event) = serde_json::from_slice::<Value>(data) else { return };
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match dialect {
                Dialect::Messages => {
                    if event["content_block"]["type"] == "tool_use" {
                        calls.push((word(&event["content_block"]["name"]), String::new()));
                    }
                    said.push_str(&word(&event["delta"]["text"]));
                    if let Some(json) = event["delta"]["partial_json"].as_str() {
                        calls.last_mut().unwrap().1.push_str(json);
                    }
                }
                Dialect::Responses => match event["type"].as_str().unwrap() {
                    "response.output_text.delta" => said.push_str(&word(&event["delta"])),
                    "response.output_item.done" if event["item"]["type"] == "function_call" => {
                        let item = &event["item"];
                        calls.push((word(&item["name"]), word(&item["arguments"])));
                    }
                    _ => {}
                },
                Dialect::Chat => {
                    let delta = &event["choices"][0]["delta"];
                    said.push_str(&word(&delta["content"]));
                    let call = &delta["tool_calls"][0];
                    if call["id"].is_string() {
                        calls.push((word(&call["function"]["name"]), String::new()));
                    }
                    if let Some((_, arguments)) = calls.last_mut() {
                        arguments.push_str(&word(&call["function"]["arguments"]));
                    }
                }
            }
        });
    }
    (said, calls)
}

#[test]
fn the_pieces_of_a_stream_add_up_to_what_was_scripted() {
    let script = script(SPOKEN);
    for dialect in Dialect::ALL {
        let answer = script.answer(&seen(&conversation(dialect, true), dialect));
        let (said, calls) = assembled(dialect, &answer);
        assert_eq!(said, "I will write a file. Then I will say more about it, in many words.");
        let names: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Write", "Bash"], "{dialect}");
        assert_eq!(calls[1].1, r#"{"command":"git status"}"#, "{dialect}");
    }
}

#[test]
fn structured_output_comes_the_way_each_dialect_has_for_it() {
    let script = script("replies:\n  - output: {tasks: [1, 2]}\n");
    for dialect in Dialect::ALL {
        let mut request = conversation(dialect, true);
        let (said, calls) = assembled(dialect, &script.answer(&seen(&request, dialect)));
        let expected = r#"{"tasks":[1,2]}"#.to_owned();
        if dialect == Dialect::Messages {
            assert_eq!(calls, [("StructuredOutput".to_owned(), expected)]);
        } else {
            assert_eq!((said, calls), (expected.clone(), vec![]));
            request["tools"] = json!([{"type": "function", "name": "StructuredOutput"}]);
            let (_, calls) = assembled(dialect, &script.answer(&seen(&request, dialect)));
            assert_eq!(calls, [("StructuredOutput".to_owned(), expected)]);
        }
    }
}

#[test]
fn the_same_request_has_the_same_answer_and_another_agent_has_other_names() {
    let script = script(SPOKEN);
    for dialect in Dialect::ALL {
        let request = conversation(dialect, true);
        let first = text(&script.answer(&seen(&request, dialect)));
        assert_eq!(first, text(&script.answer(&seen(&request, dialect))));
        let other = request.to_string().replace("attempt=2", "attempt=3");
        let other = Sight::of(dialect, other.as_bytes()).unwrap();
        assert_ne!(first, text(&script.answer(&other)));
    }
}

#[test]
fn a_failure_is_worded_as_its_provider_would() {
    let script = script(
        "replies:\n  - fail: {status: 529, retry_after: 2s}\n    delay: 20ms\n    when: {turn: 1}\n",
    );
    for dialect in Dialect::ALL {
        let answer = script.answer(&seen(&conversation(dialect, true), dialect));
        assert_eq!((answer.status, answer.retry_after), (529, Some(Duration::from_secs(2))));
        assert_eq!(answer.delay, Duration::from_millis(20));
        assert!(text(&answer).contains("overloaded_error"));
    }
}

#[test]
fn every_problem_of_a_script_is_shown_at_once() {
    let text = "replies:
  - when: {rol: worker}
    say: x
  - when: {turn: first}
    say: x
  - call: [{input: {}}]
  - fail: {status: 200}
    say: x
  - say: x
    cut_after: 1
    hang_after: 2
    delay: soon
  - when: {turn: 9}
";
    assert_eq!(
        problems(text),
        [
            "`replies[0].when.rol` is not a known key @ rol",
            "`replies[1].when.turn` must be a whole number, got `first` @ first",
            "`replies[2].call[0]` names no tool @ {input: {}}",
            "`replies[3].fail` excludes `say`, `call`, `output` and `usage` @ {status: 200}",
            "`replies[3].fail.status` must be from 400 to 599, got 200 @ 200",
            "`replies[4].hang_after` excludes `cut_after` @ 2",
            "`replies[4].delay` is not a duration up to an hour, got `soon` @ soon",
            "`replies[5]` says nothing @ when: {turn: 9}",
        ]
    );
    assert_eq!(problems(""), ["the script has no replies @ "]);
    assert_eq!(problems("replies: []"), ["`replies` is empty @ []"]);
}

#[test]
fn a_reply_that_is_never_given_is_a_warning() {
    let text = "replies:\n  - {when: {role: worker}, say: a}\n  - {when: {role: worker, turn: 1}, say: b}\n";
    let (_, warnings) = Script::read(text.as_bytes()).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].to_string(), "`replies[1]` is never given");
}
