//! Words: quotes, escapes, variables and `$(...)`.

use super::parse::Parser;
use super::{Node, Part, Unclear, Word};

type Read<T> = Result<T, Unclear>;

/// What ends a word unless it is quoted.
const BREAKS: &[char] = &[' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];

/// What collects the pieces of one word.
#[derive(Default)]
struct Pieces {
    word: Word,
    bare: String,
}

impl Pieces {
    fn bare_is_done(&mut self) {
        if !self.bare.is_empty() {
            self.word.parts.push(Part::Bare(std::mem::take(&mut self.bare)));
        }
    }

    fn push(&mut self, part: Part) {
        self.bare_is_done();
        self.word.parts.push(part);
    }
}

impl Parser<'_> {
    /// The word that begins here; the caller has seen that one does.
    pub(super) fn word(&mut self) -> Read<Word> {
        let mut pieces = Pieces::default();
        let mut wild = Wild::default();
        while let Some(c) = self.peek() {
            match c {
                c if BREAKS.contains(&c) => break,
                '\\' => {
                    self.next();
                    match self.next() {
                        None => return Err(Unclear::new("a backslash at the end", PLAIN)),
                        Some('\n') => self.joined_lines()?,
                        Some(c) => {
                            pieces.word.quoted = true;
                            pieces.push(Part::Quoted(c.to_string()));
                        }
                    }
                }
                '\'' => {
                    self.next();
                    let text = self.single_quoted()?;
                    pieces.word.quoted = true;
                    pieces.push(Part::Quoted(text));
                }
                '"' => {
                    self.next();
                    pieces.bare_is_done();
                    pieces.word.quoted = true;
                    self.double_quoted(&mut pieces)?;
                }
                '`' => return Err(backtick()),
                '$' => {
                    self.next();
                    match self.dollar(false)? {
                        Some(part) => pieces.push(part),
                        None => pieces.bare.push('$'),
                    }
                }
                c => {
                    self.next();
                    if c == '~' && pieces.word.parts.is_empty() && pieces.bare.is_empty() {
                        pieces.word.tilde = true;
                    }
                    wild.sees(c);
                    pieces.bare.push(c);
                }
            }
        }
        if self.peek() == Some('(') {
            return Err(Unclear::new(
                "a `(` right behind a word",
                "quote it, or leave functions and extended patterns away",
            ));
        }
        if wild.braces {
            return Err(Unclear::new("a list in braces", "write every word out"));
        }
        pieces.bare_is_done();
        self.names_no_descriptor(&pieces.word)?;
        pieces.word.glob = wild.glob;
        Ok(pieces.word)
    }

    /// `{name}>file`: bash keeps the descriptor in a variable, and the word is
    /// no argument.
    fn names_no_descriptor(&self, word: &Word) -> Read<()> {
        let named = word.bare().is_some_and(|text| text.starts_with('{') && text.ends_with('}'));
        if named && self.rest().starts_with(['<', '>']) {
            return Err(Unclear::new(
                "a descriptor that is named in braces",
                "use plain redirections, such as 2>&1",
            ));
        }
        Ok(())
    }

    fn single_quoted(&mut self) -> Read<String> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(unclosed('\'')),
                Some('\'') => return Ok(text),
                Some(c) => {
                    self.inside_quotes(c)?;
                    text.push(c);
                }
            }
        }
    }

    fn double_quoted(&mut self, pieces: &mut Pieces) -> Read<()> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(unclosed('"')),
                Some('"') => break,
                Some('`') => return Err(backtick()),
                Some('\\') => match self.next() {
                    None => return Err(unclosed('"')),
                    Some('\n') => self.joined_lines()?,
                    Some(c @ ('$' | '`' | '"' | '\\')) => text.push(c),
                    Some(c) => {
                        self.inside_quotes(c)?;
                        text.push('\\');
                        text.push(c);
                    }
                },
                Some('$') => match self.dollar(true)? {
                    Some(part) => {
                        pieces.word.parts.push(Part::Quoted(std::mem::take(&mut text)));
                        pieces.word.parts.push(part);
                    }
                    None => text.push('$'),
                },
                Some(c) => {
                    self.inside_quotes(c)?;
                    text.push(c);
                }
            }
        }
        pieces.word.parts.push(Part::Quoted(text));
        Ok(())
    }

    /// A line break within quotes, while the text of a `<<` is still to come,
    /// is read in several ways.
    fn inside_quotes(&self, c: char) -> Read<()> {
        if c == '\n' && self.awaits_text() { Err(text_pending()) } else { Ok(()) }
    }

    fn joined_lines(&self) -> Read<()> {
        if self.awaits_text() { Err(text_pending()) } else { Ok(()) }
    }

    /// What follows a `$`; `None` if it stands for itself.
    fn dollar(&mut self, quoted: bool) -> Read<Option<Part>> {
        // The shell joins lines before it looks at what follows the `$`.
        let joined = |rest: &str| rest.starts_with("\\\n") || rest.starts_with("(\\\n");
        if joined(self.rest()) {
            return Err(Unclear::new("a joined line behind `$`", "write it on one line"));
        }
        let part = match self.peek() {
            Some('(') => {
                self.next();
                if self.peek() == Some('(') {
                    return Err(Unclear::new("arithmetic `$((...))`", "write the number itself"));
                }
                if self.awaits_text() {
                    return Err(text_pending());
                }
                let texts = self.texts.len();
                let body = self.substitution()?;
                self.expect(')')?;
                // Bash cannot read every text within a substitution, and what it
                // reads instead is anybody's guess.
                if self.texts.len() > texts && !matches!(body, Node::Simple(_)) {
                    return Err(Unclear::new(
                        "a `<<` among other commands in `$(...)`",
                        "put nothing but `cat <<'EOF'` into it",
                    ));
                }
                Part::Command { body: Box::new(body), quoted }
            }
            Some('{') => {
                self.next();
                // How the commands of a pipe ended, the only list that is known.
                if let Some(number) = ["PIPESTATUS[0]}", "PIPESTATUS[1]}", "PIPESTATUS[@]}"]
                    .iter()
                    .position(|list| self.takes(list))
                {
                    let name = if number < 2 { "?" } else { "@" };
                    return Ok(Some(Part::Variable { name: name.to_owned(), quoted }));
                }
                let name = self.name();
                if name.is_empty() || self.next() != Some('}') {
                    return Err(Unclear::new(
                        "an expansion `${...}` that is more than a name",
                        "write the value itself",
                    ));
                }
                Part::Variable { name, quoted }
            }
            Some('[') => return Err(Unclear::new("arithmetic `$[...]`", "write the number")),
            Some('\'' | '"') if !quoted => {
                return Err(Unclear::new("a quote behind `$`", "use plain quotes"));
            }
            Some(c) if c.is_ascii_digit() || "?#$!@*-".contains(c) => {
                self.next();
                // Looking for the end of quotes, bash takes this for `$(...)`.
                if c == '$' && matches!(self.peek(), Some('(' | '{' | '[')) {
                    return Err(Unclear::new("a bracket behind `$$`", "write the value itself"));
                }
                Part::Variable { name: c.to_string(), quoted }
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                Part::Variable { name: self.name(), quoted }
            }
            _ => return Ok(None),
        };
        Ok(Some(part))
    }

    /// Letters, digits and `_`, not beginning with a digit; may be empty.
    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            let fits =
                c == '_' || c.is_ascii_alphabetic() || !name.is_empty() && c.is_ascii_digit();
            if !fits {
                break;
            }
            name.push(c);
            self.next();
        }
        name
    }
}

/// Which of the characters that stand for others came by, unquoted.
#[derive(Default)]
struct Wild {
    glob: bool,
    braces: bool,
    /// What of `[` and `{` came by.
    opened: [bool; 2],
    last: Option<char>,
}

impl Wild {
    fn sees(&mut self, c: char) {
        match c {
            '*' | '?' => self.glob = true,
            '[' => self.opened[0] = true,
            '{' => self.opened[1] = true,
            ']' if self.opened[0] => self.glob = true,
            ',' if self.opened[1] => self.braces = true,
            '.' if self.opened[1] && self.last == Some('.') => self.braces = true,
            _ => {}
        }
        self.last = Some(c);
    }
}

const PLAIN: &str = "write the command on one line, with plain quotes";

fn unclosed(quote: char) -> Unclear {
    Unclear::new(format!("a quote {quote} that is not closed"), PLAIN)
}

fn backtick() -> Unclear {
    Unclear::new("a backtick", "put text into single quotes, and commands into calls of their own")
}

fn text_pending() -> Unclear {
    Unclear::new(
        "a `<<` that is followed by a quote, a substitution or a line break in them",
        "put `<<'EOF'` at the end of its line",
    )
}
