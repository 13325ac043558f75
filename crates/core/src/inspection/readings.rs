//! How else a line can be read: as what a program makes of it, or as what a
//! person sees.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::literals;

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns stand here and are tested")
}

/// A sign that is written by its number, or the end of a line.
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\\x([0-9A-Fa-f]{2})|\\u00([0-9A-Fa-f]{2})|\\u\{0*([0-9A-Fa-f]{2})\}|%([0-9A-Fa-f]{2})|&#x([0-9A-Fa-f]{2});|&#(\d{2,3});|\\([01]\d{2})|\\([nrt])",
    )
});

/// A list of numbers or of single signs.
static LIST: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?:(?:0x[0-9A-Fa-f]{2}|\d{2,3}|'[^'\\]'|"[^"\\]")\s*,\s*){15,}(?:0x[0-9A-Fa-f]{2}|\d{2,3}|'[^'\\]'|"[^"\\]")"#,
    )
});

/// Fewer members than a key has signs.
const FEW: usize = 15;

/// The other readings of a line.
pub(super) fn others(line: &str) -> Vec<String> {
    let mut readings: Vec<String> = literals::joined(line).into_iter().collect();
    readings.extend(unescaped(line));
    readings.extend(visible(line));
    readings.extend(listed(line));
    readings
}

/// What stands for a sign is that sign, and every line is one.
fn unescaped(line: &str) -> Vec<String> {
    if !line.contains(['\\', '%', '&']) || !ESCAPE.is_match(line) {
        return Vec::new();
    }
    let sign = |found: &Captures<'_>| {
        let in_base = |at: usize, base| {
            let number = u32::from_str_radix(found.get(at)?.as_str(), base).ok()?;
            char::from_u32(number).filter(|c| *c == '\n' || !c.is_control())
        };
        let number = (1..=5).find_map(|at| in_base(at, 16)).or(in_base(6, 10)).or(in_base(7, 8));
        number.unwrap_or('\n').to_string()
    };
    ESCAPE.replace_all(line, sign).lines().map(str::to_owned).collect()
}

/// Signs that nobody sees are left out, and wide ones are as others.
fn visible(line: &str) -> Option<String> {
    const UNSEEN: [char; 8] = [
        '\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{180e}', '\u{feff}', '\u{34f}',
    ];
    let is_wide = |c: char| ('\u{ff01}'..='\u{ff5e}').contains(&c);
    if !line.contains(|c| is_wide(c) || UNSEEN.contains(&c)) {
        return None;
    }
    let narrow = |c: char| {
        let ascii = u32::from(c).wrapping_sub(0xfee0);
        if is_wide(c) { char::from_u32(ascii).unwrap_or(c) } else { c }
    };
    Some(line.chars().filter(|c| !UNSEEN.contains(c)).map(narrow).collect())
}

/// The texts that are written as lists of their signs.
fn listed(line: &str) -> Vec<String> {
    if line.matches(',').count() < FEW {
        return Vec::new();
    }
    let text =
        |list: &str| list.split(',').map(|member| sign(member.trim())).collect::<Option<String>>();
    LIST.find_iter(line).filter_map(|list| text(list.as_str())).collect()
}

fn sign(member: &str) -> Option<char> {
    if let Some(rest) = member.strip_prefix(['\'', '"']) {
        return rest.chars().next();
    }
    let number = match member.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).ok()?,
        None => member.parse().ok()?,
    };
    (number.is_ascii_graphic() || number == b' ').then(|| char::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_programs_and_people_do() {
        for (line, expected) in [
            (r"a\x41\u0042\u{43}\104%45&#70;&#x47;", &["aABCDEFG"][..]),
            (r"a\nb\tc", &["a", "b", "c"]),
            ("a\u{200b}b\u{ad}\u{ff23}", &["abC"]),
            ("'a' + 'b'", &["'ab'"]),
            (
                "[97,98,99,100,101,102,103,104, 105,106,107,108,109,110,111,112]",
                &["abcdefghijklmnop"],
            ),
            (
                "[0x61,0x62,'c',\"d\",101,102,103,104,105,106,107,108,109,110,111,112]",
                &["abcdefghijklmnop"],
            ),
            ("[1000, 2000, 3000]", &[]),
            ("ordinary", &[]),
        ] {
            assert_eq!(others(line), expected, "{line}");
        }
    }
}
