//! Text in columns: how wide it is on a screen, cut to fit, and tables.
//!
//! Everything that comes in was made harmless before (`narrate::plain`), or is
//! our own.

use unicode_width::UnicodeWidthChar as _;

/// What stands for the rest of a text that was cut.
const CUT: &str = "...";

/// How many columns of a screen a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The text, cut so that it takes at most so many columns.
pub fn clip(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    // Too narrow for a sign that something is missing: the text says more.
    let sign = if most > 2 * CUT.len() { CUT } else { "" };
    let mut left = most - sign.len();
    let mut kept = String::new();
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        kept.push(c);
    }
    kept + sign
}

/// On which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Rows of cells, put below each other.
#[derive(Debug)]
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns, each with a heading.
    pub fn new<const N: usize>(columns: [(&str, Side); N]) -> Self {
        Table::with(columns)
    }

    pub fn with<'n>(columns: impl IntoIterator<Item = (&'n str, Side)>) -> Self {
        let (names, sides) =
            columns.into_iter().map(|(name, side)| (name.to_owned(), side)).unzip();
        Table { sides, rows: vec![names] }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The rows as lines. A column in which nothing stands is left out.
    pub fn lines(&self) -> Vec<String> {
        let widest = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max()
        };
        let widths: Vec<usize> =
            (0..self.sides.len()).map(|column| widest(column).unwrap_or(0)).collect();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &wide), side) in row.iter().zip(widths).zip(&self.sides) {
            if wide == 0 {
                continue;
            }
            if !line.is_empty() {
                line.push_str("  ");
            }
            let blanks = " ".repeat(wide.saturating_sub(width(cell)));
            match side {
                Side::Left => line.extend([cell.as_str(), &blanks]),
                Side::Right => line.extend([&blanks, cell.as_str()]),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_what_it_takes_on_the_screen() {
        for (text, most, cut) in [
            ("exactly ten", 11, "exactly ten"),
            ("exactly ten", 10, "exactly..."),
            ("日本語テキスト", 14, "日本語テキスト"),
            // Half a character cannot be shown.
            ("日本語テキスト", 10, "日本語..."),
            ("e\u{301}te\u{301}", 3, "e\u{301}te\u{301}"),
            ("abcdef", 4, "abcd"),
            ("abc", 0, ""),
        ] {
            let got = clip(text, most);
            assert_eq!(got, cut);
            assert!(width(&got) <= most);
        }
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut table = Table::new([("name", Side::Left), ("", Side::Left), ("cost", Side::Right)]);
        table.row(["é".into(), String::new(), "$1".into()]);
        table.row(["日本語".into(), String::new(), "$10.00".into()]);
        assert_eq!(table.lines(), ["name      cost", "é           $1", "日本語  $10.00"]);
    }
}
