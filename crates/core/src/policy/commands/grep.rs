//! `grep`: which of its words are options, which one is the pattern, and which
//! are files.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked};

/// Letters without a value.
const LETTERS: &str = "EFGPiyvwxchnHlLqsorIabTuUzZV0123456789";

/// Letters with a value.
const VALUED_LETTERS: &str = "ABCmedD";

/// Long options, in full.
const LONG: &[&str] = &[
    "extended-regexp",
    "fixed-strings",
    "basic-regexp",
    "perl-regexp",
    "ignore-case",
    "no-ignore-case",
    "invert-match",
    "word-regexp",
    "line-regexp",
    "count",
    "color",
    "colour",
    "files-without-match",
    "files-with-matches",
    "only-matching",
    "quiet",
    "silent",
    "no-messages",
    "byte-offset",
    "with-filename",
    "no-filename",
    "initial-tab",
    "line-number",
    "null",
    "line-buffered",
    "null-data",
    "text",
    "recursive",
    "binary",
    "help",
    "version",
];

/// Long options with a value.
const VALUED: &[&str] = &[
    "regexp",
    "max-count",
    "after-context",
    "before-context",
    "context",
    "label",
    "binary-files",
    "devices",
    "directories",
    "exclude",
    "exclude-dir",
    "include",
];

/// What `grep` was asked for.
#[derive(Default)]
struct Asked<'c> {
    files: Vec<&'c Argument>,
    /// Patterns of the files to look into.
    include: Vec<&'c str>,
}

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let asked = asked(call.arguments)?;
    for glob in asked.include {
        if walk.policy.seeks_secrets(glob) {
            return deny(
                Rule::PathSecret,
                format!("`{glob}` looks for secrets. Search other files."),
            );
        }
    }
    for word in asked.files.into_iter().filter(|word| word.text != "-") {
        walk.file(word, call)?;
    }
    Ok(())
}

/// The files that are read, for patterns to look at; if they cannot be told, all
/// the words.
pub(super) fn files(arguments: &[Argument]) -> Vec<&Argument> {
    asked(arguments).map_or_else(|_| arguments.iter().collect(), |asked| asked.files)
}

fn asked(arguments: &[Argument]) -> Walked<Asked<'_>> {
    let mut asked = Asked::default();
    let mut explicit = false;
    let mut words = arguments.iter();
    let mut options = true;
    while let Some(word) = words.next() {
        if !word.known() {
            return deny(
                Rule::CommandArgument,
                format!("`{}` is decided by the shell only. Quote it.", word.text),
            );
        }
        let Some(option) = word.text.strip_prefix('-').filter(|rest| options && !rest.is_empty())
        else {
            asked.files.push(word);
            continue;
        };
        if option == "-" {
            options = false;
        } else if let Some(long) = option.strip_prefix('-') {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            if VALUED.contains(&name) {
                let value = match value {
                    Some(value) => value,
                    None => words.next().map_or(Ok(""), Argument::literal)?,
                };
                explicit |= name == "regexp";
                if name == "include" {
                    asked.include.push(value);
                }
            } else if !LONG.contains(&name) {
                return refuse(&word.text);
            }
        } else {
            let valued = option.find(|c| !LETTERS.contains(c));
            let Some(at) = valued else { continue };
            let letter = option[at..].chars().next().unwrap_or_default();
            if !VALUED_LETTERS.contains(letter) {
                return refuse(&word.text);
            }
            explicit |= letter == 'e';
            if at + 1 == option.len() {
                words.next().map_or(Ok(""), Argument::literal)?;
            }
        }
    }
    if !explicit && !asked.files.is_empty() {
        // Of several names in its place, all but the first would be files.
        if asked.files.remove(0).glob {
            return deny(
                Rule::CommandArgument,
                "the pattern of `grep` is taken for file names by the shell. Quote it.",
            );
        }
    }
    Ok(asked)
}

fn refuse<T>(option: &str) -> Walked<T> {
    deny(
        Rule::CommandFlag,
        format!(
            "`grep {option}` is not used here: options are written in full, links are not \
             followed, and patterns are not read from files. Use -r and -e."
        ),
    )
}
