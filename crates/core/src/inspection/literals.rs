//! Texts that a program puts together from several pieces in quotes.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::Line;

/// The end of a text in quotes and the beginning of the next, with what joins
/// them in most languages. A comma does not: it stands between two values.
static JOINT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"["'`]\s*(?:(?:\+\+?|\.\.?|<>|~|&|\|\||\\)\s*)?[brfuBRFU]?["'`]"#;
    Regex::new(pattern).expect("the pattern stands here and is tested")
});

/// A text without its joints, if it has any.
pub(super) fn joined(text: &str) -> Option<String> {
    match JOINT.replace_all(text, "") {
        Cow::Owned(joined) => Some(joined),
        Cow::Borrowed(_) => None,
    }
}

/// Two lines as one, if the first goes on in the second.
pub(super) fn continued(line: &Line, next: &Line) -> Option<String> {
    const LONGEST: usize = 400;
    let short = line.text.len() <= LONGEST && next.text.len() <= LONGEST;
    let quoted = line.text.contains(QUOTES) && next.text.contains(QUOTES);
    if !(short && quoted && next.number == line.number.saturating_add(1)) {
        return None;
    }
    let (first, second) = (line.text.trim_end(), next.text.trim_start());
    let both = format!("{first}\n{second}");
    let mut joints = JOINT.find_iter(&both);
    joints.any(|joint| joint.range().contains(&first.len())).then(|| joined(&both))?
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
            ("[\"x\", \"y\"]", None),
            ("a + b", None),
        ] {
            assert_eq!(joined(text).as_deref(), expected, "{text}");
        }
    }
}
