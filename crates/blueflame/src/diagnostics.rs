//! Problems in a file, drawn for people: the lines, what is wrong, what to do.

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use anstream::eprint;
use blueflame_core::yaml::{Problem, Severity, Span};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource};

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
    let mut report = String::new();
    for problem in problems.iter().take(MOST_SHOWN) {
        let drawn = Drawn::new(problem, name, &text);
        if handler.render_report(&mut report, &drawn).is_err() {
            // Without the drawing the words must still come through.
            let _ = writeln!(report, "{problem}");
        }
        report.push('\n');
    }
    report.push_str(&count(problems, name));
    report.push('\n');
    report
}

fn count(problems: &[Problem], name: &str) -> String {
    let warnings = problems.iter().filter(|p| p.severity == Severity::Warning).count();
    let errors = problems.len() - warnings;
    let number = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let counted = match (errors, warnings) {
        (errors, 0) => number(errors, "problem"),
        (0, warnings) => number(warnings, "warning"),
        (errors, warnings) => {
            format!("{} and {}", number(errors, "problem"), number(warnings, "warning"))
        }
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
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
}

impl<'p> Drawn<'p> {
    fn new(problem: &'p Problem, name: &str, text: &str) -> Self {
        let main = problem.span.map(|span| (span, problem.label.as_str(), true));
        let others = problem.related.iter().map(|(span, label)| (*span, label.as_str(), false));
        let labels: Vec<LabeledSpan> = main
            .into_iter()
            .chain(others)
            .map(|(span, label, first)| {
                let label = Some(label.to_owned()).filter(|label| !label.is_empty());
                let span = first_line(span, text);
                if first {
                    LabeledSpan::new_primary_with_span(label, span)
                } else {
                    LabeledSpan::new_with_span(label, span)
                }
            })
            .collect();
        let source = (!labels.is_empty()).then(|| NamedSource::new(name, text.to_owned()));
        Drawn { problem, source, labels }
    }
}

/// The part of a span on its first line: one line is enough to find a place.
fn first_line(span: Span, text: &str) -> std::ops::Range<usize> {
    let start = span.start.min(text.len());
    let end = span.end.clamp(start, text.len());
    let shown = text.get(start..end).unwrap_or_default();
    start..start + shown.lines().next().unwrap_or_default().trim_end().len()
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
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
        self.problem.hint.as_ref().map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
