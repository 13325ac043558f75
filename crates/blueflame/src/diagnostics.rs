//! Problems in a file, drawn for people: the lines, what is wrong, what to do.

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use crate::stderr::eprint;
use blueflame_core::yaml::{Problem, Severity, Span};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan};

use crate::excerpt::{Excerpt, Lines};
use crate::narrate::plain;
use crate::people::sheet::count;

/// Nobody reads more at once; the first ones often explain the others.
const MOST_SHOWN: usize = 50;

/// How a report is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Lines and colours for a terminal.
    Terminal,
    /// Plain ASCII for files, pipes and those who asked for no colour.
    Plain,
}

impl Look {
    fn of_stderr() -> Self {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if colour && std::io::stderr().is_terminal() { Look::Terminal } else { Look::Plain }
    }
}

/// Shows problems of a file on standard error, with their number at the end.
pub fn show(problems: &[Problem], name: &str, bytes: &[u8]) {
    if !problems.is_empty() {
        eprint!("{}", render(problems, name, bytes, Look::of_stderr()));
    }
}

/// Draws problems of a file, with their number at the end.
pub fn render(problems: &[Problem], name: &str, bytes: &[u8], look: Look) -> String {
    let theme = match look {
        Look::Terminal => GraphicalTheme::unicode(),
        Look::Plain => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_context_lines(1);
    let text = String::from_utf8_lossy(bytes);
    let lines = Lines::new(&text);
    let mut report = String::new();
    for problem in problems.iter().take(MOST_SHOWN) {
        let drawn = Drawn::new(problem, name, &text, &lines);
        if handler.render_report(&mut report, &drawn).is_err() {
            // Without the drawing the words must still come through.
            let _ = writeln!(report, "{drawn}");
        }
        report.push('\n');
    }
    report.push_str(&summary(problems, name));
    report.push('\n');
    report
}

fn summary(problems: &[Problem], name: &str) -> String {
    let warnings = problems.iter().filter(|p| p.severity == Severity::Warning).count();
    let errors = problems.len() - warnings;
    let (found, doubtful) = (count(errors, "problem"), count(warnings, "warning"));
    let counted = match (errors, warnings) {
        (_, 0) => found,
        (0, _) => doubtful,
        _ => format!("{found} and {doubtful}"),
    };
    let hidden = problems.len().saturating_sub(MOST_SHOWN);
    let rest = if hidden > 0 { format!(" ({hidden} not shown)") } else { String::new() };
    format!("{counted} in {name}{rest}")
}

/// A problem in the form that miette draws.
#[derive(Debug)]
struct Drawn<'p> {
    problem: &'p Problem,
    /// `None` when the problem is about something that is not in the file.
    source: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
}

impl<'p> Drawn<'p> {
    fn new(problem: &'p Problem, name: &str, text: &str, lines: &Lines<'_>) -> Self {
        let main = problem.span.map(|span| (span, problem.label.as_str()));
        let others = problem.related.iter().map(|(span, label)| (*span, label.as_str()));
        let (spans, words): (Vec<_>, Vec<_>) = main
            .into_iter()
            .chain(others)
            .map(|(span, word)| (first_line(span, text), word))
            .unzip();
        let excerpt = Excerpt::new(name, lines, &spans);
        let label = |(index, word): (usize, &str)| {
            let word = Some(plain(word).into_owned()).filter(|word| !word.is_empty());
            let span = excerpt.label(index);
            if index == 0 && problem.span.is_some() {
                LabeledSpan::new_primary_with_span(word, span)
            } else {
                LabeledSpan::new_with_span(word, span)
            }
        };
        let labels: Vec<LabeledSpan> = words.into_iter().enumerate().map(label).collect();
        Drawn { problem, source: (!labels.is_empty()).then_some(excerpt), labels }
    }
}

/// The part of a span on its first line: one line is enough to find a place.
fn first_line(span: Span, text: &str) -> std::ops::Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let end = span.end.clamp(start, text.len());
    let shown = text.get(start..end).unwrap_or_default();
    start..start + shown.lines().next().unwrap_or_default().trim_end().len()
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.problem.to_string()))
    }
}

impl std::error::Error for Drawn<'_> {}

impl Diagnostic for Drawn<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.hint.as_ref().map(|hint| Box::new(plain(hint)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
