//! "Did you mean": the known word nearest to a mistyped one.

/// The candidate that was probably meant, if one is near enough.
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let folded = fold(word);
    candidates
        .into_iter()
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| {
            // A third of the letters may be wrong, and one of a short word.
            *distance <= (candidate.chars().count().min(word.chars().count()) / 3).max(1)
        })
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`.
pub fn one_of<'c>(words: impl IntoIterator<Item = &'c str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// Case and the kind of dash are not what people get wrong on purpose.
fn fold(word: &str) -> String {
    word.chars().take(80).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["max_retries", "max_wave_cycles", "agent_timeout", "model"];
        for (word, meant) in [
            ("max_retrys", Some("max_retries")),
            ("max-retries", Some("max_retries")),
            ("MaxRetries", Some("max_retries")),
            ("agent_timout", Some("agent_timeout")),
            ("mdoel", Some("model")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(closest(word, known), meant, "{word}");
        }
    }

    #[test]
    fn lists_read_as_people_say_them() {
        assert_eq!(one_of([]), "nothing");
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
