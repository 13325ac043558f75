//! Texts in base 64 or in hexadecimal, as other files carry them along.

use std::sync::LazyLock;

use regex::Regex;

static RUN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[A-Za-z0-9+/_-]{24,}").expect("the pattern stands here and is tested")
});

/// How much of a text has to be readable before the rest is looked at.
const FIRST: usize = 12;

/// The texts that are encoded in a line, each with how it stands there.
pub(super) fn texts(line: &str) -> impl Iterator<Item = (&str, String)> {
    RUN.find_iter(line).flat_map(|run| {
        let run = run.as_str();
        let once = text_of(run);
        // Whoever hides something may do it twice.
        let again = once.as_deref().and_then(|once| text_of(RUN.find(once)?.as_str()));
        once.into_iter().chain(again).map(move |text| (run, text))
    })
}

fn text_of(run: &str) -> Option<String> {
    let hex = run.trim_matches(|c: char| !c.is_ascii_hexdigit()).as_bytes();
    // A piece of a long line may begin anywhere.
    (0..4)
        .find_map(|skipped| decoded(run.as_bytes().get(skipped..)?))
        .or_else(|| (0..2).find_map(|skipped| of_hex(hex.get(skipped..)?)))
}

/// What hexadecimal stands for, as far as it is text.
fn of_hex(run: &[u8]) -> Option<String> {
    let digit = |c: u8| char::from(c).to_digit(16);
    let mut text = String::new();
    for two in run.chunks_exact(2) {
        let byte = digit(two[0])
            .zip(digit(two[1]))
            .and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
            .filter(is_readable);
        let Some(byte) = byte else { break };
        text.push(char::from(byte));
    }
    (text.len() >= FIRST).then_some(text)
}

fn is_readable(byte: &u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// What base 64 stands for, as far as it is text.
pub(super) fn decoded(run: &[u8]) -> Option<String> {
    let mut text = String::new();
    for four in run.chunks(4) {
        let missing = 4 - four.len();
        let bits = four.iter().try_fold(0_u32, |bits, c| Some((bits << 6) | value(*c)?))?;
        let [_, three @ ..] = (bits << (6 * missing)).to_be_bytes();
        let three = &three[..3_usize.saturating_sub(missing)];
        if !three.iter().all(is_readable) {
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
        assert_eq!(of("a = \"68656c6c6f2c20776f726c643a2068656c6c6f\""), ["hello, world: hello"]);
        assert_eq!(
            of("a: YUdWc2JHOHNJSGR2Y214a09pQm9aV3hzYnc9PQ=="),
            ["aGVsbG8sIHdvcmxkOiBoZWxsbw==", "hello, world: hello"]
        );
        assert_eq!(
            of("a: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
            [""; 0]
        );
    }
}
