//! What of a text of others gets into a prompt: all that can be seen, up to a
//! limit, and a line that says how much was left out.

use std::borrow::Cow;

use blueflame_core::visible::is_hidden;

/// A text without anything that a reader would not see: control characters
/// other than line breaks and tabs, changes of the reading direction and
/// invisible characters are written as escapes.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// A text cut in the middle to about `limit` bytes: three quarters of what is
/// kept come from its start, the rest from its end.
pub(super) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let head = whole_lines_before(&text[..floor(text, limit / 4 * 3)]);
    let tail_start = ceil(text, text.len() - limit / 4);
    let tail = whole_lines_after(&text[tail_start..]);
    let left_out = text.len() - head.len() - tail.len();
    let newline = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
    Cow::Owned(format!("{head}{newline}[{left_out} bytes left out here]\n{tail}"))
}

/// A start without its last, broken line, unless that is most of it.
fn whole_lines_before(start: &str) -> &str {
    match start.rfind('\n') {
        Some(at) if at >= start.len() / 2 => &start[..=at],
        _ => start,
    }
}

/// An end without its first, broken line, unless that is most of it.
fn whole_lines_after(end: &str) -> &str {
    match end.find('\n') {
        Some(at) if at < end.len() / 2 => &end[at + 1..],
        _ => end,
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\x1b[2Jb\0\r\n", "a\\u{1b}[2Jb\\u{0}\\r\n"),
            ("left\u{202e}right", "left\\u{202e}right"),
            ("\u{feff}x\u{200b}y\u{2028}z", "\\u{feff}x\\u{200b}y\\u{2028}z"),
            ("\u{e0041}\u{e0101}", "\\u{e0041}\\u{e0101}"),
            ("क्\u{200d}ष 👩\u{200d}🚀 é", "क्\u{200d}ष 👩\u{200d}🚀 é"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn a_long_text_keeps_its_start_and_its_end() {
        use std::fmt::Write;
        let mut text = String::new();
        for line in 0..1000 {
            writeln!(text, "line {line}").unwrap();
        }
        assert_eq!(
            cut(&text, 80),
            "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\n\
             [8816 bytes left out here]\nline 998\nline 999\n"
        );
        assert_eq!(cut(&text, text.len()), text);
        assert_eq!(cut(&"é".repeat(100), 8), "ééé\n[192 bytes left out here]\né");
    }

    proptest! {
        #[test]
        fn a_cut_says_exactly_how_much_is_missing(text in any::<String>(), limit in 0_usize..60) {
            let kept = cut(&text, limit);
            if text.len() <= limit {
                prop_assert_eq!(kept, text.as_str());
            } else {
                let whole = kept.len();
                let note = kept.rfind(" bytes left out here]\n").unwrap();
                let start = kept[..note].rfind('[').unwrap();
                let left_out: usize = kept[start + 1..note].parse().unwrap();
                let tail = whole - note - " bytes left out here]\n".len();
                let head = kept[..start].len();
                prop_assert!(head + tail <= limit + 1);
                let added = head + tail + left_out - text.len();
                prop_assert!(added <= 1, "at most a line break is added");
            }
        }
    }
}
