//! Texts that a program puts together from several pieces in quotes.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::Line;

/// The end of a text in quotes and the beginning of the next, with what joins
/// them in most languages. A comma does not: it stands between two values.
///
/// A name is whatever has no blanks and quotes. To tell letters from all other
/// characters, forty times over, took more memory than the rest of a session.
static JOINT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"["'`]\s*(?:(?:\+\+?|\.\.?|<>|~|&|\|\||\\|;?\s*\n\s*[^ \t\r\n"'`]{1,40}\s*[+.]=)\s*)?[brfuBRFU]?["'`]"#;
    Regex::new(pattern).expect("the pattern stands here and is tested")
});

/// What makes one text of several. Rust's `concat!` is not meant: with it, tests
/// keep examples from being taken for leaks.
static JOINER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bjoin\s*\(|\bimplode\s*\(|\bconcat\s*\(|\bstrcat\s*\(")
        .expect("the pattern stands here and is tested")
});

/// Where two texts of a list meet.
static BETWEEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"["'`]\s*(?:,|\.concat\()\s*["'`]"#)
        .expect("the pattern stands here and is tested")
});

/// A text without its joints, if it has any.
pub(super) fn joined(text: &str) -> Option<String> {
    if !text.contains(QUOTES) {
        return None;
    }
    let joint = if JOINER.is_match(text) { &BETWEEN } else { &JOINT };
    match joint.replace_all(text, "") {
        Cow::Owned(joined) => Some(joined),
        Cow::Borrowed(_) => None,
    }
}

/// Whether a text in the first line goes on in the second.
pub(super) fn goes_on(line: &Line, next: &Line) -> bool {
    const LONGEST: usize = 400;
    let short = line.text.len() <= LONGEST && next.text.len() <= LONGEST;
    let quoted = line.text.contains(QUOTES) && next.text.contains(QUOTES);
    if !(short && quoted && next.number == line.number.saturating_add(1)) {
        return false;
    }
    let (first, second) = (line.text.trim_end(), next.text.trim_start());
    let both = format!("{first}\n{second}");
    JOINT.find_iter(&both).any(|joint| joint.range().contains(&first.len()))
}

/// Lines that go on in each other, as one.
pub(super) fn continued(lines: &[Line]) -> Option<String> {
    let whole: Vec<&str> = lines.iter().map(|line| line.text.trim()).collect();
    joined(&whole.join("\n"))
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        for (text, expected) in [
            ("a = \"x\" + \"y\"", Some("a = \"xy\"")),
            ("a = 'x' . 'y'", Some("a = 'xy'")),
            ("a = (\"x\"\n    \"y\")", Some("a = (\"xy\")")),
            ("a = \"x\" \\\n    b\"y\"", Some("a = \"xy\"")),
            ("a = \"x\"\na += \"y\"", Some("a = \"xy\"")),
            ("a[0] = \"x\"\na[0] += \"y\"", Some("a[0] = \"xy\"")),
            ("it->schlüssel = \"x\";\nit->schlüssel += \"y\"", Some("it->schlüssel = \"xy\"")),
            ("[\"x\", \"y\"].join('')", Some("[\"xy\"].join('')")),
            ("\"x\".concat(\"y\", \"z\")", Some("\"xyz\")")),
            ("[\"x\", \"y\"]", None),
            ("concat!(\"x\", \"y\")", None),
            ("a + b", None),
        ] {
            assert_eq!(joined(text).as_deref(), expected, "{text}");
        }
    }
}
