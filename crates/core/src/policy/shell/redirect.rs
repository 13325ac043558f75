//! Redirections: where a command reads from and writes to.

use super::heredoc::Pending;
use super::parse::{Parser, unexpected};
use super::{HereText, Redirect, Unclear, Word};

type Read<T> = Result<T, Unclear>;

impl Parser<'_> {
    /// The redirections behind a group or loop.
    pub(super) fn redirects(&mut self) -> Read<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// The redirection that begins here, if one does.
    pub(super) fn redirect(&mut self) -> Read<Option<Redirect>> {
        let start = self.at;
        let both = self.takes("&>>") || self.takes("&>");
        if !both {
            while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                self.next();
            }
        }
        let rest = self.rest();
        if !both && !rest.starts_with(['<', '>']) {
            self.at = start;
            return Ok(None);
        }
        let number = &self.line[start..self.at];
        if !both && is_other_input(number, rest) {
            return Err(Unclear::new(
                "an input that comes from a descriptor, or goes to another one",
                "use `< file` or `<<'EOF'`",
            ));
        }
        if rest.starts_with("<(") || rest.starts_with(">(") {
            return Err(Unclear::new(
                "a process substitution",
                "run the commands one after the other",
            ));
        }
        if !both && self.takes("<<<") {
            return Ok(Some(Redirect::Word(self.target()?)));
        }
        if !both && self.takes("<<") {
            let strip_tabs = self.takes("-");
            let word = self.target()?;
            let Some(marker) = word.text() else {
                return Err(Unclear::new("a `<<` marker that is no plain word", "use <<'EOF'"));
            };
            let index = self.texts.len();
            self.texts.push(HereText::Literal(String::new()));
            self.pending.push(Pending { index, marker, quoted: word.quoted, strip_tabs });
            return Ok(Some(Redirect::Text(index)));
        }
        if !both && self.takes(">&") {
            let target = self.target()?;
            return match target.bare() {
                Some("-") => Ok(Some(Redirect::Duplicate)),
                Some(text) if text.chars().all(|c| c.is_ascii_digit()) => {
                    Ok(Some(Redirect::Duplicate))
                }
                Some(text) if !text.starts_with(|c: char| c.is_ascii_digit()) => {
                    Ok(Some(Redirect::Write(target)))
                }
                _ => Err(Unclear::new("a copied descriptor that is no number", "use 2>&1")),
            };
        }
        if both || self.takes(">>") || self.takes(">|") {
            return Ok(Some(Redirect::Write(self.target()?)));
        }
        if self.takes(">") {
            return Ok(Some(Redirect::Write(self.target()?)));
        }
        self.expect('<')?;
        Ok(Some(Redirect::Read(self.target()?)))
    }

    fn target(&mut self) -> Read<Word> {
        self.blanks()?;
        match self.peek() {
            None | Some('\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => {
                Err(Unclear::new("a redirection without a target", "name the file"))
            }
            Some(_) => {
                let word = self.word()?;
                // `> 2> x`: the number belongs to the next redirection.
                let number =
                    word.bare().is_some_and(|text| text.chars().all(|c| c.is_ascii_digit()));
                if number && self.rest().starts_with(['<', '>']) {
                    return Err(unexpected(self.peek()));
                }
                Ok(word)
            }
        }
    }
}

/// What a command reads has to be seen: with several descriptors for it the
/// text behind `<<` need not be it.
fn is_other_input(number: &str, sign: &str) -> bool {
    let input = !number.is_empty() && number.chars().all(|c| c == '0');
    let text = sign.starts_with("<<") && !number.is_empty() && !input;
    text || sign.starts_with("<&") || sign.starts_with("<>") || input && sign.starts_with('>')
}
