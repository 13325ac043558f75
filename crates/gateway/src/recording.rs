//! Model traffic kept for replay: one exchange a line.
//!
//! Logins are never part of it. Should a key or token turn up in the text
//! itself, it is blotted out.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hyper::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::request::Asked;
use crate::script;

/// The longest answer that is kept; of a longer one the start is.
const LONGEST: usize = 32 << 20;

/// The headers of an answer that mean something to agents.
const KEPT: [&str; 6] = [
    "content-type",
    "retry-after",
    "request-id",
    "anthropic-ratelimit-unified-status",
    "anthropic-ratelimit-unified-reset",
    "x-should-retry",
];

/// A request and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) conversation: String,
    pub(crate) dialect: String,
    pub(crate) model: String,
    pub(crate) request: Value,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) answer: String,
    /// Whether the answer reached its end.
    pub(crate) complete: bool,
}

/// A file to which exchanges are added.
#[derive(Debug)]
pub struct Recording {
    file: Mutex<File>,
}

impl Recording {
    /// Adds to the file, which only its owner may read.
    pub fn open(path: &Path) -> std::io::Result<Recording> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Recording { file: Mutex::new(file) })
    }

    fn add(&self, exchange: &Exchange, scrub: impl Fn(&str) -> String) -> std::io::Result<()> {
        let mut line = scrub(&serde_json::to_string(exchange)?);
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write: a crash tears the last line at most.
        file.write_all(line.as_bytes())
    }
}

/// The name of a conversation: the same for requests that say the same.
pub(crate) fn conversation(dialect: Dialect, body: &[u8]) -> String {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    script::conversation(dialect, &request).to_hex().to_string()
}

/// An exchange while its answer comes in.
#[derive(Debug)]
pub(crate) struct Open {
    asked: Asked,
    dialect: Dialect,
    status: u16,
    headers: Vec<(String, String)>,
    answer: Vec<u8>,
    too_long: bool,
}

impl Open {
    pub(crate) fn new(dialect: Dialect, asked: Asked, status: u16, headers: &HeaderMap) -> Self {
        let kept = |name: &&str| {
            let value = headers.get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), value.to_owned()))
        };
        let headers = KEPT.iter().filter_map(kept).collect();
        Open { asked, dialect, status, headers, answer: Vec::new(), too_long: false }
    }

    pub(crate) fn take(&mut self, chunk: &[u8]) {
        let room = LONGEST - self.answer.len();
        self.too_long |= chunk.len() > room;
        self.answer.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }

    pub(crate) fn close(
        self,
        recording: &Recording,
        complete: bool,
        scrub: impl Fn(&str) -> String,
    ) -> std::io::Result<()> {
        let exchange = Exchange {
            conversation: conversation(self.dialect, &self.asked.body),
            dialect: self.dialect.to_string(),
            model: self.asked.model,
            request: serde_json::from_slice(&self.asked.body).unwrap_or_default(),
            status: self.status,
            headers: self.headers,
            answer: String::from_utf8_lossy(&self.answer).into_owned(),
            complete: complete && !self.too_long,
        };
        recording.add(&exchange, scrub)
    }
}
