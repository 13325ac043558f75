//! Keys and tokens, known by their shapes.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// How sure a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// Nothing else looks like this.
    Sure,
    /// It may be an example: tests are full of them.
    Likely,
}

pub(super) struct Shape {
    pub name: &'static str,
    pub certainty: Certainty,
    pattern: &'static str,
    #[cfg(test)]
    example: &'static str,
}

macro_rules! shapes {
    ($($certainty:ident $name:literal $pattern:literal $example:expr,)*) => {
        const SHAPES: &[Shape] = &[$(Shape {
            name: $name,
            certainty: Certainty::$certainty,
            pattern: $pattern,
            #[cfg(test)]
            example: $example,
        },)*];
    };
}

// The examples are put together so that nobody takes this file for a leak.
shapes! {
    Sure "a private key" r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----" concat!("-----BEGIN RSA ", "PRIVATE KEY-----"),
    Sure "an AWS access key" r"\b(AKIA|ASIA)[0-9A-Z]{16}\b" concat!("AKIA", "Z7Q2N4KD83HFMW5T"),
    Sure "a GitHub token" r"\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})" concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz"),
    Sure "a GitLab token" r"\bglpat-[A-Za-z0-9_-]{20,}" concat!("glpat-", "0123456789abcdefghij"),
    Sure "a Slack token" r"\bxox[abeoprs]-[0-9A-Za-z-]{20,}" concat!("xoxb-", "012345678901-abcdefghij"),
    Sure "a Slack webhook" r"hooks\.slack\.com/services/T[0-9A-Z]{6,}/B[0-9A-Z]{6,}/[0-9A-Za-z]{16,}" concat!("https://hooks.slack.com", "/services/T0123456/B0123456/0123456789abcdef"),
    Sure "an Anthropic key" r"\bsk-ant-[A-Za-z0-9_-]{20,}" concat!("sk-ant-", "api03-0123456789abcdef"),
    Sure "an OpenAI key" r"\bsk-((proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{48}\b)" concat!("sk-proj-", "0123456789abcdefghij"),
    Sure "a Stripe key" r"\b[rs]k_live_[A-Za-z0-9]{16,}" concat!("sk_live_", "0123456789abcdef"),
    Sure "a Google key" r"\b(AIza[0-9A-Za-z_-]{35}|GOCSPX-[0-9A-Za-z_-]{28})" concat!("AIza", "0123456789abcdefghijklmnopqrstuvwxy"),
    Sure "an npm token" r"\bnpm_[A-Za-z0-9]{36}\b" concat!("npm_", "0123456789abcdefghijklmnopqrstuvwxyz"),
    Sure "a PyPI token" r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}" concat!("pypi-", "AgEIcHlwaS5vcmc01234567890123456789012345678901234567890123456789012345678"),
    Sure "a Hugging Face token" r"\bhf_[A-Za-z0-9]{34,}\b" concat!("hf_", "0123456789abcdefghijklmnopqrstuvwx"),
    Sure "a SendGrid key" r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b" concat!("SG.", "0123456789abcdefghijkl.0123456789abcdefghijklmnopqrstuvwxyz0123456"),
    Likely "a JSON web token" r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}" concat!("eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0NSJ9.0123456789ab"),
    Likely "a password in an address" r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/:@]{3,}@[A-Za-z0-9]" concat!("postgres://app:", "hunter22@db.example.com/app"),
}

/// Words by which documentation marks a key that is none.
const EXAMPLES: &[&str] = &["EXAMPLE", "example_key", "XXXXXXXX", "xxxxxxxx"];

struct Compiled {
    any: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let patterns = SHAPES.iter().map(|shape| shape.pattern);
    Compiled {
        any: RegexSet::new(patterns.clone()).expect("the patterns stand above and are tested"),
        each: patterns
            .map(|pattern| Regex::new(pattern).expect("the patterns stand above and are tested"))
            .collect(),
    }
});

/// The keys in a line: their shapes and their texts, each kind once.
pub(super) fn in_line(line: &str) -> Vec<(&'static Shape, &str)> {
    let compiled = &*COMPILED;
    let genuine = |text: &&str| !EXAMPLES.iter().any(|example| text.contains(example));
    let key = |at: usize| {
        let mut texts = compiled.each[at].find_iter(line).map(|found| found.as_str());
        texts.find(genuine).map(|text| (&SHAPES[at], text))
    };
    compiled.any.matches(line).into_iter().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_finds_its_example_and_nothing_else_does() {
        for shape in SHAPES {
            for line in [shape.example.to_owned(), format!("key = \"{}\";", shape.example)] {
                let names: Vec<&str> = in_line(&line).iter().map(|(shape, _)| shape.name).collect();
                assert_eq!(names, [shape.name], "{line}");
            }
        }
    }

    #[test]
    fn ordinary_lines_hold_no_key() {
        for line in [
            "let key = std::env::var(\"API_KEY\")?;",
            "class=\"sk-circle sk-child-with-a-very-long-name-for-a-class\"",
            "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
            "-----BEGIN PUBLIC KEY-----",
            "https://user@example.com/path:with@signs",
            "http://localhost:8080/@scope/package",
            "commit 3f2a0c5d7e9b1a4c6d8e0f2a4b6c8d0e2f4a6b8c",
            "sha512-7PIcKzTq8L1l9c8r5dY0p0Zr1c5l0m3o==",
        ] {
            let names: Vec<&str> = in_line(line).iter().map(|(shape, _)| shape.name).collect();
            assert!(names.is_empty(), "{line}: {names:?}");
        }
    }
}
