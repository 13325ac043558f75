//! One value of the tree as a number, a text, a list: or what to say instead.
//!
//! Every method answers with something. When the file has another kind of
//! value there, the problem is reported and the answer is a placeholder.

use super::number::{Plain, resolve};
use super::path::Path;
use super::problem::{Problem, Problems};
use super::read::Stop;
use super::tree::{Entry, Kind, Node};

#[derive(Clone, Copy)]
pub(super) struct Reader<'p> {
    pub(super) node: &'p Node,
    pub(super) path: &'p Path<'p>,
    pub(super) problems: &'p Problems,
}

impl<'p> Reader<'p> {
    pub(super) fn record(&self, stop: &Stop) {
        if let Stop::Unreported(message) = stop {
            self.problems
                .push(Problem::error(self.path.to_string(), message).at(self.node.span, ""));
        }
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::error(self.path.to_string(), message).at(self.node.span, "")
    }

    /// Reports that something else was wanted, unless that was done already.
    pub(super) fn mismatch(&self, wanted: &str, hint: Option<String>) {
        if self.node.kind == Kind::Refused {
            return;
        }
        let problem = if self.node.is_null() {
            let hint = hint.unwrap_or_else(|| "remove the key to keep the default".to_owned());
            self.problem("has no value")
                .at(self.node.span, format!("{wanted} is needed"))
                .hint(hint)
        } else {
            let subject = if matches!(self.path, Path::Root) { "the file " } else { "" };
            let message = format!("{subject}must be {wanted}, got {}", found(self.node));
            let mut problem = self.problem(message);
            problem.hint = hint;
            problem
        };
        self.problems.push(problem);
    }

    /// An unquoted scalar, with its text.
    fn plain(&self) -> Option<(Plain, &'p str)> {
        match &self.node.kind {
            Kind::Scalar { text, quoted: false } => Some((resolve(text), text)),
            _ => None,
        }
    }

    fn quoted(&self) -> Option<&'p str> {
        match &self.node.kind {
            Kind::Scalar { text, quoted: true } => Some(text),
            _ => None,
        }
    }

    fn unquote_hint(&self, fits: impl Fn(Plain) -> bool) -> Option<String> {
        self.quoted()
            .filter(|text| fits(resolve(text)))
            .map(|text| format!("remove the quotes: {text}"))
    }

    pub(super) fn integer(&self, least: i128, most: i128) -> i128 {
        let (plain, text) = match self.plain() {
            Some((plain @ (Plain::Int(_) | Plain::HugeInt | Plain::Float(_)), text)) => {
                (plain, text)
            }
            other => {
                let hint =
                    self.unquote_hint(|plain| matches!(plain, Plain::Int(_))).or_else(|| {
                        let digits: String = other?.1.chars().filter(|c| *c != '_').collect();
                        matches!(resolve(&digits), Plain::Int(_)).then(|| format!("write {digits}"))
                    });
                self.mismatch("a whole number", hint);
                return least.max(0);
            }
        };
        match plain {
            Plain::Int(value) if (least..=most).contains(&value) => return value,
            Plain::Float(_) => {
                self.problems.push(self.problem(format!("must be a whole number, got `{text}`")));
            }
            _ if text.starts_with('-') && least == 0 => {
                self.problems.push(self.problem(format!("cannot be negative, got `{text}`")));
            }
            _ if text.starts_with('-') => {
                let message = format!("is too small, got `{}`", short(text));
                self.problems.push(self.problem(message));
            }
            _ => {
                let message = format!("is too large, got `{}`", short(text));
                self.problems.push(self.problem(message));
            }
        }
        least.max(0)
    }

    pub(super) fn float(&self) -> f64 {
        match self.plain() {
            Some((Plain::Float(value), _)) => value,
            #[expect(clippy::cast_precision_loss)]
            Some((Plain::Int(value), _)) => value as f64,
            Some((Plain::HugeInt, text)) => text.parse().unwrap_or(f64::INFINITY),
            _ => {
                let hint = self
                    .unquote_hint(|plain| matches!(plain, Plain::Int(_) | Plain::Float(_)))
                    .or_else(|| {
                        let bare = self.plain()?.1.trim_matches(['$', ' ']);
                        let number = matches!(resolve(bare), Plain::Int(_) | Plain::Float(_));
                        number.then(|| format!("write {bare}"))
                    });
                self.mismatch("a number", hint);
                0.0
            }
        }
    }

    pub(super) fn boolean(&self) -> bool {
        if let Some((Plain::Bool(value), _)) = self.plain() {
            return value;
        }
        let written =
            |text: &str, meant| Some(format!("`{text}` is written `{meant}` in this file"));
        let hint = match &self.node.kind {
            Kind::Scalar { text, quoted } => match (text.to_ascii_lowercase().as_str(), quoted) {
                ("true" | "false", true) => Some(format!("remove the quotes: {text}")),
                ("yes" | "y" | "on" | "1" | "true", _) => written(text, "true"),
                ("no" | "n" | "off" | "0" | "false", _) => written(text, "false"),
                _ => None,
            },
            _ => None,
        };
        self.mismatch("`true` or `false`", hint);
        false
    }

    pub(super) fn text(&self) -> &'p str {
        match (&self.node.kind, self.plain()) {
            (Kind::Scalar { text, .. }, None | Some((Plain::Text, _))) => text,
            (_, Some((Plain::Null, _))) => {
                let hint = "write \"\" for an empty text, or remove the key to keep the default";
                self.mismatch("a text", Some(hint.to_owned()));
                ""
            }
            (_, Some((_, text))) => {
                self.mismatch("a text", Some(format!("put it in quotes: \"{text}\"")));
                ""
            }
            _ => {
                self.mismatch("a text", None);
                ""
            }
        }
    }

    /// A duration is text with a unit; a bare number gets its own words.
    pub(super) fn refuse_bare_duration(&self) -> bool {
        let Kind::Scalar { text, .. } = &self.node.kind else { return false };
        let bare = matches!(resolve(text), Plain::Int(_) | Plain::HugeInt | Plain::Float(_));
        if bare {
            let text = short(text);
            self.problems.push(
                self.problem(format!("has no unit, got `{text}`"))
                    .hint(format!("add one: `{text}s` for seconds, `{text}m` for minutes")),
            );
        }
        bare
    }

    pub(super) fn items(&self) -> &'p [Node] {
        match &self.node.kind {
            Kind::Sequence(items) => items,
            Kind::Scalar { text, .. } if !self.node.is_null() => {
                let hint = format!("write [{}]", serde_json::Value::from(short(text)));
                self.mismatch("a list", Some(hint));
                &[]
            }
            _ => {
                let hint = "write [] for an empty list, or remove the key to keep the default";
                self.mismatch("a list", self.node.is_null().then(|| hint.to_owned()));
                &[]
            }
        }
    }

    pub(super) fn entries(&self) -> &'p [Entry] {
        if let Kind::Mapping(entries) = &self.node.kind {
            return entries;
        }
        self.mismatch("a mapping of `key: value` lines", None);
        &[]
    }
}

/// What stands in the file, for "got ...".
fn found(node: &Node) -> String {
    match &node.kind {
        Kind::Mapping(_) => "a mapping".to_owned(),
        Kind::Sequence(_) => "a list".to_owned(),
        Kind::Scalar { text, quoted: true } => format!("the text `{}`", short(text)),
        Kind::Scalar { text, .. } => match resolve(text) {
            Plain::Int(_) | Plain::HugeInt | Plain::Float(_) => {
                format!("the number `{}`", short(text))
            }
            Plain::Null | Plain::Bool(_) | Plain::Text => format!("`{}`", short(text)),
        },
        Kind::Refused => "something else".to_owned(),
    }
}

/// The beginning of a text on one line, as much as a message can carry.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() > 40 || line.len() < text.trim_end().len() {
        format!("{}...", line.chars().take(40).collect::<String>())
    } else {
        line.to_owned()
    }
}
