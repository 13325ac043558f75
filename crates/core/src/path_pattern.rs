//! Patterns of paths: which files may be changed, and which never.
//!
//! `*` and `?` stay within one name, `**` stands for any number of
//! directories. Besides matching a path, a pattern can tell how much of a
//! directory it reaches, which is what locks have to be compared with.

use std::sync::{Arc, OnceLock};

use globset::{Glob, GlobBuilder, GlobMatcher};

use crate::lock_path::LockPath;

/// A pattern that was understood.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
    whole: Matcher,
    /// The pattern in pieces, once for each way its `{a,b}` can be read.
    readings: Vec<Vec<Part>>,
}

#[derive(Clone, Debug)]
enum Part {
    /// `**`: any number of directories.
    AnyDepth,
    /// One name of a path; `any` if it is `*`.
    Name { glob: Matcher, any: bool },
}

/// A glob that is made ready when it is first needed: that takes much longer than to
/// understand it, and most commands never match a path.
#[derive(Clone, Debug)]
struct Matcher {
    glob: Glob,
    /// Shared by all copies.
    ready: Arc<OnceLock<GlobMatcher>>,
}

impl Matcher {
    fn is_match(&self, path: &str) -> bool {
        self.ready.get_or_init(|| self.glob.compile_matcher()).is_match(path)
    }
}

impl From<Glob> for Matcher {
    fn from(glob: Glob) -> Self {
        Matcher { glob, ready: Arc::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    #[error("is empty")]
    Empty,
    #[error("is absolute; patterns are relative to the repository")]
    Absolute,
    #[error("climbs out of the repository with `..`")]
    Climbs,
    #[error("ends with `/`, so it matches no file")]
    TrailingSlash,
    #[error("has a part that is empty or `.`")]
    EmptyPart,
    #[error("has a `**` that is not alone between slashes")]
    MixedStars,
    #[error("has a `/` inside of `[...]`")]
    SlashInClass,
    #[error("has more than {MOST_READINGS} ways to read its braces")]
    TooManyBraces,
    #[error("is not a valid pattern: {0}")]
    Glob(String),
}

const MOST_READINGS: usize = 64;

/// How much of what lies at or below a path a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    Nothing,
    /// Some paths below it.
    Part,
    /// The path itself, as a file, and nothing below it.
    Itself,
    /// Everything below it.
    Everything,
}

impl PathPattern {
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        if text.trim().is_empty() {
            return Err(BadPattern::Empty);
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.starts_with(['/', '~']) {
            return Err(BadPattern::Absolute);
        }
        if text.ends_with('/') {
            return Err(BadPattern::TrailingSlash);
        }
        let whole = glob(text)?.into();
        let readings: Result<Vec<_>, _> = expand(text)?.iter().map(|one| parts(one)).collect();
        Ok(PathPattern { text: text.to_owned(), whole, readings: readings? })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a path in normal form matches.
    pub fn matches(&self, path: &str) -> bool {
        self.whole.is_match(path)
    }

    /// Whether the pattern has no `/`, so that it can be held against a name.
    pub fn is_name(&self) -> bool {
        !self.text.contains('/')
    }

    /// How much at or below a path this matches.
    pub fn reach(&self, path: &LockPath) -> Reach {
        self.readings.iter().map(|parts| reach(parts, path)).max().unwrap_or(Reach::Nothing)
    }
}

fn glob(text: &str) -> Result<Glob, BadPattern> {
    // Without `literal_separator`, `src/*.rs` would match `src/a/b.rs`.
    GlobBuilder::new(text)
        .literal_separator(true)
        .build()
        .map_err(|error| BadPattern::Glob(error.kind().to_string()))
}

fn parts(text: &str) -> Result<Vec<Part>, BadPattern> {
    text.split('/')
        .map(|piece| match piece {
            ".." => Err(BadPattern::Climbs),
            "" | "." => Err(BadPattern::EmptyPart),
            "**" => Ok(Part::AnyDepth),
            piece if piece.contains("**") => Err(BadPattern::MixedStars),
            piece => {
                // An unclosed class in one piece had its slash inside of it.
                let glob = glob(piece).map_err(|_| BadPattern::SlashInClass)?;
                Ok(Part::Name { glob: glob.into(), any: piece == "*" })
            }
        })
        .collect()
}

/// Every reading of `{a,b}`, since an alternative may contain slashes.
pub(crate) fn expand(text: &str) -> Result<Vec<String>, BadPattern> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() >= MOST_READINGS {
            return Err(BadPattern::TooManyBraces);
        }
        match first_braces(&text) {
            None => done.push(text),
            Some((start, end, choices)) => {
                for choice in choices {
                    open.push(format!("{}{choice}{}", &text[..start], &text[end + 1..]));
                }
            }
        }
    }
    Ok(done)
}

/// Where the first braces open and close, and what stands between the commas.
fn first_braces(text: &str) -> Option<(usize, usize, Vec<&str>)> {
    let (mut start, mut depth, mut from) = (None, 0_usize, 0);
    let mut choices = Vec::new();
    let mut in_class = false;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '{' => {
                depth += 1;
                if depth == 1 {
                    start = Some(at);
                    from = at + 1;
                }
            }
            ',' if depth == 1 => {
                choices.push(&text[from..at]);
                from = at + 1;
            }
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    choices.push(&text[from..at]);
                    return start.map(|start| (start, at, choices));
                }
            }
            _ => {}
        }
    }
    None
}

/// Follows the names of a path through a pattern; a state is the number of
/// parts that are used up.
fn reach(parts: &[Part], path: &LockPath) -> Reach {
    let end = parts.len();
    let mut states = vec![0];
    for name in path.as_str().split('/') {
        let mut next = Vec::new();
        for state in with_skipped_depths(parts, &states) {
            match parts.get(state) {
                // It may go on, or this was its last directory.
                Some(Part::AnyDepth) => next.extend([state, state + 1]),
                Some(Part::Name { glob, .. }) if glob.is_match(name) => next.push(state + 1),
                Some(Part::Name { .. }) | None => {}
            }
        }
        next.sort_unstable();
        next.dedup();
        states = next;
    }
    let states = with_skipped_depths(parts, &states);
    let takes_everything = |state: &usize| {
        let depths = parts[*state..].iter().take_while(|part| matches!(part, Part::AnyDepth));
        let after = &parts[*state + depths.count()..];
        *state < end
            && matches!(parts[*state], Part::AnyDepth)
            && matches!(after, [] | [Part::Name { any: true, .. }])
    };
    if states.iter().any(takes_everything) {
        Reach::Everything
    } else if states.contains(&end) {
        Reach::Itself
    } else if states.is_empty() {
        Reach::Nothing
    } else {
        Reach::Part
    }
}

/// `**` may stand for no directory at all, but at the end of a pattern it
/// needs something below: `src/**` does not match `src`.
fn with_skipped_depths(parts: &[Part], states: &[usize]) -> Vec<usize> {
    let mut all = states.to_vec();
    let mut at = 0;
    while let Some(&state) = all.get(at) {
        let skips = matches!(parts.get(state), Some(Part::AnyDepth)) && state + 1 < parts.len();
        if skips && !all.contains(&(state + 1)) {
            all.push(state + 1);
        }
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn how_much_of_a_directory_a_pattern_reaches() {
        for (pattern, path, expected) in [
            ("src/**", "src", Reach::Everything),
            ("src/**", "src/auth", Reach::Everything),
            ("src/**", "src/a.rs", Reach::Everything),
            ("src/**", "docs", Reach::Nothing),
            ("src/**", "source", Reach::Nothing),
            ("src/**/*", "src/auth", Reach::Everything),
            ("src/*.rs", "src/a.rs", Reach::Itself),
            ("src/*.rs", "src/auth", Reach::Nothing),
            ("src/*.rs", "src", Reach::Part),
            ("src/**/*.rs", "src/auth", Reach::Part),
            ("src/**/*.rs", "src/auth/a.rs", Reach::Itself),
            ("src/*", "src/auth", Reach::Itself),
            ("src/*/**", "src", Reach::Part),
            ("**", "anything/at/all", Reach::Everything),
            ("**/*.rs", "src/a.rs", Reach::Itself),
            ("**/tests/**", "src/tests", Reach::Everything),
            ("**/tests/**", "src", Reach::Part),
            ("{src/api,docs}/**", "docs", Reach::Everything),
            ("{src/api,docs}/**", "src", Reach::Part),
            ("{src/api,docs}/**", "src/ui", Reach::Nothing),
            ("README.md", "README.md", Reach::Itself),
            ("src/auth/jwt.rs", "src/auth", Reach::Part),
        ] {
            let reach = PathPattern::new(pattern).unwrap().reach(&LockPath::new(path).unwrap());
            assert_eq!(reach, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn patterns_that_would_not_do_what_they_look_like_are_refused() {
        for (pattern, why) in [
            ("", BadPattern::Empty),
            ("/etc/**", BadPattern::Absolute),
            ("~/x", BadPattern::Absolute),
            ("../x", BadPattern::Climbs),
            ("src/", BadPattern::TrailingSlash),
            ("src//a", BadPattern::EmptyPart),
            ("src/./a", BadPattern::EmptyPart),
            ("src/a**", BadPattern::MixedStars),
            ("src/[a/b].rs", BadPattern::SlashInClass),
            ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", BadPattern::TooManyBraces),
        ] {
            assert_eq!(PathPattern::new(pattern).unwrap_err(), why, "{pattern}");
        }
        for pattern in ["src/[a", "src/{a", "a{b{c"] {
            assert!(matches!(PathPattern::new(pattern), Err(BadPattern::Glob(_))), "{pattern}");
        }
    }

    proptest! {
        /// A path that matches is reached at itself and at every directory
        /// above it, and what is reached in full matches.
        #[test]
        fn reach_and_match_agree(
            pattern in "(\\*\\*/)?(a|b|\\*|a\\*|\\{a,b/c\\}|\\?)(/\\*\\*)?(/(a|b|\\*|\\*b|\\*\\*)){0,2}",
            path in "[abc]{1,2}(/[abc]{1,2}){0,3}",
        ) {
            let pattern = PathPattern::new(&pattern).unwrap();
            let lock = LockPath::new(&path).unwrap();
            if pattern.matches(&path) {
                prop_assert!(pattern.reach(&lock) >= Reach::Itself, "{:?}", pattern.reach(&lock));
                for (at, _) in path.match_indices('/') {
                    let above = LockPath::new(&path[..at]).unwrap();
                    prop_assert!(pattern.reach(&above) != Reach::Nothing);
                }
            }
            match pattern.reach(&lock) {
                Reach::Itself => prop_assert!(pattern.matches(&path)),
                Reach::Everything => {
                    let below = format!("{path}/x");
                    let deeper = format!("{path}/x/y");
                    prop_assert!(pattern.matches(&below) && pattern.matches(&deeper));
                }
                Reach::Nothing | Reach::Part => prop_assert!(!pattern.matches(&path)),
            }
        }
    }
}
