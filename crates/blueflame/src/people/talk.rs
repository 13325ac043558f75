//! One question at the terminal, from the first line to the answer.
//!
//! There is no default: an empty line is no answer, and whatever is not
//! understood is asked again with the choices explained. The end of input is
//! nobody's answer, wherever it comes.

use std::path::Path;

use super::programs::{Ended, Programs};
use super::sheet::Sheet;
use super::terminal::{Heard, Terminal};
use super::{Cancel, Unanswered};
use crate::diagnostics;
use crate::narrate::plain;
use blueflame_core::yaml::Problem;

/// One of the things that can be said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub key: char,
    /// Begins with the key.
    pub word: &'static str,
    /// What follows from it.
    pub meaning: &'static str,
    pub takes: Takes,
}

/// What may follow a key on the same line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// A text, such as a reason; without it there is another question.
    Text,
}

impl Choice {
    pub const fn alone(key: char, word: &'static str, meaning: &'static str) -> Self {
        Choice { key, word, meaning, takes: Takes::Nothing }
    }

    pub const fn with_text(key: char, word: &'static str, meaning: &'static str) -> Self {
        Choice { key, word, meaning, takes: Takes::Text }
    }

    fn is_said_by(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        let mut chars = lower.chars();
        let is_key = chars.next() == Some(self.key) && chars.next().is_none();
        is_key || lower == self.word
    }
}

#[derive(Debug)]
pub(super) struct Talk<'t> {
    terminal: &'t mut Terminal,
    cancel: &'t Cancel,
    gate: String,
}

impl<'t> Talk<'t> {
    pub fn begin(terminal: &'t mut Terminal, cancel: &'t Cancel, gate: String) -> Self {
        terminal.forget_typed();
        Talk { terminal, cancel, gate }
    }

    /// Leaves the terminal tidy when the question was not answered.
    pub fn end<T>(self, answer: Result<T, Unanswered>) -> Result<T, Unanswered> {
        match &answer {
            Ok(_) | Err(Unanswered::BadDecisions(_)) => {}
            Err(Unanswered::NoAnswer { .. }) => self.terminal.show("\n"),
            Err(unanswered @ (Unanswered::Interrupted | Unanswered::Withdrawn)) => {
                self.terminal.forget_typed();
                self.terminal.show(&format!("\n{unanswered}\n"));
            }
        }
        answer
    }

    pub fn sheet(&self) -> Sheet {
        Sheet::new(self.terminal.width())
    }

    pub fn show(&mut self, page: &str) {
        self.terminal.show(page);
    }

    /// A sentence between two questions.
    pub fn say(&mut self, text: &str) {
        let mut sheet = self.sheet();
        sheet.paragraph(0, text);
        let page = sheet.finish();
        self.show(&page);
    }

    pub fn problems(&mut self, problems: &[Problem], name: &str, bytes: &[u8]) {
        if !problems.is_empty() {
            let drawn = diagnostics::render(problems, name, bytes, self.terminal.look());
            self.show(&drawn);
        }
    }

    fn line(&mut self) -> Result<String, Unanswered> {
        match self.terminal.line(self.cancel)? {
            Heard::Line(line) => Ok(line),
            Heard::End => Err(Unanswered::NoAnswer { gate: self.gate.clone() }),
        }
    }

    /// Which of these it is, by its key, and what was written behind it.
    pub fn choose(&mut self, choices: &[Choice]) -> Result<(char, String), Unanswered> {
        let prompt = format!("\n{} > ", offered(choices));
        loop {
            self.show(&prompt);
            let line = self.line()?;
            match understood(&line, choices) {
                Ok(said) => return Ok(said),
                Err(why) => {
                    let mut sheet = self.sheet();
                    sheet.paragraph(0, &why);
                    explain(&mut sheet, choices);
                    let page = sheet.finish();
                    self.show(&page);
                }
            }
        }
    }

    /// One line, trimmed; may be empty.
    pub fn ask_line(&mut self, prompt: &str) -> Result<String, Unanswered> {
        self.show(prompt);
        Ok(self.line()?.trim().to_owned())
    }

    /// A text of any number of lines up to an empty one. A text that was pasted
    /// may have empty lines in it: what is there already belongs to it.
    pub fn ask_text(&mut self, prompt: &str) -> Result<String, Unanswered> {
        self.show(prompt);
        let mut text = String::new();
        loop {
            let line = match self.line()? {
                line if line.trim().is_empty() => match self.terminal.line_at_once() {
                    Some(more) if !text.is_empty() => format!("\n{more}"),
                    Some(_) | None => break,
                },
                line => line,
            };
            text.push_str(&line);
            text.push('\n');
        }
        Ok(text.trim().to_owned())
    }

    /// Shows a long text in the person's pager, or as it is where there is
    /// none.
    pub fn page(&mut self, text: &str) -> Result<(), Unanswered> {
        let shown = if self.terminal.has_colour() {
            text.to_owned()
        } else {
            anstream::adapter::strip_str(text).to_string()
        };
        match Programs::page(self.terminal, &shown, self.cancel)? {
            Ended::Well => {}
            Ended::Badly | Ended::NotThere => self.show(text),
        }
        Ok(())
    }

    /// Opens a file in the person's editor; where that does not work, the
    /// person is asked to edit it in another window.
    pub fn edit(&mut self, file: &Path) -> Result<(), Unanswered> {
        match Programs::edit(self.terminal, file, self.cancel)? {
            Ended::Well => {}
            Ended::Badly => self.say("The editor reported a failure; the file is read as it is."),
            Ended::NotThere => {
                self.say(&format!(
                    "There is no editor to open here; set EDITOR, or edit `{}` in another window.",
                    plain(&file.display().to_string())
                ));
                self.ask_line("Press Enter when it is saved > ")?;
            }
        }
        self.terminal.forget_typed();
        Ok(())
    }
}

/// All choices on one line: `[a]pprove  [r]eject`.
fn offered(choices: &[Choice]) -> String {
    let offered = |choice: &Choice| match choice.word.strip_prefix(choice.key) {
        Some(rest) => format!("[{}]{rest}", choice.key),
        None => format!("[{}] {}", choice.key, choice.word),
    };
    choices.iter().map(offered).collect::<Vec<_>>().join("  ")
}

fn explain(sheet: &mut Sheet, choices: &[Choice]) {
    let longest = choices.iter().map(|choice| choice.word.len()).max().unwrap_or(0);
    for choice in choices {
        let Choice { key, word, meaning, .. } = choice;
        sheet.behind(&format!("  {key} or {word:<longest$}  "), meaning);
    }
}

/// The choice that a line names, or why it names none.
fn understood(line: &str, choices: &[Choice]) -> Result<(char, String), String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    if word.is_empty() {
        return Err("Please choose one of these:".to_owned());
    }
    match choices.iter().find(|choice| choice.is_said_by(word)) {
        Some(choice) if choice.takes == Takes::Nothing && !rest.is_empty() => {
            Err(format!("`{}` takes nothing behind it. Please choose one of these:", choice.word))
        }
        Some(choice) => Ok((choice.key, rest.to_owned())),
        None => Err(format!("`{}` is not one of the choices:", plain(word))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: [Choice; 3] = [
        Choice::alone('a', "approve", "land it"),
        Choice::with_text('r', "reject", "send it back"),
        Choice::alone('s', "skip", "leave it for later"),
    ];

    #[test]
    fn choices_are_known_by_key_and_by_word() {
        for (line, said) in [
            ("a", Ok(('a', ""))),
            (" APPROVE ", Ok(('a', ""))),
            ("r", Ok(('r', ""))),
            ("reject  no tests ", Ok(('r', "no tests"))),
            ("", Err("Please choose one of these:")),
            ("a b", Err("`approve` takes nothing behind it. Please choose one of these:")),
            ("yes", Err("`yes` is not one of the choices:")),
            ("ap", Err("`ap` is not one of the choices:")),
        ] {
            let found = understood(line, &CHOICES);
            let found = found.as_ref().map(|(key, rest)| (*key, rest.as_str()));
            assert_eq!(found.map_err(String::as_str), said, "{line:?}");
        }
    }

    #[test]
    fn every_choice_is_offered_and_explained() {
        assert_eq!(offered(&CHOICES), "[a]pprove  [r]eject  [s]kip");
        let mut sheet = Sheet::new(80);
        explain(&mut sheet, &CHOICES);
        insta::assert_snapshot!(sheet.finish(), @r"
          a or approve  land it
          r or reject   send it back
          s or skip     leave it for later
        ");
    }
}
