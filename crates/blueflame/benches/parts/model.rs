//! The scripted model at a port of its own. It holds each answer back until it is
//! told to give it, and knows when a request came and when its answer left.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use blueflame_gateway::dialect::Dialect;
use blueflame_gateway::script::{Script, Sight};

/// No agent takes this long to ask, on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Model {
    pub address: String,
    requests: Receiver<Request>,
    left: Arc<Mutex<Instant>>,
}

/// A request that waits for its answer.
pub struct Request {
    pub arrived: Instant,
    go: Sender<()>,
}

impl Request {
    pub fn answer(self) {
        self.go.send(()).unwrap();
    }
}

impl Model {
    pub fn open(script: &str) -> Model {
        let (script, _) = Script::read(script.as_bytes()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let left = Arc::new(Mutex::new(Instant::now()));
        let (tell, requests) = channel();
        let clock = Arc::clone(&left);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, tell, clock) = (script.clone(), tell.clone(), Arc::clone(&clock));
                thread::spawn(move || serve(stream.unwrap(), &script, &tell, &clock));
            }
        });
        Model { address, requests, left }
    }

    /// The next request, which waits until it is answered.
    pub fn next(&self) -> Request {
        self.requests.recv_timeout(PATIENCE).expect("an agent that asks its model")
    }

    /// How long it took from the last answer to this request.
    pub fn since_answer(&self, request: &Request) -> Duration {
        request.arrived.duration_since(*self.left.lock().unwrap())
    }

    /// Answers whoever asks, at once, for as long as the program runs.
    pub fn answers_at_once(self) -> String {
        thread::spawn(move || self.requests.into_iter().for_each(Request::answer));
        self.address
    }
}

/// One connection, until the other side leaves.
fn serve(stream: TcpStream, script: &Script, tell: &Sender<Request>, left: &Mutex<Instant>) {
    stream.set_nodelay(true).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let mut reading = BufReader::new(stream);
    while let Some((line, body)) = read(&mut reading) {
        let arrived = Instant::now();
        if !line.starts_with("POST /v1/messages") || line.contains("count_tokens") {
            let _ = writing.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
            continue;
        }
        let answer = script.answer(&Sight::of(Dialect::Messages, &body).unwrap());
        let text: Vec<u8> = answer.pieces.concat();
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&text));
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let (go, told) = channel();
        if tell.send(Request { arrived, go }).is_err() || told.recv().is_err() {
            return;
        }
        *left.lock().unwrap() = Instant::now();
        if writing.write_all(&[head.as_bytes(), &text].concat()).is_err() {
            return;
        }
    }
}

/// The first line and the body of a request; `None` when there is no more.
fn read(reading: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut first = String::new();
    reading.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reading.read_exact(&mut body).ok()?;
    Some((first, body))
}
