//! The grammar: lists, pipes, groups, `if`, `while`, `for`, and redirections.

use super::heredoc::Pending;
use super::{DEEPEST, HereText, Link, Node, Part, Script, Simple, Unclear, Word};

type Read<T> = Result<T, Unclear>;

/// Words that mean something to the shell where a command could begin.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac",
    "select", "function", "coproc", "{", "}", "!", "[[", "]]", "time", "in",
];

/// Takes a command line apart. The caller has limited its length.
pub(in crate::policy) fn parse(line: &str) -> Result<Script, Unclear> {
    let mut parser = Parser {
        line,
        at: 0,
        depth: 0,
        in_substitution: false,
        pending: Vec::new(),
        texts: Vec::new(),
    };
    let body = parser.list(&[])?;
    if parser.peek().is_some() {
        return Err(unexpected(parser.peek()));
    }
    parser.has_all_texts()?;
    Ok(Script { body, texts: parser.texts })
}

#[derive(Debug)]
pub(super) struct Parser<'l> {
    pub(super) line: &'l str,
    pub(super) at: usize,
    depth: usize,
    /// Somewhere within `$(...)`.
    pub(super) in_substitution: bool,
    pub(super) pending: Vec<Pending>,
    /// One for each `<<` so far; empty until its text has been read.
    pub(super) texts: Vec<HereText>,
}

impl<'l> Parser<'l> {
    pub(super) fn rest(&self) -> &'l str {
        &self.line[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn takes(&mut self, text: &str) -> bool {
        let fits = self.rest().starts_with(text);
        if fits {
            self.at += text.len();
        }
        fits
    }

    pub(super) fn expect(&mut self, c: char) -> Read<()> {
        if self.peek() == Some(c) {
            self.next();
            return Ok(());
        }
        Err(Unclear::new(format!("a missing `{c}`"), "close what was opened"))
    }

    /// A whole line without its end.
    pub(super) fn line(&mut self) -> Option<&'l str> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let end = rest.find('\n').unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        Some(&rest[..end])
    }

    pub(super) fn awaits_text(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What stands in `$(...)`, up to the closing bracket.
    pub(super) fn substitution(&mut self) -> Read<Node> {
        let outside = std::mem::replace(&mut self.in_substitution, true);
        let node = self.list(&[")"])?;
        self.has_all_texts()?;
        self.in_substitution = outside;
        Ok(node)
    }

    fn has_all_texts(&self) -> Read<()> {
        if self.awaits_text() {
            return Err(Unclear::new("a `<<` without its text", "put the text on the next lines"));
        }
        Ok(())
    }

    /// Blanks, joined lines and comments.
    pub(super) fn blanks(&mut self) -> Read<()> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.next();
                }
                Some('\\') if self.rest().starts_with("\\\n") => {
                    if self.awaits_text() {
                        return Err(Unclear::new("a joined line behind `<<`", "use one line"));
                    }
                    self.at += 2;
                }
                Some('#') => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += end;
                }
                _ => return Ok(()),
            }
        }
    }

    fn line_break(&mut self) -> Read<()> {
        self.expect('\n')?;
        for pending in std::mem::take(&mut self.pending) {
            self.texts[pending.index] = self.text_of(&pending)?;
        }
        Ok(())
    }

    /// Blanks and line breaks.
    fn space(&mut self) -> Read<()> {
        loop {
            self.blanks()?;
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.line_break()?;
        }
    }

    /// Commands up to one of these closing words, which stays unread.
    fn list(&mut self, ends: &[&str]) -> Read<Node> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Unclear::new("commands nested too deep", "use several calls"));
        }
        let mut nodes = Vec::new();
        loop {
            self.space()?;
            if self.peek().is_none() || self.stands_at(ends) {
                break;
            }
            nodes.push(self.chain()?);
            self.blanks()?;
            match self.peek() {
                // `;;`, `;&` and `;;&` are words of `case`.
                Some(';') if [";;", ";&"].iter().any(|word| self.rest().starts_with(word)) => {
                    return Err(unexpected(Some(';')));
                }
                Some(';') => {
                    self.next();
                }
                Some('\n') | None => {}
                Some('&') => {
                    return Err(Unclear::new(
                        "`&`, which leaves a command running in the background",
                        "run it in the foreground",
                    ));
                }
                Some(_) if self.stands_at(ends) => {}
                other => return Err(unexpected(other)),
            }
            if self.peek() == Some('\n') {
                self.line_break()?;
            }
        }
        if nodes.is_empty() {
            return Err(Unclear::new("an empty command", "write the command to run"));
        }
        self.depth -= 1;
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) })
    }

    fn stands_at(&self, ends: &[&str]) -> bool {
        ends.iter().any(|end| {
            self.rest().strip_prefix(end).is_some_and(|rest| {
                *end == ")" || rest.chars().next().is_none_or(|c| " \t\n;&|<>()".contains(c))
            })
        })
    }

    fn chain(&mut self) -> Read<Node> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks()?;
            let link = if self.takes("&&") {
                Link::And
            } else if self.rest().starts_with("||") {
                self.at += 2;
                Link::Or
            } else {
                break;
            };
            self.space()?;
            rest.push((link, self.pipeline()?));
        }
        Ok(if rest.is_empty() { first } else { Node::Chain { first: Box::new(first), rest } })
    }

    fn pipeline(&mut self) -> Read<Node> {
        self.blanks()?;
        let mut negated = false;
        loop {
            if self.keyword("!") {
                negated = !negated;
            } else if self.keyword("time") {
                self.blanks()?;
                if self.keyword("-p") {}
            } else {
                break;
            }
            self.blanks()?;
        }
        let mut nodes = vec![self.command()?];
        loop {
            self.blanks()?;
            if self.rest().starts_with("||") || !self.takes("|") {
                break;
            }
            self.takes("&");
            self.space()?;
            nodes.push(self.command()?);
        }
        let node = if nodes.len() == 1 { nodes.remove(0) } else { Node::Pipeline(nodes) };
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    /// Reads a word that is exactly this, without quotes.
    fn keyword(&mut self, word: &str) -> bool {
        if self.stands_at(&[word]) {
            self.at += word.len();
            return true;
        }
        false
    }

    fn require(&mut self, word: &'static str) -> Read<()> {
        self.space()?;
        if self.keyword(word) {
            return Ok(());
        }
        Err(Unclear::new(format!("a missing `{word}`"), "close what was opened"))
    }

    fn command(&mut self) -> Read<Node> {
        self.blanks()?;
        if self.peek() == Some('(') {
            self.next();
            if self.peek() == Some('(') {
                return Err(Unclear::new("arithmetic `((...))`", "write the number itself"));
            }
            let body = Box::new(self.list(&[")"])?);
            self.expect(')')?;
            return Ok(Node::Subshell { body, redirects: self.redirects()? });
        }
        if self.keyword("{") {
            let body = Box::new(self.list(&["}"])?);
            self.require("}")?;
            return Ok(Node::Group { body, redirects: self.redirects()? });
        }
        if self.keyword("if") {
            return self.conditional();
        }
        if self.keyword("while") || self.keyword("until") {
            let condition = Box::new(self.list(&["do"])?);
            let body = Box::new(self.loop_body()?);
            return Ok(Node::Loop { condition, body, redirects: self.redirects()? });
        }
        if self.keyword("for") {
            return self.for_each();
        }
        self.simple()
    }

    fn conditional(&mut self) -> Read<Node> {
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.list(&["then"])?;
            self.require("then")?;
            branches.push((condition, self.list(&["elif", "else", "fi"])?));
            self.space()?;
            if self.keyword("elif") {
                continue;
            }
            if self.keyword("else") {
                otherwise = Some(Box::new(self.list(&["fi"])?));
            }
            self.require("fi")?;
            break;
        }
        Ok(Node::If { branches, otherwise, redirects: self.redirects()? })
    }

    fn loop_body(&mut self) -> Read<Node> {
        self.require("do")?;
        let body = self.list(&["done"])?;
        self.require("done")?;
        Ok(body)
    }

    fn for_each(&mut self) -> Read<Node> {
        self.blanks()?;
        let name = self.name();
        self.blanks()?;
        if name.is_empty() || !self.keyword("in") {
            return Err(Unclear::new("a `for` without a name and `in`", "use: for f in a b; do"));
        }
        let mut words = Vec::new();
        loop {
            self.blanks()?;
            match self.peek() {
                Some(';') => {
                    self.next();
                    break;
                }
                Some('\n') => break,
                None | Some('&' | '|' | '<' | '>' | '(' | ')') => {
                    return Err(unexpected(self.peek()));
                }
                Some(_) => words.push(self.word()?),
            }
        }
        let body = Box::new(self.loop_body()?);
        Ok(Node::For { name, words, body, redirects: self.redirects()? })
    }

    fn simple(&mut self) -> Read<Node> {
        let mut simple = Simple::default();
        loop {
            self.blanks()?;
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => return Err(unexpected(Some('('))),
                Some(_) => {}
            }
            let word = self.word()?;
            if simple.words.is_empty() {
                if let Some(assignment) = assignment(&word) {
                    simple.assignments.push(assignment);
                    continue;
                }
                let reserved = word.bare().filter(|bare| RESERVED.contains(bare));
                if let Some(reserved) = reserved {
                    let instead = match reserved {
                        "[[" => "use `[ ... ]`, with quotes around variables",
                        "case" => "use `if [ ... ]; then ...; fi`",
                        _ => "use plain commands, `if`, `for` and `while`",
                    };
                    return Err(Unclear::new(format!("`{reserved}` in this place"), instead));
                }
            }
            simple.words.push(word);
        }
        let nothing = simple.words.is_empty() && simple.assignments.is_empty();
        if nothing && simple.redirects.is_empty() {
            return Err(unexpected(self.peek()));
        }
        Ok(Node::Simple(simple))
    }
}

/// `NAME=value`, which sets a variable for the command behind it.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Bare(first)) = word.parts.first() else { return None };
    let (name, value) = first.split_once('=')?;
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !good {
        return None;
    }
    let mut rest = word.clone();
    rest.tilde = value.starts_with('~') || value.contains(":~");
    rest.parts[0] = Part::Bare(value.to_owned());
    Some((name.to_owned(), rest))
}

pub(super) fn unexpected(c: Option<char>) -> Unclear {
    match c {
        Some(c) => Unclear::new(format!("`{c}` in this place"), "quote it if it is text"),
        None => Unclear::new("the end of the line in this place", "write the whole command"),
    }
}
