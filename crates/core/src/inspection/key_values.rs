//! Keys of no known shape, told by the name that they are given and by how much
//! they look like chance.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::key_shapes::{Certainty, Key};

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns stand here and are tested")
}

/// `api_key = "…"`, `"password": "…"`, `setToken('…')`: a name that says so, and
/// a text in quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i)(?P<name>[\w.-]{0,40}(?:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|signing[_-]?key|encryption[_-]?key|credential)[\w.-]{0,20})(?:\\?["'`\]]){0,2}\s*(?::[ \w&'<>]{1,20})?(?:=>|:=|==?|:|,|\()\s*(?:[A-Za-z_.]{0,20}\()?\\?["'`](?P<value>[^\s"'`\\<>{}$()]{12,200})\\?["'`]"#,
    )
});

/// `API_KEY=…` as files for the environment and for build servers have it.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^\s*(?:export\s+|ENV\s+|-\s+)?(?P<name>[A-Za-z0-9_.-]{0,40}(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|secret|token|password|passwd|api_?key|access_?key)[A-Za-z0-9_.-]{0,20})\s*(?:=|:\s)\s*(?P<value>[A-Za-z0-9+/=_.~!@%^*-]{12,200})\s*$",
    )
});

/// `scheme://user:password@host`.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,60}:(?P<value>[^\s/:@{}$<>\[\]\\]{3,100})@(?P<host>[A-Za-z0-9\[][A-Za-z0-9.:-]*)",
    )
});

/// Names of things that look like chance and open nothing.
static PUBLIC: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)public|pubkey|sha\d|hash|digest|checksum|integrity|fingerprint|thumbprint|nonce|salt|url|uri|path|file|name|header|prefix|suffix|type|kind|regex|pattern|alphabet|charset|token_?id$|tokeniz|cancellation|csrf|path|label|locale|selector|placeholder",
    )
});

/// Words of values that were made up.
static MADE_UP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)example|dummy|sample|fake|mock|test|placeholder|change_?me|your|insert|redacted|removed|hidden|todo|foo|bar|abcdef|qwert|asdf|letmein|hunter2|correct|horse|lorem|secret|passw|token|apikey|api[_-]key|none|null|undefined|0000|1111|1234|xxxx|\*\*\*|\.\.\.|^env[.:]|^vault:|^arn:|^op://|^https?:|^data:|^[a-z]+://",
    )
});

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

/// The key that a line gives a name to, if it looks like one.
pub(super) fn in_line(line: &str) -> Option<Key<'_>> {
    if let Some(found) = ADDRESS.captures(line) {
        return address(&found);
    }
    let found = QUOTED.captures(line).or_else(|| PLAIN.captures(line))?;
    let (name, text) = (found.name("name")?.as_str(), found.name("value")?.as_str());
    let made_up = MADE_UP.is_match(text) || PUBLIC.is_match(name);
    (!made_up && is_chance(text)).then_some(Key {
        name: "what looks like a password or key",
        certainty: Certainty::Sure,
        text,
    })
}

fn address<'t>(found: &Captures<'t>) -> Option<Key<'t>> {
    let (text, host) = (found.name("value")?.as_str(), found.name("host")?.as_str());
    let here = ["localhost", "127.", "[::1", "0.0.0.0", "example.", "host", "db.example", "test"]
        .iter()
        .any(|beginning| host.starts_with(beginning))
        || [".local", ".test", ".example", "example.com", "example.org"]
            .iter()
            .any(|end| host.trim_end_matches('.').ends_with(end));
    let strong = text.len() >= 10 && text.chars().any(|c| c.is_ascii_digit());
    let sure = strong && !here && !MADE_UP.is_match(text) && entropy(text) >= 3.0;
    let certainty = if sure { Certainty::Sure } else { Certainty::Likely };
    Some(Key { name: "a password in an address", certainty, text })
}

/// Whether a text looks as if nobody had thought of it: letters and digits by
/// turns, and no words.
fn is_chance(text: &str) -> bool {
    let is = |class: fn(&char) -> bool| text.chars().filter(class).count();
    let (digits, lower, upper) =
        (is(char::is_ascii_digit), is(char::is_ascii_lowercase), is(char::is_ascii_uppercase));
    let length = text.chars().count();
    let hex = length >= 24 && text.chars().all(|c| c.is_ascii_hexdigit());
    let uuid = length == 36 && text.matches('-').count() == 4;
    if uuid || digits < 2 || lower + upper < 4 || has_word(text) {
        return false;
    }
    let least = match (hex, length) {
        (true, _) => 3.0,
        (false, 0..20) => 3.5,
        (false, _) => 3.8,
    };
    // Short ones have to look like passwords of a machine.
    let mixed = lower > 0 && upper > 0;
    entropy(text) >= least && (hex || mixed || length >= 24)
}

/// Whether there is a run of letters that somebody could say: names are made of
/// words, and chance is not.
fn has_word(text: &str) -> bool {
    let mut run = 0;
    let mut last_upper = false;
    for c in text.chars() {
        let goes_on =
            c.is_ascii_lowercase() || (c.is_ascii_uppercase() && (run == 0 || last_upper));
        run = match (goes_on, c.is_ascii_alphabetic()) {
            (true, _) => run + 1,
            (false, true) => 1,
            (false, false) => 0,
        };
        last_upper = c.is_ascii_uppercase();
        if run >= 7 {
            return true;
        }
    }
    false
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

    #[test]
    fn a_named_value_that_looks_like_chance_is_a_key() {
        for line in [
            concat!("const API_", "KEY = \"k8Fq2ZpL0vXw7RtB3nYs\";"),
            concat!("  \"client_", "secret\": \"9f86d081884c7d659a2feaa0c55ad015\","),
            concat!("pass", "word: 'Xk29dLq0PzW7vB'"),
            concat!("let db_pass", "word: &str = \"Xk29dLq0PzW7vB\";"),
            concat!("export STRIPE_", "TOKEN=k8Fq2ZpL0vXw7RtB3nYs"),
            concat!("  auth_", "token: k8Fq2ZpL0vXw7RtB3nYs"),
            concat!("client.setApi", "Key(\"k8Fq2ZpL0vXw7RtB3nYs\")"),
            concat!("dsn = \"postgres://app:", "Xk29dLq0PzW7@db.prod.acme.io/app\""),
        ] {
            assert_eq!(in_line(line).map(|key| key.certainty), Some(Certainty::Sure), "{line}");
        }
    }

    #[test]
    fn what_only_sounds_like_one_is_none() {
        for line in [
            "let token = parser.next_token();",
            "password = os.environ[\"DB_PASSWORD\"]",
            "api_key: ${{ secrets.API_KEY }}",
            "\"token\": \"your-token-goes-here-1\"",
            "const TOKEN_URL = \"https://login.acme.io/oauth2/v2.0/token\";",
            "password: \"correct-horse-battery-staple\"",
            "token_hash = \"9f86d081884c7d659a2feaa0c55ad015\"",
            "access_key = \"user.preferences.v2.accessKeyLabel\"",
            "SECRET_KEY_BASE=changeme1234",
            "secretName: my-app-tls-2024-internal",
            "let private_key = \"-----BEGIN\";",
            "\"tokenizer\": \"Qwen2TokenizerFastV3a9\"",
        ] {
            assert_eq!(in_line(line), None, "{line}");
        }
        let example = "postgres://app:hunter22@db.example.com/app";
        assert_eq!(in_line(example).map(|key| key.certainty), Some(Certainty::Likely));
    }
}
