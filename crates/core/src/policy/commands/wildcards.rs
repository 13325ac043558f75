//! Wildcards: which files the shell, or git, would put in their place.
//!
//! Patterns are read more widely than the shell reads them, so that no file it
//! finds is missed.

use regex::Regex;

use super::super::paths::User;
use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked};

/// How many files a pattern may stand for.
const MOST_FILES: usize = 5000;

pub(super) fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl Walk<'_> {
    /// Judges every file that an unquoted pattern stands for.
    pub(super) fn wild_file(&self, word: &Argument, call: &Call<'_>) -> Walked<()> {
        if !word.known() || word.tilde {
            return word.literal().map(|_| ());
        }
        if word.text.starts_with('-') || self.could_be_an_option(word, call)? {
            return deny(
                Rule::CommandArgument,
                format!("`{0}` could become an option. Write `./{0}`.", word.text),
            );
        }
        self.pattern(&word.text)?;
        for cwd in call.from {
            self.look()?;
            self.policy.judge_glob(&word.text, cwd, cwd, self.ground)?;
            for path in self.matches(&word.text, cwd)? {
                self.policy.judge_read(&path, cwd, self.ground, User::Shell)?;
            }
        }
        Ok(())
    }

    /// Whether a file is called like an option that the command has: there is one,
    /// or the line could make one.
    fn could_be_an_option(&self, word: &Argument, call: &Call<'_>) -> Walked<bool> {
        // These have no option that does more than look, or show text.
        if let "ls" | "echo" | "printf" = call.program {
            return Ok(false);
        }
        if !word.text.starts_with(['*', '?', '[']) {
            return Ok(false);
        }
        for cwd in call.from {
            let like_one = format!("{cwd}/-");
            if self.matches(&word.text, cwd)?.iter().any(|path| path.starts_with(&like_one)) {
                return Ok(true);
            }
        }
        Ok(!self.trust.names)
    }

    /// Refuses patterns that are after hidden files, or after secrets.
    pub(super) fn pattern(&self, pattern: &str) -> Walked<()> {
        let hidden = |name: &str| name.starts_with('.') && is_wild(name);
        if pattern.split('/').any(hidden) {
            return deny(
                Rule::CommandArgument,
                format!("`{pattern}` stands for hidden files. Write their names out."),
            );
        }
        // What fits nothing goes to the program as it is written.
        if pattern.contains('\\') {
            return deny(
                Rule::PathStrange,
                format!("`{pattern}` has a backslash in it. Use plain names."),
            );
        }
        if pattern.contains('[') && globset::Glob::new(pattern).is_err() {
            return deny(
                Rule::CommandArgument,
                format!("`{pattern}` is read as a pattern by the shell. Quote it."),
            );
        }
        if self.policy.seeks_secrets(pattern) {
            return deny(
                Rule::PathSecret,
                format!("`{pattern}` looks for secrets. Name other files."),
            );
        }
        Ok(())
    }

    /// The paths that may be meant by a pattern; what follows a wildcard need
    /// not be there.
    pub(super) fn matches(&self, pattern: &str, cwd: &str) -> Walked<Vec<String>> {
        let start = if pattern.starts_with('/') { "" } else { cwd };
        let mut paths = vec![start.to_owned()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            if !is_wild(part) {
                for path in &mut paths {
                    *path = format!("{path}/{part}");
                }
                continue;
            }
            let Ok(wide) = Regex::new(&widened(part)) else {
                return deny(Rule::CommandArgument, "the wildcards are not understood here.");
            };
            let mut next = Vec::new();
            for path in &paths {
                let names = self.ground.names_in(path);
                // Hidden files are only meant by patterns that say so.
                let meant = |name: &&String| !name.starts_with('.') && wide.is_match(name);
                next.extend(names.iter().filter(meant).map(|name| format!("{path}/{name}")));
                if next.len() > MOST_FILES {
                    return deny(
                        Rule::CommandTooLong,
                        format!("`{pattern}` stands for too many files. Name a directory."),
                    );
                }
            }
            paths = next;
        }
        Ok(paths)
    }
}

/// A regular expression for one name. What is in brackets, and behind them, may
/// be anything; a `?` may be a part of a character.
fn widened(pattern: &str) -> String {
    let mut wide = String::from("(?s)^");
    for c in pattern.chars() {
        match c {
            '*' => wide.push_str(".*"),
            '?' => wide.push_str(".?"),
            '[' => {
                wide.push_str(".*");
                break;
            }
            c => wide.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    wide.push('$');
    wide
}
