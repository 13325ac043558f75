//! Long lines in pieces, so that looking at one takes time by its length and
//! never more.

/// How much of a line is looked at in one go.
const WIDTH: usize = 16 << 10;

/// How much of a piece is in the next one as well: more than any key is long
/// that has to be seen as a whole.
const OVERLAP: usize = 1 << 10;

/// The pieces of a line; mostly there is one.
pub(super) fn windows(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let window = beginning(text);
        rest = (window.len() < text.len()).then(|| &text[boundary(text, window.len() - OVERLAP)..]);
        Some(window)
    })
}

/// The first piece of a line, which is all of it that a person would read.
pub(super) fn beginning(line: &str) -> &str {
    &line[..boundary(line, WIDTH)]
}

/// The place at or before this one where a character ends.
fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_overlap_and_leave_nothing_out() {
        for line in ["", "short", &"x".repeat(WIDTH), &"\u{20ac}".repeat(WIDTH)] {
            let mut end = 0;
            for window in windows(line) {
                let start = window.as_ptr() as usize - line.as_ptr() as usize;
                assert!(start <= end && window.len() <= WIDTH);
                end = start + window.len();
            }
            assert_eq!(end, line.len());
        }
        assert_eq!(windows(&"x".repeat(5 << 20)).count(), 342);
    }
}
