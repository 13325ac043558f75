//! A problem in a file: what is wrong, where, and what to write instead.
//!
//! The message reads on from the path: path `limits.max_retries`, message
//! "must be a whole number". Without a path it stands alone. It is worded for
//! the person who wrote the file and knows nothing of this program's inside.

use std::cell::{Cell, RefCell};
use std::fmt;

use super::suggest::closest;

/// Bytes of the text, from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end: end.max(start) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but probably does not mean what was meant.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// Dotted path of the key, such as `limits.max_retries`; may be empty.
    pub path: String,
    pub message: String,
    /// Unknown when the value was not written in the file.
    pub span: Option<Span>,
    /// What to say at the span; may be empty.
    pub label: String,
    pub hint: Option<String>,
    /// Other places that take part in the problem.
    pub related: Vec<(Span, String)>,
}

impl Problem {
    pub fn error(path: impl Into<String>, message: impl Into<String>) -> Self {
        Problem {
            severity: Severity::Error,
            path: path.into(),
            message: message.into(),
            span: None,
            label: String::new(),
            hint: None,
            related: Vec::new(),
        }
    }

    pub fn warning(path: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { severity: Severity::Warning, ..Problem::error(path, message) }
    }

    #[must_use]
    pub fn at(mut self, span: impl Into<Option<Span>>, label: impl Into<String>) -> Self {
        self.span = span.into();
        self.label = label.into();
        self
    }

    /// Points at one more place, if it is in the file.
    #[must_use]
    pub fn also(mut self, span: Option<Span>, label: impl Into<String>) -> Self {
        match span {
            Some(span) if self.span.is_none() => self.at(span, label),
            Some(span) => {
                self.related.push((span, label.into()));
                self
            }
            None => self,
        }
    }

    /// Whether a later problem is only about the placeholder that was put in
    /// the place of what this one is about.
    pub fn hides(&self, later: &Problem) -> bool {
        let same_place = self.span.is_some() && self.span == later.span;
        let same_path = !self.path.is_empty()
            && later
                .path
                .strip_prefix(&self.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('['));
        same_place || same_path
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}` {}", self.path, self.message)
        }
    }
}

/// More than anyone reads; a hostile file must not fill the memory with them.
const MOST_KEPT: usize = 500;

/// Comparing words takes long, and nobody reads more hints than these.
const MOST_COMPARED: usize = 100;

/// Where problems are collected while reading and checking goes on.
#[derive(Debug, Default)]
pub struct Problems {
    kept: RefCell<Vec<Problem>>,
    errors: Cell<usize>,
    left_out: Cell<usize>,
    compared: Cell<usize>,
}

impl Problems {
    pub fn push(&self, problem: Problem) {
        if problem.severity == Severity::Error {
            self.errors.set(self.errors.get() + 1);
        }
        let mut kept = self.kept.borrow_mut();
        if kept.len() < MOST_KEPT {
            kept.push(problem);
        } else {
            self.left_out.set(self.left_out.get() + 1);
        }
    }

    /// The candidate that was probably meant by a mistyped word. The first
    /// problems of a file get an answer; a file that is full of them does not
    /// get more.
    pub fn closest<'c>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        let compared = self.compared.get() + 1;
        self.compared.set(compared);
        if compared > MOST_COMPARED { None } else { closest(word, candidates) }
    }

    pub fn has_errors(&self) -> bool {
        self.errors.get() > 0
    }

    /// All of them in the order of the file; what was not written comes last.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut all = self.kept.into_inner();
        all.sort_by_key(|problem| problem.span.map_or(usize::MAX, |span| span.start));
        let left_out = self.left_out.get();
        if left_out > 0 {
            all.push(Problem::error("", format!("there are {left_out} more problems like these")));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_out_in_the_order_of_the_file_and_are_bounded() {
        let problems = Problems::default();
        problems.push(Problem::warning("late", "is late").at(Span::new(9, 10), ""));
        problems.push(Problem::error("", "nowhere"));
        problems.push(Problem::error("early", "is early").at(Span::new(1, 2), ""));
        for _ in 0..MOST_KEPT {
            problems.push(Problem::error("same", "again"));
        }
        assert!(problems.has_errors());
        let all = problems.into_sorted();
        assert_eq!(all[0].to_string(), "`early` is early");
        assert_eq!(all[1].to_string(), "`late` is late");
        assert_eq!(all.len(), MOST_KEPT + 1);
        assert_eq!(all[MOST_KEPT].to_string(), "there are 3 more problems like these");
    }

    #[test]
    fn suggestions_are_bounded() {
        let problems = Problems::default();
        for _ in 0..MOST_COMPARED {
            assert_eq!(problems.closest("mdoel", ["model"]), Some("model"));
        }
        assert_eq!(problems.closest("mdoel", ["model"]), None);
    }
}
