//! The text behind `<<`.
//!
//! With a quoted end marker nothing in it is replaced. Without quotes the shell
//! replaces variables and runs `$(...)` and backticks; only variables are
//! accepted there.

use super::parse::Parser;
use super::{HereText, Unclear};

/// A text that is still to come, behind the end of the line.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// Its place among the texts of the line.
    pub index: usize,
    pub marker: String,
    pub quoted: bool,
    /// `<<-`: tabs at the beginning of lines do not count.
    pub strip_tabs: bool,
}

impl Parser<'_> {
    /// Reads one text; the parser stands at the beginning of its first line.
    pub(super) fn text_of(&mut self, pending: &Pending) -> Result<HereText, Unclear> {
        let mut text = String::new();
        loop {
            let Some(line) = self.line() else {
                return Err(Unclear::new(
                    format!("a `<<` whose end `{}` is missing", pending.marker),
                    "put the end marker alone on a line",
                ));
            };
            let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
            if line == pending.marker {
                break;
            }
            // There bash takes a line for the end that only begins with the marker,
            // and runs the rest of it.
            if self.in_substitution && line.starts_with(&pending.marker) {
                return Err(Unclear::new(
                    "a line in `$(... <<)` that begins with the end marker and goes on",
                    "choose an end marker with which no line of the text begins",
                ));
            }
            text.push_str(line);
            text.push('\n');
        }
        if pending.quoted {
            return Ok(HereText::Literal(text));
        }
        let runs = ["`", "$(", "${", "$[", "\\"].iter().any(|sign| text.contains(sign));
        if runs {
            return Err(Unclear::new(
                "a `<<` text with backslashes, backticks or `$(...)` in it",
                "quote its end marker: <<'EOF'",
            ));
        }
        Ok(if text.contains('$') { HereText::Expanded(text) } else { HereText::Literal(text) })
    }
}
