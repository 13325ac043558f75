//! How many tokens a request has used, counted while the answer passes by.
//!
//! A provider's own figures are taken when they come. Until then, and for
//! good if the stream is cut before they do, the count is an estimate from the
//! text that went by, on the high side: a budget must not be passed because
//! an answer broke off.

mod figures;

use blueflame_core::money::Usage;

use crate::dialect::Dialect;
use crate::sse::{Events, LONGEST};
use figures::{Event, Reported};

/// Fewer bytes than most tokens have, so that estimates are not too low.
const BYTES_PER_TOKEN: u64 = 3;

/// The tokens that a text of this many bytes has at most, as a rule.
pub fn estimate(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Meters one request and its answer.
#[derive(Debug)]
pub struct Meter {
    dialect: Dialect,
    request_bytes: u64,
    text_bytes: u64,
    reported: Reported,
    answer: Answer,
}

/// What the answer looks like; known when its head has come.
#[derive(Debug)]
enum Answer {
    None,
    Stream(Events),
    /// One JSON document. Kept, up to a limit, because the figures stand
    /// somewhere in it.
    Whole {
        body: Vec<u8>,
        too_long: bool,
    },
}

impl Meter {
    pub fn new(dialect: Dialect, request_bytes: usize) -> Self {
        Meter {
            dialect,
            request_bytes: request_bytes as u64,
            text_bytes: 0,
            reported: Reported::default(),
            answer: Answer::None,
        }
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The answer begins, as a stream of events.
    pub fn begin_stream(&mut self) {
        self.answer = Answer::Stream(Events::default());
    }

    /// The answer begins, in one piece.
    pub fn begin_whole(&mut self) {
        self.answer = Answer::Whole { body: Vec::new(), too_long: false };
    }

    /// A piece of the answer.
    pub fn take(&mut self, chunk: &[u8]) {
        let (dialect, reported) = (self.dialect, &mut self.reported);
        match &mut self.answer {
            Answer::None => {}
            Answer::Stream(events) => {
                let before = events.dropped_bytes();
                let mut text = 0;
                events.feed(chunk, |data| match serde_json::from_slice::<Event>(data) {
                    Ok(event) => {
                        text += event.text();
                        reported.take_event(dialect, event);
                    }
                    Err(_) if data == b"[DONE]" => reported.ended = true,
                    Err(_) => text += data.len() as u64,
                });
                self.text_bytes += text + events.dropped_bytes() - before;
            }
            Answer::Whole { body, too_long } => {
                self.text_bytes += chunk.len() as u64;
                *too_long |= body.len() + chunk.len() > LONGEST;
                if *too_long {
                    *body = Vec::new();
                } else {
                    body.extend_from_slice(chunk);
                }
            }
        }
    }

    /// The other side says that the answer is over.
    pub fn end(&mut self) {
        if let Answer::Whole { body, .. } = &mut self.answer {
            if let Ok(answer) = serde_json::from_slice::<Event>(body) {
                self.reported.take_whole(self.dialect, answer);
            }
            self.reported.ended = true;
            *body = Vec::new();
        }
    }

    /// Whether the answer reached the end that its dialect prescribes; a
    /// stream can also just stop.
    pub fn is_complete(&self) -> bool {
        self.reported.ended
    }

    /// The count as it stands, with estimates where figures are missing.
    pub fn usage(&self) -> Usage {
        let reported = &self.reported;
        let output = match (reported.output, reported.settled) {
            (Some(output), true) => output,
            // Some providers say 1 at the start and the truth at the end.
            (output, _) => estimate(self.text_bytes).max(output.unwrap_or(0)),
        };
        let input = reported.input.unwrap_or_else(|| estimate(self.request_bytes));
        Usage { input, output, cache_read: reported.cache_read, cache_write: reported.cache_write }
    }

    /// Only what the provider has said so far: a running figure that no later
    /// one takes back.
    pub fn reported(&self) -> Usage {
        Usage {
            input: self.reported.input.unwrap_or(0),
            output: self.reported.output.unwrap_or(0),
            cache_read: self.reported.cache_read,
            cache_write: self.reported.cache_write,
        }
    }

    /// Whether the figures are the provider's own and final.
    pub fn is_exact(&self) -> bool {
        self.reported.settled && self.reported.input.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn streamed(dialect: Dialect, events: &[Value]) -> Meter {
        let mut meter = Meter::new(dialect, 3_000);
        meter.begin_stream();
        for event in events {
            meter.take(format!("event: x\ndata: {event}\n\n").as_bytes());
        }
        meter.end();
        meter
    }

    #[test]
    fn messages_are_counted_from_their_start_and_their_last_delta() {
        let start = json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 12, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 30, "output_tokens": 1}}});
        let text = json!({"type": "content_block_delta", "delta":
            {"type": "text_delta", "text": "hello world"}});
        let end = json!({"type": "message_delta", "usage": {"output_tokens": 42}});
        let cut = streamed(Dialect::Messages, &[start.clone(), text.clone()]);
        assert!(!cut.is_exact() && !cut.is_complete());
        assert_eq!(cut.usage().input, 12);
        assert_eq!(cut.usage().output, 4, "a cut stream is estimated from its text alone");
        assert_eq!(cut.reported().output, 1);
        let stop = json!({"type": "message_stop"});
        let whole = streamed(Dialect::Messages, &[start, text, end, stop]);
        let expected = Usage { input: 12, output: 42, cache_read: 100, cache_write: 30 };
        assert_eq!((whole.usage(), whole.is_exact()), (expected, true));
        assert!(whole.is_complete());
    }

    #[test]
    fn cached_input_of_the_openai_dialects_is_not_counted_twice() {
        let responses = json!({"type": "response.completed", "response": {"usage": {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60},
            "output_tokens": 7}}});
        let chat = json!({"choices": [], "usage": {"prompt_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens": 7}});
        let expected = Usage { input: 40, output: 7, cache_read: 60, cache_write: 0 };
        assert_eq!(streamed(Dialect::Responses, &[responses]).usage(), expected);
        assert_eq!(streamed(Dialect::Chat, &[chat]).usage(), expected);
    }

    #[test]
    fn the_end_of_a_stream_is_known_in_every_dialect() {
        let mut chat = streamed(Dialect::Chat, &[json!({"choices": []})]);
        assert!(!chat.is_complete());
        chat.take(b"data: [DONE]\n\n");
        assert!(chat.is_complete());
        for kind in ["response.completed", "response.incomplete", "response.failed"] {
            assert!(streamed(Dialect::Responses, &[json!({"type": kind})]).is_complete());
        }
    }

    #[test]
    fn without_figures_the_text_is_counted() {
        for dialect in Dialect::ALL {
            let text = "x".repeat(300);
            let meter = streamed(
                dialect,
                &[
                    json!({"delta": text}),
                    json!({"delta": {"type": "text_delta", "text": text}}),
                    json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
                ],
            );
            assert!(!meter.is_exact());
            assert_eq!(meter.usage().input, 1_000);
            assert_eq!(meter.usage().output, 300);
            assert_eq!(meter.reported(), Usage::default());
        }
    }

    #[test]
    fn an_answer_in_one_piece_is_counted_in_every_dialect() {
        for (dialect, usage) in [
            (Dialect::Messages, json!({"input_tokens": 5, "output_tokens": 6})),
            (Dialect::Responses, json!({"input_tokens": 5, "output_tokens": 6})),
            (Dialect::Chat, json!({"prompt_tokens": 5, "completion_tokens": 6})),
        ] {
            let mut meter = Meter::new(dialect, 10);
            meter.begin_whole();
            for byte in json!({"choices": ["text"], "usage": usage}).to_string().as_bytes() {
                meter.take(&[*byte]);
            }
            assert!(!meter.is_exact(), "{dialect}");
            meter.end();
            assert!(meter.is_exact() && meter.is_complete(), "{dialect}");
            assert_eq!((meter.usage().input, meter.usage().output), (5, 6), "{dialect}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_to_be_kept_is_counted_by_its_bytes() {
        let mut whole = Meter::new(Dialect::Chat, 0);
        whole.begin_whole();
        let mut stream = Meter::new(Dialect::Chat, 0);
        stream.begin_stream();
        let piece = vec![b'x'; 1 << 20];
        stream.take(b"data: ");
        for _ in 0..30 {
            whole.take(&piece);
            stream.take(&piece);
        }
        whole.end();
        assert_eq!(whole.usage().output, 10 << 20);
        assert!(stream.usage().output >= 10 << 20);
    }

    #[test]
    fn figures_that_make_no_sense_do_no_harm() {
        let odd = json!({"type": "response.completed", "response": {"usage": {
            "input_tokens": 5, "input_tokens_details": {"cached_tokens": 9},
            "output_tokens": -4}}});
        let meter = streamed(Dialect::Responses, &[odd]);
        assert_eq!((meter.usage().input, meter.usage().cache_read), (0, 5));
        assert!(!meter.is_exact());
        let huge = json!({"type": "message_delta", "usage": {"output_tokens": u64::MAX,
            "cache_read_input_tokens": null, "input_tokens": {"x": [1]}}});
        assert_eq!(streamed(Dialect::Messages, &[huge]).usage().total(), u64::MAX);
    }
}
