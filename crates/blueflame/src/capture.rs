//! The output of a command: its beginning and its end, whatever came between.

use std::collections::VecDeque;

/// Keeps the first and the last bytes of a stream of any length.
#[derive(Debug)]
pub(crate) struct Capture {
    /// How many bytes are kept of the beginning, and of the end.
    most: (usize, usize),
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Capture {
    /// For this many bytes of the beginning and this many of the end.
    pub(crate) fn of(head: usize, tail: usize) -> Self {
        Capture { most: (head, tail), head: Vec::new(), tail: VecDeque::new(), left_out: 0 }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let (most_head, most_tail) = self.most;
        let room = most_head - self.head.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(first);
        // Only the end of a large piece can survive.
        let kept = &rest[rest.len().saturating_sub(most_tail)..];
        self.left_out += (rest.len() - kept.len()) as u64;
        let over = (self.tail.len() + kept.len()).saturating_sub(most_tail);
        self.tail.drain(..over);
        self.left_out += over as u64;
        self.tail.extend(kept);
    }

    /// The text, with a line that tells how much is missing.
    pub(crate) fn into_text(self) -> String {
        let tail: Vec<u8> = self.tail.into();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[self.head, tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        // A character that was cut in two is no use.
        let (head, tail) = (head.trim_end_matches('\u{fffd}'), tail.trim_start_matches('\u{fffd}'));
        format!("{head}\n… ({} bytes left out) …\n{tail}", self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = 15_000;

    #[test]
    fn beginning_and_end_are_kept_however_the_pieces_are_cut() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
        for size in [1, 7, 4_096, 14_999, 15_001, 40_000, 100_000] {
            let mut capture = Capture::of(HALF, HALF);
            for piece in text.chunks(size) {
                capture.take(piece);
                assert!(capture.head.len() + capture.tail.len() <= 2 * HALF);
            }
            let shown = capture.into_text();
            let (head, tail) = shown.split_once("\n… (70000 bytes left out) …\n").unwrap();
            assert_eq!(head.as_bytes(), &text[..HALF], "{size}");
            assert_eq!(tail.as_bytes(), &text[85_000..], "{size}");
        }
    }

    #[test]
    fn short_output_is_kept_whole_also_where_characters_meet() {
        let text = "é".repeat(14_999);
        let mut capture = Capture::of(HALF, HALF);
        for piece in text.as_bytes().chunks(3) {
            capture.take(piece);
        }
        assert_eq!(capture.into_text(), text);
        let mut capture = Capture::of(HALF, HALF);
        capture.take("é".repeat(20_000).as_bytes());
        assert!(!capture.into_text().contains('\u{fffd}'));
    }
}
