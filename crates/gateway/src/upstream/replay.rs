//! Recorded traffic as an upstream.
//!
//! A request is answered with what was answered to the same conversation when
//! it was recorded; the same conversation asked again gets the next answer
//! that was recorded for it. System prompts, tool lists and user ids may
//! differ. What was never asked is an error that no agent tries again.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};

use super::Body;
use super::scripted::{self, Pieces, Then};
use crate::recording::{Exchange, conversation};
use crate::request::{Asked, Endpoint};

/// What was recorded, by conversation.
#[derive(Debug)]
pub struct Replay {
    answers: Mutex<BTreeMap<String, VecDeque<Exchange>>>,
}

/// A recording that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadRecording {
    #[error("the recording `{}` cannot be read", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("line {line} of the recording `{}` is damaged", path.display())]
    Line { path: PathBuf, line: usize, source: serde_json::Error },
}

impl Replay {
    /// Reads recordings, the earliest first. A torn last line is what a crash
    /// leaves behind, and is left out.
    pub fn read(paths: &[&Path]) -> Result<Replay, BadRecording> {
        let mut answers: BTreeMap<String, VecDeque<Exchange>> = BTreeMap::new();
        for path in paths {
            let failed = |source| BadRecording::Read { path: path.to_path_buf(), source };
            let mut lines = BufReader::new(File::open(path).map_err(failed)?);
            let mut line = Vec::new();
            for number in 1.. {
                line.clear();
                if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                    break;
                }
                match serde_json::from_slice::<Exchange>(&line) {
                    Ok(exchange) => answers
                        .entry(exchange.conversation.clone())
                        .or_default()
                        .push_back(exchange),
                    Err(_) if !line.ends_with(b"\n") => break,
                    Err(source) => {
                        let path = path.to_path_buf();
                        return Err(BadRecording::Line { path, line: number, source });
                    }
                }
            }
        }
        Ok(Replay { answers: Mutex::new(answers) })
    }

    pub(super) fn ask(&self, asked: &Asked) -> Response<Body> {
        let Endpoint::Model(dialect) = asked.endpoint else { return scripted::free(asked) };
        let key = conversation(dialect, &asked.body);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(exchange) => replayed(exchange),
            None => scripted::error(
                dialect,
                400,
                &format!(
                    "the recording has no answer (left) for this conversation: {key}, model {}",
                    asked.model
                ),
            ),
        }
    }
}

fn replayed(exchange: Exchange) -> Response<Body> {
    // One event at a time, as it was sent.
    let pieces = exchange.answer.split_inclusive("\n\n");
    let pieces = pieces.map(|piece| Bytes::copy_from_slice(piece.as_bytes())).collect();
    let then = if exchange.complete { Then::End } else { Then::Break };
    let mut response = scripted::response(exchange.status, false, Pieces::ending(pieces, then));
    for (name, value) in exchange.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
