//! One simple command: its variables, its redirections, its program.

use regex::Regex;

use super::super::paths::some_of;
use super::super::shell::{HereText, Redirect, Simple};
use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::is_own_name;
use super::{After, Directories, Walk, Walked, filters, git, grep, hints, manners, programs};
use crate::ids::Role;

/// Variables that may be set for a command: they change how it talks, not
/// what it does.
const HARMLESS_VARIABLES: &[&str] = &[
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "RUST_BACKTRACE",
    "LANG",
    "LC_ALL",
    "TZ",
    "DEBUG",
    "COLUMNS",
    "TERM",
    "CARGO_TERM_COLOR",
    "CGO_ENABLED",
    "CLICOLOR",
    "GOARCH",
    "GOMAXPROCS",
    "GOOS",
    "GOTRACEBACK",
    "INSTA_UPDATE",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_LOG",
    "RUST_TEST_THREADS",
];

/// How many words a command may have.
const MOST_WORDS: usize = 1000;

/// How often a pattern is tried within words before it counts as found.
const MOST_TRIES: usize = 256;

/// What a program is called with.
pub(super) struct Call<'c> {
    pub program: &'c str,
    /// Without the program.
    pub arguments: &'c [Argument],
    pub from: &'c Directories,
    /// What the program reads from its standard input, if that is known.
    pub input: Option<&'c str>,
}

impl Walk<'_> {
    pub(super) fn simple(&mut self, simple: &Simple, from: &Directories) -> Walked<After> {
        self.step()?;
        for (name, word) in &simple.assignments {
            let value = self.argument(word, from)?;
            // What it holds counts as unknown wherever it is used.
            if simple.words.is_empty() && is_own_name(name) && !self.known.contains_key(name) {
                continue;
            }
            if simple.words.is_empty() || !HARMLESS_VARIABLES.contains(&name.as_str()) {
                return deny(
                    Rule::CommandEnvironment,
                    format!(
                        "setting `{name}` could change what commands do. Leave it out; in front \
                         of a command stand only such as CI, NO_COLOR, NODE_ENV, RUST_LOG."
                    ),
                );
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || " _.,:=*+-/@%".contains(c);
            let path = value.text.starts_with([':', '.'])
                || value.text.contains("..")
                || value.text.contains('/') && name != "TZ";
            let plain = value.known() && !value.tilde && value.text.chars().all(plain);
            if !plain || path || value.text.starts_with('/') {
                return deny(
                    Rule::CommandEnvironment,
                    format!("the value of `{name}` is not plain. Write a plain value, or none."),
                );
            }
        }
        self.redirects(&simple.redirects, from)?;
        if simple.words.is_empty() && !simple.assignments.is_empty() {
            return Ok(After::unchanged(from));
        }
        if simple.words.is_empty() {
            return deny(Rule::CommandSyntax, "a redirection stands alone. Write a command.");
        }
        if simple.words.len() > MOST_WORDS {
            return deny(
                Rule::CommandTooLong,
                "the command has too many words. Use several calls.",
            );
        }
        let mut arguments = Vec::new();
        for word in &simple.words {
            arguments.push(self.argument(word, from)?);
        }
        let input = self.only_text(&simple.redirects);
        self.program(&arguments, input, from)
    }

    /// The text that a command reads, if it is given nothing else to read.
    fn only_text(&self, redirects: &[Redirect]) -> Option<&str> {
        let mut inputs = redirects.iter().filter(|redirect| match redirect {
            Redirect::Read(_) | Redirect::Text(_) | Redirect::Word(_) => true,
            Redirect::Write(_) | Redirect::Duplicate => false,
        });
        let (Some(Redirect::Text(index)), None) = (inputs.next(), inputs.next()) else {
            return None;
        };
        let (HereText::Literal(text) | HereText::Expanded(text)) = self.texts.get(*index)?;
        Some(text)
    }

    /// Judges a program with its arguments.
    fn program(
        &self,
        words: &[Argument],
        input: Option<&str>,
        from: &Directories,
    ) -> Walked<After> {
        let Some((program, arguments)) = words.split_first() else {
            return deny(Rule::CommandSyntax, "a command is missing. Write one.");
        };
        let program = program.literal()?;
        // It changes nothing here: nobody reads page by page.
        if program == "git" && arguments.first().is_some_and(|word| word.is("--no-pager")) {
            let plain: Vec<Argument> = [&words[..1], &words[2..]].concat();
            return self.program(&plain, input, from);
        }
        // The same as `( cd DIR && git ... )`.
        if program == "git" && arguments.len() > 2 && arguments[0].is("-C") {
            let there = self.change_directory(&arguments[1..2], from)?.success;
            let plain: Vec<Argument> = [&words[..1], &words[3..]].concat();
            self.program(&plain, input, &there)?;
            return Ok(After::unchanged(from));
        }
        let call = Call { program, arguments, from, input };
        self.blocked(&call, words)?;
        if program == "cd" {
            return self.change_directory(arguments, from);
        }
        if let "break" | "continue" = program {
            return self.leaves_loop(arguments, from);
        }
        if program == "timeout" {
            let timed = programs::timed(arguments)?;
            if timed.first().is_some_and(|word| word.is("cd")) {
                return deny(Rule::CommandArgument, "`timeout cd` goes nowhere. Use `cd` alone.");
            }
            return self.program(timed, input, from);
        }
        if manners::are_good(program, arguments) {
            return Ok(After::unchanged(from));
        }
        if let Some(why) = hints::never(program) {
            return deny(Rule::CommandNotAllowed, format!("`{program}` {why}."));
        }
        if filters::judge(self, &call)? {
            return Ok(After::unchanged(from));
        }
        self.listed(words)?;
        match program {
            "git" => git::judge(self, &call)?,
            _ => programs::judge(self, &call)?,
        }
        Ok(After::unchanged(from))
    }

    /// Whether a blocked pattern is found in the command. What is only text to
    /// the command, such as a commit message, does not count.
    fn blocked(&self, call: &Call<'_>, words: &[Argument]) -> Walked<()> {
        let mut text = call.program.to_owned();
        for argument in spoken(call) {
            text.push(' ');
            text.push_str(&argument.text);
        }
        let patterns = &self.policy.compiled.blocked_patterns;
        // What these are given is never run.
        let looks =
            call.program == "git" || call.program == "cd" || filters::is_filter(call.program);
        let is_found = if looks { is_found_in_front } else { is_found };
        match patterns.iter().find(|pattern| is_found(pattern, &text)) {
            None => Ok(()),
            Some(pattern) => deny(
                Rule::CommandBlocked,
                format!(
                    "the blocked pattern `{}` is found in `{}`. {}.",
                    pattern.as_str(),
                    shortened(&text),
                    hints::instead(words).unwrap_or("Go on without it")
                ),
            ),
        }
    }

    /// Whether a program is listed, whatever it is called with.
    pub(super) fn is_listed(&self, program: &str) -> bool {
        let listed = &self.policy.compiled.allowed_commands;
        listed.iter().any(|tokens| tokens.len() == 1 && tokens[0] == program)
    }

    /// Whether a listed command is a beginning of this one, word by word.
    fn listed(&self, words: &[Argument]) -> Walked<()> {
        let compiled = &self.policy.compiled;
        let begins = |listed: &Vec<String>| {
            listed.len() <= words.len()
                && listed.iter().zip(words).all(|(token, word)| word.is(token))
        };
        let shown = || shortened(&shown(words));
        match compiled.rules.role {
            Role::Worker | Role::Merger => {
                if compiled.allowed_commands.iter().any(begins) {
                    return Ok(());
                }
                let hint = hints::instead(words).map_or_else(
                    || format!("Use {}", some_of(&compiled.rules.allowed_commands)),
                    str::to_owned,
                );
                deny(Rule::CommandNotAllowed, format!("`{}` is not allowed. {hint}.", shown()))
            }
            Role::Planner => {
                let looks = git::only_looks(words);
                if looks && compiled.allowed_commands.iter().any(begins) {
                    return Ok(());
                }
                deny(
                    Rule::CommandRole,
                    format!("`{}` may do more than look. Plan with Read, Glob and Grep.", shown()),
                )
            }
            Role::Validator => {
                let whole = |listed: &Vec<String>| listed.len() == words.len() && begins(listed);
                if compiled.diagnostics.iter().any(whole) {
                    return Ok(());
                }
                let commands = some_of(&compiled.rules.diagnostics);
                deny(
                    Rule::CommandRole,
                    format!("`{}` is no diagnostic command. Run only {commands}.", shown()),
                )
            }
        }
    }
}

/// The arguments that are more than text to the command.
fn spoken<'c>(call: &Call<'c>) -> Vec<&'c Argument> {
    match call.program {
        "echo" | "printf" | "true" | "false" | ":" => Vec::new(),
        "grep" => grep::files(call.arguments),
        "git" => git::without_messages(call.arguments),
        _ => call.arguments.iter().collect(),
    }
}

/// Whether a blocked pattern is found in a command: from its beginning on, from
/// an option on, or as one or more whole words. `ssh` is found in `ssh host` and
/// `xargs ssh`, and not in `cat src/ssh/a.go`.
pub(crate) fn is_found(pattern: &Regex, text: &str) -> bool {
    finds(pattern, text, counts)
}

/// The same for a command whose words are not run: from its beginning on, or from
/// an option on. `docker` is not found in `ls docker`.
fn is_found_in_front(pattern: &Regex, text: &str) -> bool {
    finds(pattern, text, |text, start, end| {
        let option = text[start..end].trim_start().starts_with('-');
        counts(text, start, end) && (start == 0 || option)
    })
}

fn finds(pattern: &Regex, text: &str, counts: impl Fn(&str, usize, usize) -> bool) -> bool {
    let mut at = 0;
    for _ in 0..MOST_TRIES {
        let found = if at <= text.len() { pattern.find_at(text, at) } else { None };
        let Some(found) = found else { return false };
        if counts(text, found.start(), found.end()) {
            return true;
        }
        at = found.start() + text[found.start()..].chars().next().map_or(1, char::len_utf8);
    }
    true
}

/// Whether a match is more than a part of a path or a name.
fn counts(text: &str, start: usize, end: usize) -> bool {
    let before = text[..start].chars().next_back();
    let matched = &text[start..end];
    let opens = before.is_none_or(char::is_whitespace) || matched.starts_with(char::is_whitespace);
    let closes = text[end..].chars().next().is_none_or(char::is_whitespace)
        || matched.ends_with(char::is_whitespace);
    let option = matched.trim_start().starts_with('-');
    opens && (before.is_none() || option || closes)
}

fn shown(words: &[Argument]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

/// The beginning of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String =
        text.chars().take(80).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        short.push('…');
    }
    short
}
