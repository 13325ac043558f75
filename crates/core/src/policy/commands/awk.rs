//! `awk`, as far as it passes text on: programs in which nothing is run, and no
//! other file is read or written.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked};

/// What a program could reach further with: pipes and redirections, which cannot
/// be told from comparisons, and these names.
const SIGNS: &[char] = &['|', '<', '>', '@', '`'];
const NAMES: &[&str] = &["system", "getline", "ARGV", "ARGC", "SYMTAB", "extension"];

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let mut program = None;
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if program.is_some() {
            walk.file(word, call)?;
        } else if text == "-F" || text == "-v" {
            value(text, words.next().map_or(Ok(""), Argument::literal)?)?;
        } else if text.starts_with("-F") || text.starts_with("-v") {
            let (option, text) = word.literal()?.split_at(2);
            value(option, text)?;
        } else if text.starts_with('-') {
            return refuse(text);
        } else {
            program = Some(plain(word.literal()?)?);
        }
    }
    Ok(())
}

/// What separates fields is only a pattern.
fn value(option: &str, text: &str) -> Walked<()> {
    if option == "-F" { Ok(()) } else { plain(text) }
}

fn plain(program: &str) -> Walked<()> {
    // `||` is no pipe.
    let text = program.replace("||", "");
    if text.contains(SIGNS) || NAMES.iter().any(|name| text.contains(name)) {
        return refuse(program);
    }
    Ok(())
}

fn refuse(what: &str) -> Walked<()> {
    deny(
        Rule::CommandFlag,
        format!(
            "`awk` with `{}` may do more than print. Leave out pipes, `<`, `>`, `system` and \
             `getline`, or use Read and Grep.",
            super::simple::shortened(what)
        ),
    )
}
