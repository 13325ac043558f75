//! Recorded traffic as an upstream.
//!
//! A request is answered with what was answered to the same conversation when
//! it was recorded; the same conversation asked again gets the next answer
//! that was recorded for it. System prompts, tool lists and user ids may
//! differ.
//!
//! In another session prompts are never quite the same: fences are drawn anew,
//! directories and commits have other names. A conversation that was not
//! recorded is therefore known by its place: the same role, task, attempt and
//! turn. What was asked in neither way is an error that no agent tries again.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};

use super::Body;
use super::scripted::{self, Pieces, Then};
use crate::dialect::Dialect;
use crate::recording::Exchange;
use crate::request::{Asked, Endpoint};
use crate::script::Sight;

/// What was recorded and has not been used yet, in the order of the recording.
#[derive(Debug)]
pub struct Replay {
    answers: Mutex<Vec<Recorded>>,
}

#[derive(Debug)]
struct Recorded {
    conversation: String,
    place: Option<Place>,
    exchange: Exchange,
}

/// Where in a session a request belongs.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    dialect: Dialect,
    role: String,
    task: Option<String>,
    attempt: Option<u32>,
    turn: u32,
}

impl Place {
    /// `None` for requests that do not show whose they are.
    fn of(sight: Sight) -> Option<Place> {
        let Sight { dialect, role, task, attempt, turn, .. } = sight;
        Some(Place { dialect, role: role?, task, attempt, turn })
    }
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
        let mut answers = Vec::new();
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
                    Ok(exchange) => answers.push(Recorded::from(exchange)),
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
        let sight = match Sight::of(dialect, &asked.body) {
            Ok(sight) => sight,
            Err(error) => return scripted::error(dialect, 400, &error.to_string()),
        };
        let shown = format!("the recording has no answer (left) for this request: {sight}");
        let conversation = sight.conversation.to_hex().to_string();
        let place = Place::of(sight);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let same = answers.iter().position(|it| it.conversation == conversation);
        let there = || answers.iter().position(|it| place.is_some() && it.place == place);
        match same.or_else(there) {
            Some(found) => replayed(answers.remove(found).exchange),
            None => scripted::error(dialect, 400, &shown),
        }
    }
}

impl From<Exchange> for Recorded {
    fn from(mut exchange: Exchange) -> Recorded {
        // Only looked at here: together, the requests of one conversation are far
        // longer than all its answers.
        let request = std::mem::take(&mut exchange.request);
        let dialect = Dialect::ALL.into_iter().find(|it| it.to_string() == exchange.dialect);
        let sight = dialect.and_then(|it| Sight::of(it, request.to_string().as_bytes()).ok());
        let conversation = std::mem::take(&mut exchange.conversation);
        Recorded { conversation, place: sight.and_then(Place::of), exchange }
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
