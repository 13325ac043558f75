//! Keys in base 64, as other files carry them along.

use std::sync::LazyLock;

use regex::Regex;

static RUN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[A-Za-z0-9+/_-]{24,}").expect("the pattern stands here and is tested")
});

/// How much of a text has to be readable before the rest is looked at.
const FIRST: usize = 12;

/// The texts that are encoded in a line, each with how it stands there.
pub(super) fn texts(line: &str) -> impl Iterator<Item = (&str, String)> {
    RUN.find_iter(line).filter_map(|run| {
        let run = run.as_str();
        // A piece of a long line may begin anywhere.
        (0..4).find_map(|skipped| Some((run, decoded(&run.as_bytes()[skipped..])?)))
    })
}

/// What base 64 stands for, as far as it is text.
fn decoded(run: &[u8]) -> Option<String> {
    let mut text = String::new();
    for four in run.chunks(4) {
        let missing = 4 - four.len();
        let bits = four.iter().try_fold(0_u32, |bits, c| Some((bits << 6) | value(*c)?))?;
        let [_, three @ ..] = (bits << (6 * missing)).to_be_bytes();
        let three = &three[..3_usize.saturating_sub(missing)];
        let readable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        if !three.iter().all(readable) {
            break;
        }
        text.extend(three.iter().copied().map(char::from));
    }
    (text.len() >= FIRST).then_some(text)
}

fn value(c: u8) -> Option<u32> {
    Some(u32::from(match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_chance_is_not() {
        let of = |line: &'static str| texts(line).map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(of("a: aGVsbG8sIHdvcmxkOiBoZWxsbw=="), ["hello, world: hello"]);
        assert_eq!(of("a: xaGVsbG8sIHdvcmxkOiBoZWxsbw=="), ["hello, world: hello"]);
        assert_eq!(
            of("a: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
            [""; 0]
        );
    }
}
