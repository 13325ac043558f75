//! Checks that many keys share: ranges, durations, commands, patterns, paths.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;
use regex::{Regex, RegexBuilder};

use crate::lock_path::{BadLockPath, LockPath};
use crate::money::Usd;
use crate::path_pattern::{BadPattern, PathPattern};
use crate::yaml::{DurationText, Problem, Problems, Spanned};

/// Bounds what one hostile or careless expression may cost.
const REGEX_BYTES: usize = 1 << 20;

#[derive(Clone, Copy)]
pub(super) struct Check<'p> {
    pub problems: &'p Problems,
}

impl Check<'_> {
    pub fn error<T>(self, path: &str, value: &Spanned<T>, message: impl Into<String>, hint: &str) {
        let mut problem = Problem::error(path, message).at(value.span, "");
        if !hint.is_empty() {
            problem = problem.hint(hint);
        }
        self.problems.push(problem);
    }

    pub fn warning<T>(
        self,
        path: &str,
        value: &Spanned<T>,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.problems.push(Problem::warning(path, message).at(value.span, "").hint(hint));
    }

    pub fn range<T>(self, path: &str, value: &Spanned<T>, range: RangeInclusive<T>) -> T
    where
        T: Copy + PartialOrd + Display,
    {
        let (least, most) = (*range.start(), *range.end());
        if !range.contains(&value.value) {
            let wanted = if least == most {
                format!("must be {least}")
            } else if value.value < least {
                format!("must be at least {least}")
            } else {
                format!("must be at most {most}")
            };
            self.error(path, value, format!("{wanted}, got `{}`", value.value), "");
        }
        value.value
    }

    pub fn duration(
        self,
        path: &str,
        value: &Spanned<DurationText>,
        longest: Duration,
    ) -> Option<Duration> {
        let text = value.0.trim();
        let Ok(signed) = text.parse::<SignedDuration>() else {
            let message = format!("is not a length of time, got `{text}`");
            self.error(path, value, message, "write it like `300s`, `5m` or `1h 30m`");
            return None;
        };
        let wanted = match Duration::try_from(signed) {
            Ok(duration) if duration > longest => {
                format!("must be at most {:#}", SignedDuration::try_from(longest).ok()?)
            }
            Ok(duration) if duration >= Duration::from_secs(1) => return Some(duration),
            Ok(_) | Err(_) => "must be at least 1s".to_owned(),
        };
        self.error(path, value, format!("{wanted}, got `{text}`"), "");
        None
    }

    /// Dollars, with none as an amount like any other.
    pub fn usd(self, path: &str, value: &Spanned<f64>) -> Option<Usd> {
        let amount = Usd::from_dollars(value.value);
        if amount.is_none() {
            let message = format!("is not an amount of money, got `{}`", value.value);
            self.error(path, value, message, "write dollars such as 1.50");
        }
        amount
    }

    pub fn no_strange_characters(self, path: &str, value: &Spanned<String>) -> bool {
        let strange = value.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        if strange {
            self.error(path, value, "contains a control character", "remove it");
        }
        !strange
    }

    /// Commands that a shell runs; none may be empty.
    pub fn commands(self, path: &str, list: &[Spanned<String>]) -> Vec<String> {
        self.names(path, "a command", list)
    }

    /// A list of texts that all say something.
    pub fn names(self, path: &str, what: &str, list: &[Spanned<String>]) -> Vec<String> {
        for (index, text) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if text.trim().is_empty() {
                let hint = format!("write {what}, or remove the line");
                self.error(&path, text, "is empty", &hint);
            }
            self.no_strange_characters(&path, text);
        }
        list.iter().map(|text| text.value.clone()).collect()
    }

    pub fn patterns(self, path: &str, list: &[Spanned<String>]) -> Vec<PathPattern> {
        let pattern = |(index, text): (usize, &Spanned<String>)| match PathPattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(bad) => {
                let hint = match &bad {
                    BadPattern::Empty => "remove the line".to_owned(),
                    BadPattern::EmptyPart => "put one `/` between names".to_owned(),
                    BadPattern::TrailingSlash => format!("write `{}**`", text.value),
                    BadPattern::MixedStars => "write `dir/**` or `**/*.rs`".to_owned(),
                    BadPattern::SlashInClass | BadPattern::TooManyBraces => {
                        "write several patterns instead".to_owned()
                    }
                    BadPattern::Absolute | BadPattern::Climbs => {
                        "write it as seen from the root of the repository: `src/**`".to_owned()
                    }
                    BadPattern::Glob(_) => "`*` stays in a directory, `**` goes through all; \
                         `[`, `{` and `\\` are special"
                        .to_owned(),
                };
                let message = format!("{bad}, got `{}`", text.value);
                self.error(&format!("{path}[{index}]"), text, message, &hint);
                None
            }
        };
        list.iter().enumerate().filter_map(pattern).collect()
    }

    pub fn regex(self, path: &str, text: &Spanned<String>) -> Option<Regex> {
        let built = RegexBuilder::new(text).size_limit(REGEX_BYTES).build();
        let reason = match built {
            Ok(regex) => return Some(regex),
            Err(regex::Error::CompiledTooBig(_)) => "it is too large".to_owned(),
            // The last line of a syntax error is the reason; the ones before
            // draw the expression once more.
            Err(error) => {
                let shown = error.to_string();
                let last = shown.lines().last().unwrap_or_default().trim();
                last.strip_prefix("error: ").unwrap_or(last).to_owned()
            }
        };
        let hint = if reason.contains("look-around") {
            "say it without look-around, or with two patterns"
        } else {
            "to mean a special character itself, put `\\` before it"
        };
        let message = format!("is not a valid regular expression: {reason}");
        self.error(path, text, message, hint);
        None
    }

    /// A file or directory inside the repository.
    pub fn inside(self, path: &str, text: &Spanned<String>) -> Option<LockPath> {
        let why = match LockPath::new(text) {
            Ok(inside) => return Some(inside),
            Err(BadLockPath::Empty) => "must name a path inside the repository",
            Err(BadLockPath::Absolute) => "must be relative to the repository",
            Err(BadLockPath::Climbs) => "must stay inside the repository",
            Err(BadLockPath::Pattern) => "must be one path, not a pattern",
            Err(BadLockPath::Strange) => "contains a backslash or a control character",
            Err(BadLockPath::Git) => "must not be git's own directory",
        };
        self.error(path, text, format!("{why}, got `{}`", text.value), "");
        None
    }

    pub fn all_inside(self, path: &str, list: &[Spanned<String>]) -> Vec<LockPath> {
        list.iter()
            .enumerate()
            .filter_map(|(index, text)| self.inside(&format!("{path}[{index}]"), text))
            .collect()
    }
}
