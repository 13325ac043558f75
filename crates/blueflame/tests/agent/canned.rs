//! A server that gives prepared answers, one for each connection, whatever it
//! is asked: for what no script can say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::stage::Agent;

pub struct Canned {
    address: String,
    dir: tempfile::TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    pub fn new(answers: Vec<String>) -> Canned {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let request = read_request(&mut stream);
                seen.lock().unwrap().push(request);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Canned { address, dir: tempfile::tempdir().unwrap(), requests }
    }

    pub fn agent(&self, arguments: &[&str]) -> Agent {
        let environment =
            [("ANTHROPIC_BASE_URL", self.address.as_str()), ("ANTHROPIC_AUTH_TOKEN", "secret")];
        let mut agent = Agent::start(self.dir.path(), self.dir.path(), &environment, arguments);
        agent.initialize(60.0);
        agent
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &mut impl Read) -> String {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    let mut length = 0;
    loop {
        let start = request.len();
        assert_ne!(stream.read_line(&mut request).unwrap(), 0, "broke off: {request}");
        let line = request[start..].trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    request + &String::from_utf8(body).unwrap()
}

pub fn error(status: u16, headers: &str, message: &str) -> String {
    let body = format!(r#"{{"type":"error","error":{{"type":"x","message":"{message}"}}}}"#);
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

/// An answer as a stream, ended by the end of the connection.
pub fn stream(events: &[&str]) -> String {
    let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{}", events.concat())
}

pub const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","model":"m1","usage":{"input_tokens":10,"output_tokens":1}}}"#;
pub const STOP: &str = r#"{"type":"message_stop"}"#;

pub fn begin(block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#)
}

pub fn delta(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

pub const END: &str = r#"{"type":"content_block_stop","index":0}"#;

pub fn reason(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":5}}}}"#
    )
}

/// A whole answer of one text.
pub fn says(text: &str, stop_reason: &str) -> String {
    let text = delta(&format!(r#"{{"type":"text_delta","text":"{text}"}}"#));
    let begin = begin(r#"{"type":"text","text":""}"#);
    stream(&[START, &begin, &text, END, &reason(stop_reason), STOP])
}

/// A whole answer of one tool call, whose input is written as given.
pub fn calls(tool: &str, input: &str, stop_reason: &str) -> String {
    let block = format!(r#"{{"type":"tool_use","id":"t1","name":"{tool}","input":{{}}}}"#);
    let json = serde_json::Value::String(input.to_owned());
    let piece = delta(&format!(r#"{{"type":"input_json_delta","partial_json":{json}}}"#));
    stream(&[START, &begin(&block), &piece, END, &reason(stop_reason), STOP])
}
