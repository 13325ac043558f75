//! Server-sent events, cut out of a stream of bytes as they pass.
//!
//! Only the `data:` of each event is of interest. Memory is bounded whatever
//! the other side sends: an event longer than the limit is dropped whole, and
//! its bytes are counted.

/// The longest data of one event that is looked at. A whole response of the
/// Responses dialect comes as one event, so this is generous.
pub const LONGEST: usize = 8 << 20;

/// Finds events in chunks that are cut anywhere.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    /// The rest of the line in hand is not kept.
    skipping: bool,
    /// The event in hand has lost a part and will not be shown.
    spoiled: bool,
    dropped_bytes: u64,
}

impl Events {
    /// Looks through one chunk and shows the data of each event that ends in
    /// it.
    pub fn feed(&mut self, chunk: &[u8], mut event: impl FnMut(&[u8])) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            self.end_line(&mut event);
        }
        self.keep(rest);
    }

    /// The bytes of events that were too long to be looked at.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.skipping || self.line.len() + self.data.len() + bytes.len() > LONGEST {
            self.skipping = true;
            self.spoiled = true;
            self.dropped_bytes += (self.line.len() + self.data.len() + bytes.len()) as u64;
            // Given back, not only emptied: many streams may be open.
            self.line = Vec::new();
            self.data = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, event: &mut impl FnMut(&[u8])) {
        if self.skipping {
            self.skipping = false;
            return;
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if line.is_empty() {
            if !self.spoiled && !self.data.is_empty() {
                event(&self.data);
            }
            self.spoiled = false;
            self.data.clear();
        } else if let Some(data) = line.strip_prefix(b"data:")
            && !self.spoiled
        {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(chunks: &[&[u8]]) -> Vec<String> {
        let mut found = Vec::new();
        let mut events = Events::default();
        for chunk in chunks {
            events.feed(chunk, |data| found.push(String::from_utf8_lossy(data).into_owned()));
        }
        found
    }

    #[test]
    fn events_are_found_across_chunks_and_line_ends() {
        let chunks: [&[u8]; 4] = [
            b"event: a\nda",
            b"ta: {\"x\":1}\r\n\r\n: note\n",
            b"data: one\ndata:two\n",
            b"\ndata: ",
        ];
        assert_eq!(events(&chunks), ["{\"x\":1}", "one\ntwo"]);
    }

    #[test]
    fn an_endless_line_takes_no_memory_and_the_next_event_is_found() {
        let mut events = Events::default();
        let mut found = 0;
        let flood = vec![b'x'; 1 << 20];
        events.feed(b"data: ", |_| found += 1);
        for _ in 0..32 {
            events.feed(&flood, |_| found += 1);
            assert!(events.line.len() + events.data.len() <= LONGEST);
        }
        events.feed(b"\n\ndata: next\n\n", |_| found += 1);
        assert_eq!(found, 1);
        assert!(events.dropped_bytes() >= 32 << 20);
    }

    #[test]
    fn of_an_event_that_is_too_long_no_later_line_is_shown() {
        let long = format!("data: {}\ndata: tail\n\ndata: next\n\n", "x".repeat(LONGEST));
        assert_eq!(events(&[long.as_bytes()]), ["next"]);
        let many = "data: 0123456789\n".repeat(LONGEST / 8) + "\ndata: next\n\n";
        assert_eq!(events(&[many.as_bytes()]), ["next"]);
    }

    proptest! {
        /// Where the network cuts the stream makes no difference.
        #[test]
        fn any_cut_gives_the_same_events(cuts in proptest::collection::vec(0usize..90, 0..6)) {
            let stream: &[u8] =
                b"event: x\ndata: {\"a\":\"\xc3\xa9\"}\n\ndata: 1\r\ndata: 2\r\n\r\n:\n\ndata: end\n\n";
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= stream.len()).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            prop_assert_eq!(events(&chunks), events(&[stream]));
        }
    }
}
