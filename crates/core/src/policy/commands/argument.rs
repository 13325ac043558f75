//! Words as arguments: what is known about them before the shell runs.

use super::super::shell::{HereText, Node, Part, Redirect, Simple, Word};
use super::super::verdict::{Rule, deny};
use super::{Directories, Walk, Walked};

/// One argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    /// With `$name` and `$(...)` for what is not known.
    pub text: String,
    pub gap: Gap,
    pub glob: bool,
    pub tilde: bool,
}

/// What of an argument is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Nothing, besides what wildcards stand for.
    None,
    /// Something that stays within the argument.
    Quoted,
    /// Something that is not quoted, so it may become several words.
    Loose,
}

impl Argument {
    pub fn known(&self) -> bool {
        self.gap == Gap::None
    }

    pub fn loose(&self) -> bool {
        self.gap == Gap::Loose
    }

    /// The text, if the command will get exactly this.
    pub fn literal(&self) -> Walked<&str> {
        if self.known() && !self.glob && !self.tilde {
            return Ok(&self.text);
        }
        deny(
            Rule::CommandArgument,
            format!("`{}` is decided by the shell only. Write it out.", self.text),
        )
    }

    /// Whether the command will get exactly this text.
    pub fn is(&self, text: &str) -> bool {
        self.literal().is_ok_and(|literal| literal == text)
    }
}

impl Walk<'_> {
    /// What is known of a word; commands in it are judged on the way.
    pub(super) fn argument(&mut self, word: &Word, from: &Directories) -> Walked<Argument> {
        let mut text = String::new();
        let mut gap = Gap::None;
        let mut glob = word.glob;
        for part in &word.parts {
            match part {
                Part::Bare(piece) | Part::Quoted(piece) => text.push_str(piece),
                Part::Variable { name, quoted } => match self.known.get(name) {
                    Some(value) if *quoted || !splits(value) => {
                        text.push_str(&value.text);
                        glob |= value.glob;
                    }
                    _ => {
                        let number = ["?", "#", "$"].contains(&name.as_str());
                        gap = gap.max(if *quoted || number { Gap::Quoted } else { Gap::Loose });
                        text.push('$');
                        text.push_str(name);
                    }
                },
                Part::Command { body, quoted } => {
                    self.node(body, from)?;
                    match self.written_out(body) {
                        Some(written) if *quoted => {
                            text.push_str(written.trim_end_matches('\n'));
                        }
                        _ => {
                            gap = gap.max(if *quoted { Gap::Quoted } else { Gap::Loose });
                            text.push_str(if is_count(body) { "$(nproc)" } else { "$(...)" });
                        }
                    }
                }
            }
        }
        Ok(Argument { text, gap, glob, tilde: word.tilde })
    }

    /// `cat <<'EOF'`, the way in which agents like to write long messages:
    /// what it prints is known.
    fn written_out(&self, body: &Node) -> Option<&str> {
        let Node::Simple(Simple { assignments, words, redirects }) = body else { return None };
        let [word] = words.as_slice() else { return None };
        let [Redirect::Text(index)] = redirects.as_slice() else { return None };
        match self.texts.get(*index)? {
            HereText::Literal(text) if assignments.is_empty() && word.literal()? == "cat" => {
                Some(text)
            }
            HereText::Literal(_) | HereText::Expanded(_) => None,
        }
    }
}

/// `nproc`, which prints a number.
fn is_count(body: &Node) -> bool {
    let Node::Simple(Simple { assignments, words, redirects }) = body else { return false };
    let alone = assignments.is_empty() && redirects.is_empty();
    alone && matches!(words.as_slice(), [word] if word.literal().is_some_and(|it| it == "nproc"))
}

/// Whether the shell would make several words of a value, or look for files.
fn splits(value: &Argument) -> bool {
    value.glob
        || value.text.is_empty()
        || value.text.contains(|c: char| c.is_whitespace() || "*?[".contains(c))
}
