//! A page of text that fits the terminal.
//!
//! Everything that agents or repositories wrote comes in through here and is
//! made safe to show. Styles are written as they are meant; the terminal leaves
//! them out where they are not wanted, and the page reads the same without.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::narrate::plain;

pub(super) const STRONG: Style = Style::new().bold();
pub(super) const ADDED: Style = AnsiColor::Green.on_default();
pub(super) const REMOVED: Style = AnsiColor::Red.on_default();
pub(super) const PLACE: Style = AnsiColor::Cyan.on_default();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();

/// Narrower than this, lines are broken by the terminal rather than by us.
const NARROWEST: usize = 30;

/// Beyond this, lines are hard to read.
const WIDEST: usize = 100;

/// The column in which the text behind a label begins.
const LABEL: usize = 10;

#[derive(Debug)]
pub struct Sheet {
    text: String,
    width: usize,
}

impl Sheet {
    pub fn new(width: usize) -> Self {
        Sheet { text: String::new(), width: width.clamp(NARROWEST, WIDEST) }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn finish(self) -> String {
        self.text
    }

    pub fn title(&mut self, title: &str) {
        self.blank();
        self.styled(STRONG, &format!("== {title} =="));
        self.blank();
    }

    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// One line as it is, in a style.
    pub fn styled(&mut self, style: Style, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{style}{}{style:#}", plain(line));
    }

    /// A line of ours that has styles in it already and is known to be short.
    pub fn ready(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A paragraph, every line of it this far in.
    pub fn paragraph(&mut self, indent: usize, text: &str) {
        let prefix = " ".repeat(indent);
        self.wrapped(&prefix, &prefix, text, Style::new());
    }

    /// Something that wants to be noticed.
    pub fn warning(&mut self, text: &str) {
        self.wrapped("note      ", &" ".repeat(LABEL), text, WARNING);
    }

    /// A label and what it says.
    pub fn field(&mut self, label: &str, text: &str) {
        self.field_at(0, label, text);
    }

    pub fn field_at(&mut self, indent: usize, label: &str, text: &str) {
        let prefix = " ".repeat(indent);
        let first = format!("{prefix}{label:<LABEL$}");
        let rest = " ".repeat(indent + LABEL);
        self.wrapped(&first, &rest, text, Style::new());
    }

    /// A text behind a lead of ours, every line of it in the same column.
    pub fn behind(&mut self, lead: &str, text: &str) {
        let rest = " ".repeat(lead.width());
        self.wrapped(lead, &rest, text, Style::new());
    }

    fn wrapped(&mut self, first: &str, rest: &str, text: &str, style: Style) {
        let mut prefix = first;
        for line in text.trim_end().split('\n') {
            for piece in wrap(&plain(line.trim_end()), self.width.saturating_sub(rest.width())) {
                let _ = writeln!(self.text, "{prefix}{style}{piece}{style:#}");
                prefix = rest;
            }
        }
    }
}

/// Breaks a line between words; a word that is too long is broken as well.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let width = width.max(10);
    let indent: String = line.chars().take_while(|c| *c == ' ').take(width / 2).collect();
    let mut lines = Vec::new();
    let mut current = indent.clone();
    for word in line.split_whitespace() {
        for piece in pieces(word, width - indent.len()) {
            let joint = usize::from(current.len() > indent.len());
            if current.width() + joint + piece.width() > width && current.len() > indent.len() {
                lines.push(std::mem::replace(&mut current, indent.clone()));
            }
            if current.len() > indent.len() {
                current.push(' ');
            }
            current.push_str(&piece);
        }
    }
    lines.push(current);
    lines
}

/// A word in pieces that fit.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used + wide > width {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

/// The beginning of a text, or its end, as much as fits; `...` for the rest.
pub(super) fn cut(text: &str, width: usize, keep: Keep) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(3);
    let mut used = 0;
    let mut fits = |c: &char| {
        used += unicode_width::UnicodeWidthChar::width(*c).unwrap_or(0);
        used <= room
    };
    match keep {
        Keep::Start => text.chars().take_while(&mut fits).chain("...".chars()).collect(),
        Keep::End => {
            let end: Vec<char> = text.chars().rev().take_while(&mut fits).collect();
            "...".chars().chain(end.into_iter().rev()).collect()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Start,
    End,
}

pub use blueflame_core::memory::wording::count;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_inside_long_ones() {
        for (text, width, lines) in [
            ("", 20, vec![""]),
            ("one two three", 10, vec!["one two", "three"]),
            ("  indented text here", 12, vec!["  indented", "  text here"]),
            ("abcdefghijklmnop", 10, vec!["abcdefghij", "klmnop"]),
            ("日本語日本語", 10, vec!["日本語日本", "語"]),
        ] {
            assert_eq!(wrap(text, width), lines, "{text:?}");
        }
    }

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        let mut sheet = Sheet::new(80);
        sheet.field("goal", "red \u{1b}[31m\nforged: line\rover");
        assert_eq!(sheet.finish(), "goal      red \\u{1b}[31m\n          forged: line\\rover\n");
    }

    #[test]
    fn long_texts_are_cut_at_the_end_that_matters_less() {
        assert_eq!(cut("src/auth/jwt.rs", 11, Keep::End), "...h/jwt.rs");
        assert_eq!(cut("src/auth/jwt.rs", 11, Keep::Start), "src/auth...");
        assert_eq!(cut("short", 11, Keep::Start), "short");
    }
}
