//! A command line, taken apart: the part of the shell's language that is
//! understood.
//!
//! [`parse`] gives a tree in which every simple command can be found, or says
//! what it does not understand. It never guesses: whatever bash might read in
//! another way is refused, with the plainer way to write it. Nothing is judged
//! here; a tree only says what would be run.

mod heredoc;
mod parse;
mod redirect;
mod word;

#[cfg(test)]
mod tests;

pub(super) use parse::parse;

/// The longest command line that is looked at, in bytes.
pub(super) const LONGEST: usize = 64 * 1024;

/// How deep commands may stand within each other.
const DEEPEST: usize = 24;

/// A whole command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub body: Node,
    /// What stands behind each `<<`.
    pub texts: Vec<HereText>,
}

/// One command, simple or made of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Simple(Simple),
    /// Two or more, each in a process of its own.
    Pipeline(Vec<Node>),
    /// `a && b || c`, read from the left.
    Chain {
        first: Box<Node>,
        rest: Vec<(Link, Node)>,
    },
    /// `a; b; c`.
    Sequence(Vec<Node>),
    /// `! a`.
    Not(Box<Node>),
    Subshell {
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
    Group {
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
    If {
        /// Conditions, each with what follows it.
        branches: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
        redirects: Vec<Redirect>,
    },
    /// `while` and `until`.
    Loop {
        condition: Box<Node>,
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
}

/// How a command hangs on the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    And,
    Or,
}

/// A program with its arguments, as they stand in the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// `NAME=value` in front of the command.
    pub assignments: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
}

/// Where a command reads from or writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    Read(Word),
    Write(Word),
    /// Another descriptor that is open already, or none.
    Duplicate,
    /// `<<`: one of the script's texts.
    Text(usize),
    /// `<<< word`.
    Word(Word),
}

/// Text that is given to a command on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HereText {
    /// Nothing in it is replaced.
    Literal(String),
    /// Variables in it are replaced by their values.
    Expanded(String),
}

/// One word of a command, in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub parts: Vec<Part>,
    /// An unquoted `*`, `?` or `[...]`: the shell puts file names in its place.
    pub glob: bool,
    /// Begins with an unquoted `~`.
    pub tilde: bool,
    /// Some of it was quoted, so it is no reserved word and no assignment.
    pub quoted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text without quotes.
    Bare(String),
    /// Text that was quoted.
    Quoted(String),
    /// `$name`, `${name}` or a special parameter.
    Variable { name: String, quoted: bool },
    /// `$(...)`.
    Command { body: Box<Node>, quoted: bool },
}

/// Why a line was not understood, and how to write it instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unclear {
    pub what: String,
    pub instead: &'static str,
}

impl Unclear {
    fn new(what: impl Into<String>, instead: &'static str) -> Self {
        Unclear { what: what.into(), instead }
    }
}

impl Word {
    /// The text, if nothing in the word is left to the shell.
    pub fn literal(&self) -> Option<String> {
        if self.glob || self.tilde {
            return None;
        }
        self.text()
    }

    /// The text with its wildcards, if there is nothing else to replace in it.
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Bare(piece) | Part::Quoted(piece) => text.push_str(piece),
                Part::Variable { .. } | Part::Command { .. } => return None,
            }
        }
        Some(text)
    }

    /// The text of a word that has no quotes and nothing to replace: the only
    /// form in which a reserved word counts.
    fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Bare(text)] if !self.quoted => Some(text),
            _ => None,
        }
    }
}
