//! The lines around a problem, cut to what fits on a screen.
//!
//! A planner's JSON is often one line of a megabyte, which nobody wants to see
//! once for each problem in it. Only the lines next to a label are kept, and of
//! long ones only what is near it. The place that is named stays the true one.

use std::collections::BTreeSet;
use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::narrate::plain;

/// Longer lines are cut to so many characters around each label.
const WIDEST: usize = 100;
/// How many of them come before the label, if as many come behind.
const BEFORE: usize = 40;

const CUT: &str = "...";

/// A text and where its lines begin.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub fn new(text: &'t str) -> Self {
        let lines = text
            .split_inclusive('\n')
            .scan(0, |start, line| Some(std::mem::replace(start, *start + line.len())));
        let mut starts: Vec<usize> = lines.collect();
        if starts.is_empty() {
            starts.push(0);
        }
        Lines { text, starts }
    }

    /// The number of the line at a place, counted from 0.
    fn number_at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place) - 1
    }

    fn line(&self, number: usize) -> &'t str {
        let rest = &self.text[self.starts[number]..];
        let line = rest.split('\n').next().unwrap_or(rest);
        line.strip_suffix('\r').unwrap_or(line)
    }
}

/// A few lines of a text, for miette to draw.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    text: String,
    lines: Vec<Kept>,
    /// The labels in this text, each with its true column, counted from 0.
    labels: Vec<(Range<usize>, usize)>,
}

/// A line that is in the excerpt.
#[derive(Debug)]
struct Kept {
    number: usize,
    start: usize,
}

impl Excerpt {
    /// Cuts a text down to what is around the labels, of which none may be
    /// longer than its line.
    pub fn new(name: &str, lines: &Lines<'_>, labels: &[Range<usize>]) -> Self {
        let last = lines.starts.len() - 1;
        let near = |label: &Range<usize>| {
            let number = lines.number_at(label.start);
            number.saturating_sub(1)..=last.min(number + 1)
        };
        let numbers: BTreeSet<usize> = labels.iter().flat_map(near).collect();
        let mut excerpt = Excerpt {
            name: name.to_owned(),
            text: String::new(),
            lines: Vec::new(),
            labels: vec![(0..0, 0); labels.len()],
        };
        for number in numbers {
            let line = lines.line(number);
            let here = labels
                .iter()
                .enumerate()
                .filter(|(_, label)| lines.number_at(label.start) == number)
                .map(|(index, label)| {
                    let place = |at: usize| (at - lines.starts[number]).min(line.len());
                    (index, place(label.start)..place(label.end))
                })
                .collect::<Vec<_>>();
            excerpt.add(number, line, &here);
        }
        excerpt
    }

    /// Where a label is in the excerpt.
    pub fn label(&self, index: usize) -> Range<usize> {
        self.labels[index].0.clone()
    }

    fn add(&mut self, number: usize, line: &str, labels: &[(usize, Range<usize>)]) {
        self.lines.push(Kept { number, start: self.text.len() });
        let mut done = 0;
        for window in windows(line, labels.iter().map(|(_, label)| label.start)) {
            if window.start > done {
                self.text.push_str(CUT);
            }
            for (index, label) in labels {
                if (window.start..=window.end).contains(&label.start) {
                    let place = |at: usize| {
                        let before = &line[window.start..at.min(window.end)];
                        self.text.len() + shown(before).len()
                    };
                    let column = line[..label.start].chars().count();
                    self.labels[*index] = (place(label.start)..place(label.end), column);
                }
            }
            self.text.push_str(&shown(&line[window.clone()]));
            done = window.end;
        }
        if done < line.len() {
            self.text.push_str(CUT);
        }
        self.text.push('\n');
    }

    /// Whether no line is missing between two that are kept.
    fn in_a_row(&self, one: usize, other: usize) -> bool {
        self.lines[other].number - self.lines[one].number == other - one
    }

    fn kept_at(&self, place: usize) -> Option<usize> {
        self.lines.partition_point(|kept| kept.start <= place).checked_sub(1)
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let end = span.offset() + span.len().saturating_sub(1);
        let (Some(from), Some(to)) = (self.kept_at(span.offset()), self.kept_at(end)) else {
            return Err(MietteError::OutOfBounds);
        };
        if !self.in_a_row(from, to) {
            // miette then draws the two places apart.
            return Err(MietteError::OutOfBounds);
        }
        let first = (from.saturating_sub(before)..from).find(|line| self.in_a_row(*line, from));
        let first = first.unwrap_or(from);
        let most = (to + after).min(self.lines.len() - 1);
        let last = (to..=most).rev().find(|line| self.in_a_row(to, *line)).unwrap_or(to);
        let start = self.lines[first].start;
        let end = self.lines.get(last + 1).map_or(self.text.len(), |next| next.start);
        let column = self.labels.iter().find(|(label, _)| label.start == span.offset());
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            &self.text.as_bytes()[start..end],
            (start, end - start).into(),
            self.lines[first].number,
            // Asked for only where a label starts, and without context.
            column.filter(|_| before == 0).map_or(0, |(_, column)| *column),
            last - first + 1,
        )))
    }
}

/// What is kept of a line: all of it, or the parts around some places.
fn windows(line: &str, places: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    if line.chars().nth(WIDEST).is_none() {
        windows.push(0..line.len());
        return windows;
    }
    let mut places: Vec<usize> = places.collect();
    places.sort_unstable();
    if places.is_empty() {
        places.push(0);
    }
    for place in places {
        let end = after(line, before(line, place, BEFORE), WIDEST);
        let start = before(line, place, BEFORE).min(before(line, end, WIDEST));
        match windows.last_mut() {
            Some(last) if start <= last.end => last.end = end.max(last.end),
            _ => windows.push(start..end),
        }
    }
    windows
}

/// The place so many characters before another, or the start.
fn before(line: &str, place: usize, count: usize) -> usize {
    line[..place].char_indices().rev().take(count).last().map_or(place, |(at, _)| at)
}

/// The place so many characters after another, or the end.
fn after(line: &str, place: usize, count: usize) -> usize {
    line[place..].char_indices().nth(count).map_or(line.len(), |(at, _)| place + at)
}

/// Text of a file as a terminal can show it; miette takes care of tabs.
fn shown(text: &str) -> String {
    text.split('\t').map(plain).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The excerpt, and what its labels point at with their columns.
    fn excerpt(text: &str, words: &[&str]) -> (String, Vec<(String, usize)>) {
        let find = |word: &&str| text.find(word).map(|at| at..at + word.len()).unwrap();
        let labels: Vec<Range<usize>> = words.iter().map(find).collect();
        let excerpt = Excerpt::new("f", &Lines::new(text), &labels);
        let pointed = excerpt.labels.iter();
        let pointed =
            pointed.map(|(label, column)| (excerpt.text[label.clone()].to_owned(), *column));
        (excerpt.text.clone(), pointed.collect())
    }

    #[test]
    fn a_long_line_is_cut_around_each_label() {
        let gap = "ö".repeat(5_000);
        let text = format!("{gap}first{gap}second{gap}\n{gap}\n\nfar away\n");
        let (shown, pointed) = excerpt(&text, &["second", "first"]);
        let (forty, fiftyfive) = ("ö".repeat(40), "ö".repeat(55));
        let (fiftyfour, hundred) = ("ö".repeat(54), "ö".repeat(100));
        assert_eq!(
            shown,
            format!("...{forty}first{fiftyfive}...{forty}second{fiftyfour}...\n{hundred}...\n")
        );
        assert_eq!(pointed, [("second".into(), 10_005), ("first".into(), 5_000)]);
    }

    #[test]
    fn a_label_longer_than_the_screen_ends_with_it() {
        let (shown, pointed) = excerpt(&"x".repeat(1_000), &[&"x".repeat(1_000)]);
        assert_eq!(shown, format!("{}...\n", "x".repeat(100)));
        assert_eq!(pointed, [("x".repeat(100), 0)]);
    }

    #[test]
    fn what_would_steer_the_terminal_is_shown_and_the_label_still_fits() {
        let (shown, pointed) = excerpt("\x1b[2J\tid\r\nb", &["id"]);
        assert_eq!(shown, "\\u{1b}[2J\tid\nb\n");
        assert_eq!(pointed, [("id".into(), 5)]);
    }

    #[test]
    fn places_at_the_very_end_are_on_the_last_line() {
        for text in ["", "a", "a\n", "a\n\n"] {
            let label = text.len()..text.len();
            let excerpt = Excerpt::new("f", &Lines::new(text), &[label]);
            assert!(
                excerpt.read_span(&(excerpt.label(0).start, 0).into(), 1, 1).is_ok(),
                "{text:?}"
            );
        }
    }
}
