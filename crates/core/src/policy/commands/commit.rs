//! `git commit`: only options that are known, and a message that fits.

use super::super::Policy;
use super::super::verdict::{Judged, Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked, git};

/// Options without a value.
const PLAIN: &[&str] = &[
    "--all",
    "--amend",
    "--no-edit",
    "--quiet",
    "--verbose",
    "--signoff",
    "--allow-empty",
    "--only",
    "--include",
    "--dry-run",
    "--short",
    "--porcelain",
    "--status",
    "--no-status",
    "--no-gpg-sign",
];

/// Letters without a value.
const LETTERS: &str = "aqvso";

/// One argument of `git commit`, understood.
enum Piece<'a> {
    /// A part of the message, and the argument it stands in.
    Message(&'a Argument, &'a str),
    /// The message comes from the standard input.
    Input,
    NoEdit,
    Amend,
    Plain,
    Path(&'a Argument),
    Unknown(&'a Argument),
}

/// Takes the arguments behind `commit` apart.
fn pieces(arguments: &[Argument]) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    let mut paths_only = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if paths_only || !text.starts_with('-') {
            found.push(Piece::Path(word));
            continue;
        }
        if text == "--" {
            paths_only = true;
            continue;
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        let piece = match name {
            "--message" => match value {
                Some(value) => Piece::Message(word, value),
                None => separate(words.next(), word),
            },
            "--file" => match value.or_else(|| words.next().map(|word| word.text.as_str())) {
                Some("-") => Piece::Input,
                _ => Piece::Unknown(word),
            },
            "--no-edit" => Piece::NoEdit,
            "--amend" => Piece::Amend,
            "--cleanup" if value.is_some() => Piece::Plain,
            name if PLAIN.contains(&name) && value.is_none() => Piece::Plain,
            name if name.starts_with("--") => Piece::Unknown(word),
            _ => bundle(word, &mut words),
        };
        found.push(piece);
    }
    found
}

/// `-am MESSAGE`: letters, of which the last may take a value.
fn bundle<'a>(word: &'a Argument, words: &mut std::slice::Iter<'a, Argument>) -> Piece<'a> {
    let letters = &word.text[1..];
    let Some(at) = letters.find(|c: char| !LETTERS.contains(c)) else {
        return if letters.is_empty() { Piece::Unknown(word) } else { Piece::Plain };
    };
    let mut rest = letters[at..].chars();
    match (rest.next(), rest.as_str()) {
        (Some('m'), "") => separate(words.next(), word),
        (Some('m'), message) => Piece::Message(word, message),
        (Some('F'), "") if words.next().is_some_and(|word| word.text == "-") => Piece::Input,
        (Some('F'), "-") => Piece::Input,
        _ => Piece::Unknown(word),
    }
}

fn separate<'a>(message: Option<&'a Argument>, option: &'a Argument) -> Piece<'a> {
    match message {
        Some(message) => Piece::Message(message, &message.text),
        None => Piece::Unknown(option),
    }
}

/// The arguments that are no message, for patterns to look at.
pub(super) fn without_messages(arguments: &[Argument]) -> Vec<&Argument> {
    let messages: Vec<&Argument> = pieces(&arguments[1..])
        .into_iter()
        .filter_map(|piece| {
            let Piece::Message(word, _) = piece else { return None };
            Some(word)
        })
        .collect();
    let is_message =
        |word: &&Argument| messages.iter().any(|message| std::ptr::eq(*message, *word));
    arguments.iter().filter(|word| !is_message(word)).collect()
}

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>, arguments: &[Argument]) -> Walked<()> {
    let mut message: Option<String> = None;
    let (mut keeps, mut amends) = (false, false);
    for piece in pieces(arguments) {
        match piece {
            Piece::Plain => {}
            Piece::NoEdit => keeps = true,
            Piece::Amend => amends = true,
            Piece::Message(word, text) => {
                if word.glob || word.tilde || word.loose() {
                    return deny(Rule::CommitMessage, "the message is not quoted. Quote it.");
                }
                let message = message.get_or_insert_default();
                if !message.is_empty() {
                    message.push_str("\n\n");
                }
                message.push_str(text);
            }
            Piece::Input => match call.input {
                Some(text) => message = Some(text.to_owned()),
                None => {
                    return deny(
                        Rule::CommitMessage,
                        "the message cannot be seen. Use `git commit -m \"...\"`.",
                    );
                }
            },
            Piece::Path(word) => {
                git::pathspec(walk, word, call)?;
                git::added(walk, word, call)?;
            }
            Piece::Unknown(word) => {
                return deny(
                    Rule::CommandFlag,
                    format!(
                        "`git commit {}` is not among the options that are used here, or is not \
                         written in full. Use `git commit -m \"...\"`.",
                        word.text
                    ),
                );
            }
        }
    }
    match message {
        Some(message) => walk.policy.judge_commit(&message).map(|_| ()),
        None if amends && keeps => Ok(()),
        None => deny(
            Rule::CommitMessage,
            "without a message git opens an editor. Use `git commit -m \"...\"`.",
        ),
    }
}

/// Characters that do something to whoever reads them.
fn steers(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\r'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Policy {
    /// Whether a commit message can be read as it is, and its first line has the
    /// form asked for.
    pub(in crate::policy) fn judge_commit(&self, message: &str) -> Judged {
        let mut lines = (1..).zip(message.split('\n'));
        if let Some((number, _)) = lines.find(|(_, line)| line.contains(steers)) {
            return deny(
                Rule::CommitMessage,
                format!(
                    "line {number} of the message has characters in it that steer a terminal or \
                     turn the text around. Write plain text."
                ),
            );
        }
        let first = message.lines().next().unwrap_or_default();
        let compiled = &self.compiled;
        let (Some(regex), Some(rule)) = (&compiled.commit, &compiled.rules.commit_format) else {
            return Ok(Rule::CommandAllowed);
        };
        if regex.is_match(first) {
            return Ok(Rule::CommandAllowed);
        }
        let example = match &rule.example {
            Some(example) => format!("Write it like `{example}`"),
            None => format!("Make it match `{}`", rule.pattern),
        };
        deny(
            Rule::CommitFormat,
            format!(
                "the first line of the message, `{}`, does not have the form that is asked for. \
                 {example}.",
                super::simple::shortened(first)
            ),
        )
    }
}
