//! From bytes to text: size, encoding, and where characters stand.

use super::problem::{Problem, Span};

/// How much of a file is read before it is refused.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    pub depth: usize,
    pub nodes: usize,
}

impl Limits {
    /// A configuration is written by hand: a mebibyte is plenty.
    pub const CONFIG: Limits = Limits { bytes: 1 << 20, depth: 64, nodes: 200_000 };
    /// A plan may have ten thousand tasks with long descriptions.
    pub const PLAN: Limits = Limits { bytes: 16 << 20, depth: 64, nodes: 1_000_000 };
}

/// The text of a file, byte order mark included, so that spans count from the
/// first byte of the file.
pub(super) fn decode(bytes: &[u8], limits: Limits) -> Result<&str, Box<Problem>> {
    if bytes.len() > limits.bytes {
        return Err(Box::new(Problem::error(
            "",
            format!("the file is too large: at most {} bytes are read", limits.bytes),
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|bad| {
        let at = bad.valid_up_to();
        let before = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        // The person sees the text with U+FFFD, three bytes, in this place.
        Box::new(
            Problem::error("", format!("the file is not UTF-8 text: line {line}, column {column}"))
                .at(Span::new(at, at + 3), "this byte is not text")
                .hint("save the file in UTF-8 encoding"),
        )
    })?;
    match text.char_indices().find(|(_, c)| !printable(*c)) {
        None => Ok(text),
        Some((at, c)) => Err(Box::new(
            Problem::error(
                "",
                format!("there is an unprintable character: {}", c.escape_unicode()),
            )
            .at(Span::new(at, at + c.len_utf8()), "here")
            .hint("remove it, or write it as an escape in double quotes"),
        )),
    }
}

/// What YAML lets stand in a file; the parser itself is more generous.
fn printable(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => !c.is_control(),
    }
}

/// Translates positions counted in characters, as the parser counts, into
/// positions in bytes.
#[derive(Debug)]
pub(super) struct Offsets<'t> {
    text: &'t str,
    /// The byte at which every `STEP`th character starts; empty for ASCII.
    marks: Vec<usize>,
}

const STEP: usize = 64;

impl<'t> Offsets<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let marks = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().step_by(STEP).map(|(byte, _)| byte).collect()
        };
        Offsets { text, marks }
    }

    pub(super) fn byte(&self, character: usize) -> usize {
        if self.marks.is_empty() {
            return character.min(self.text.len());
        }
        let Some(&mark) = self.marks.get(character / STEP) else { return self.text.len() };
        self.text[mark..]
            .char_indices()
            .nth(character % STEP)
            .map_or(self.text.len(), |(byte, _)| mark + byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_found_behind_wide_ones() {
        let text = "é😀a".repeat(100);
        let offsets = Offsets::of(&text);
        for (character, (byte, _)) in text.char_indices().enumerate() {
            assert_eq!(offsets.byte(character), byte);
        }
        assert_eq!(offsets.byte(1_000_000), text.len());
        assert_eq!(Offsets::of("abc").byte(9), 3);
    }

    #[test]
    fn a_byte_that_is_no_text_is_shown_with_its_place() {
        let problem = decode(b"a: \xc3\xa9\nb: x\xff\n", Limits::CONFIG).unwrap_err();
        assert_eq!(problem.message, "the file is not UTF-8 text: line 2, column 5");
        assert_eq!(problem.span, Some(Span::new(10, 13)));
    }

    #[test]
    fn characters_that_nobody_sees_are_refused() {
        for text in ["a: \u{1}", "a: \u{7f}", "a: \0", "a: \u{ffff}"] {
            let problem = decode(text.as_bytes(), Limits::CONFIG).unwrap_err();
            assert_eq!(problem.span.unwrap().start, 3, "{text:?}");
        }
        assert!(decode("\u{feff}a:\tb\r\n\u{85}é".as_bytes(), Limits::CONFIG).is_ok());
    }

    #[test]
    fn a_huge_file_is_refused_before_it_is_read() {
        let bytes = vec![b'#'; Limits::CONFIG.bytes + 1];
        let problem = decode(&bytes, Limits::CONFIG).unwrap_err();
        assert!(problem.message.contains("at most 1048576 bytes"), "{problem}");
    }
}
