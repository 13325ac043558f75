//! How large a prompt is, and which part of it costs what.
//!
//! Tokens are an estimate, four bytes each: good enough to see that a diff
//! outweighs everything else, not to be billed by. What was really used comes
//! from the gateway.

use std::fmt;

use serde::{Deserialize, Serialize};

const BYTES_PER_TOKEN: usize = 4;

/// The parts of one prompt, in the order in which they stand in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSizes {
    pub parts: Vec<PartSize>,
    pub total: PartSize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSize {
    pub name: String,
    pub bytes: usize,
    /// Roughly.
    pub tokens: usize,
}

impl PartSize {
    fn new(name: &str, bytes: usize) -> Self {
        PartSize { name: name.to_owned(), bytes, tokens: bytes.div_ceil(BYTES_PER_TOKEN) }
    }
}

impl PromptSizes {
    /// Texts of the same kind count as one part.
    pub(super) fn of<'p>(parts: impl IntoIterator<Item = (&'p str, usize)>) -> Self {
        let mut merged: Vec<(&str, usize)> = Vec::new();
        for (name, bytes) in parts {
            match merged.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += bytes,
                None => merged.push((name, bytes)),
            }
        }
        let total = merged.iter().map(|(_, bytes)| bytes).sum();
        PromptSizes {
            parts: merged.into_iter().map(|(name, bytes)| PartSize::new(name, bytes)).collect(),
            total: PartSize::new("total", total),
        }
    }
}

/// One line with the largest parts first, or with `{:#}` a table.
impl fmt::Display for PromptSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return self.table(f);
        }
        let mut parts: Vec<&PartSize> = self.parts.iter().collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        write!(f, "~{} tokens", grouped(self.total.tokens))?;
        for (place, part) in parts.into_iter().enumerate() {
            let before = if place == 0 { ": " } else { ", " };
            write!(f, "{before}{} {}", part.name, grouped(part.tokens))?;
        }
        Ok(())
    }
}

impl PromptSizes {
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["part", "bytes", "~tokens"].map(str::to_owned);
        let parts = self.parts.iter().chain([&self.total]);
        let row = |part: &PartSize| [part.name.clone(), grouped(part.bytes), grouped(part.tokens)];
        let rows: Vec<[String; 3]> = [head].into_iter().chain(parts.map(row)).collect();
        let [name, bytes, tokens] =
            [0, 1, 2].map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
        for (place, row) in rows.iter().enumerate() {
            let newline = if place == 0 { "" } else { "\n" };
            write!(f, "{newline}{:name$}  {:>bytes$}  {:>tokens$}", row[0], row[1], row[2])?;
        }
        Ok(())
    }
}

/// A number with a comma before every third digit.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_a_line_and_as_a_table() {
        let sizes = PromptSizes::of([
            ("rules", 1_001),
            ("history", 400),
            ("diff", 12_345_678),
            ("history", 400),
        ]);
        assert_eq!(sizes.to_string(), "~3,086,870 tokens: diff 3,086,420, rules 251, history 200");
        insta::assert_snapshot!(format!("{sizes:#}"), @r"
        part          bytes    ~tokens
        rules         1,001        251
        history         800        200
        diff     12,345,678  3,086,420
        total    12,347,479  3,086,870
        ");
        assert_eq!(PromptSizes::of([]).to_string(), "~0 tokens");
    }

    #[test]
    fn sizes_are_written_and_read_again() {
        let sizes = PromptSizes::of([("rules", 10), ("job", 3)]);
        let text = serde_json::to_string(&sizes).unwrap();
        assert_eq!(serde_json::from_str::<PromptSizes>(&text).unwrap(), sizes);
    }
}
