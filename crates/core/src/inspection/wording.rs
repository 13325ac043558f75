//! Whether somebody thought of a text, or a machine drew it.

use std::collections::BTreeMap;

/// The letters that follow each letter in most words of programs: four of five
/// pairs are among these, and one of five that are drawn.
const FOLLOWING: [&str; 26] = [
    "bcdgilmnprst",
    "aeil",
    "aehiklort",
    "aeis",
    "acdeflmnprstvx",
    "efio",
    "e",
    "aeio",
    "abcdefglmnorstvz",
    "",
    "e",
    "aeiloy",
    "aeiop",
    "acdegiost",
    "cdlmnoprstuw",
    "aeiloprt",
    "u",
    "aeimorstu",
    "acehiopstu",
    "aehiorstuy",
    "clmnrst",
    "aei",
    "",
    "",
    "",
    "e",
];

/// Bits for each character, as its text has them: about 4 for chance in
/// hexadecimal, and up to 6 in base 64.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts: BTreeMap<char, u32> = BTreeMap::new();
    for c in text.chars() {
        *counts.entry(c).or_default() += 1;
    }
    let all = f64::from(counts.values().sum::<u32>());
    let share = |count: &u32| f64::from(*count) / all;
    counts.values().map(|count| -share(count) * share(count).log2()).sum()
}

/// Whether a text is made of words, or has a long one in it: names are, and
/// chance is not.
pub(super) fn has_words(text: &str) -> bool {
    let (mut pairs, mut usual) = (0, 0);
    for run in runs(text) {
        let here = run.windows(2).filter(|pair| follows(pair[0], pair[1])).count();
        let of = run.len() - 1;
        if run.len() >= 7 && here * 4 >= of * 3 {
            return true;
        }
        pairs += of;
        usual += here;
    }
    pairs >= 5 && usual * 5 >= pairs * 3
}

/// The letters that stand together; a capital behind a small one begins anew.
fn runs(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().chunk_by(|a, b| {
        a.is_ascii_alphabetic()
            && b.is_ascii_alphabetic()
            && !(a.is_ascii_lowercase() && b.is_ascii_uppercase())
    })
}

fn follows(first: u8, second: u8) -> bool {
    let place = first.to_ascii_lowercase().wrapping_sub(b'a');
    let following = FOLLOWING.get(usize::from(place)).copied().unwrap_or_default();
    following.as_bytes().contains(&second.to_ascii_lowercase())
}

/// Whether a text looks as if nobody had thought of it: letters and digits by
/// turns, and no words.
pub(super) fn is_chance(text: &str) -> bool {
    let is = |class: fn(&char) -> bool| text.chars().filter(class).count();
    let (digits, lower, upper) =
        (is(char::is_ascii_digit), is(char::is_ascii_lowercase), is(char::is_ascii_uppercase));
    let length = text.chars().count();
    let hex = length >= 24 && text.chars().all(|c| c.is_ascii_hexdigit());
    let uuid = length == 36 && text.matches('-').count() == 4;
    // A machine that draws from both cases may draw few digits.
    let least_digits = if lower >= 3 && upper >= 3 { 1 } else { 2 };
    if uuid || digits < least_digits || lower + upper < 4 || !hex && has_words(text) {
        return false;
    }
    // Short ones have to look like passwords of a machine.
    let mixed = lower > 0 && upper > 0;
    entropy(text) >= if hex { 3.0 } else { 3.4 } && (hex || mixed || length >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_has_more_bits_than_text() {
        assert!(entropy("aaaaaaaa").abs() < 0.01);
        assert!((entropy("abcdefgh") - 3.0).abs() < 0.01);
        assert!(entropy("k8Fq2ZpL0vXw7RtB3nYs") > 4.0);
    }

    /// Draws a text; the same for the same seed.
    fn drawn(alphabet: &str, length: usize, seed: &mut u64) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut next = || {
            *seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            letters[usize::try_from(*seed >> 33).unwrap() % letters.len()]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_a_machine_drew_is_told_from_words() {
        let (lower, upper, digits) =
            ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789");
        let mut seed = 7;
        for (alphabet, length) in [
            (format!("{lower}{digits}"), 20),
            (format!("{lower}{digits}"), 32),
            (format!("{upper}234567"), 32),
            (format!("{lower}{upper}{digits}"), 32),
            (format!("{lower}{upper}{digits}+/"), 88),
            ("0123456789abcdef".to_owned(), 32),
        ] {
            let found =
                (0..500).filter(|_| is_chance(&drawn(&alphabet, length, &mut seed))).count();
            assert!(found >= 475, "{found} of 500 of {alphabet} with {length}");
        }
        for text in [
            "user.preferences.v2.accessKeyLabel",
            "my-app-tls-2024-internal",
            "Qwen2TokenizerFastV3a9",
            "com.acme.billing.v1.TokenService2",
            "request_token_for_the_2nd_of_3_users",
        ] {
            assert!(!is_chance(text), "{text}");
        }
    }
}
