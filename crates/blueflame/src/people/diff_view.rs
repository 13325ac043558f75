//! A diff as a person reads it: safe for the terminal, in colours, by file.
//!
//! Agents wrote what is in it. Nothing of that reaches the terminal as a
//! command: not its colours, not characters that turn the reading direction.

use std::fmt::Write as _;

use anstyle::Style;

use super::sheet::{ADDED, PLACE, REMOVED, STRONG};
use crate::narrate::plain;

pub(super) fn coloured(diff: &str) -> String {
    let mut shown = String::with_capacity(diff.len() + diff.len() / 4);
    let mut header = true;
    for line in diff.split_terminator('\n') {
        if line.starts_with("diff ") {
            header = true;
        } else if line.starts_with("@@") {
            header = false;
        }
        let style = match line.as_bytes().first() {
            _ if line.starts_with("@@") => PLACE,
            _ if header => STRONG,
            Some(b'+') => ADDED,
            Some(b'-') => REMOVED,
            Some(_) | None => Style::new(),
        };
        let mut safe = String::with_capacity(line.len());
        for (at, part) in line.split('\t').enumerate() {
            if at > 0 {
                safe.push('\t');
            }
            safe.push_str(&plain(part));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(shown, "{style}{safe}{style:#}");
    }
    shown
}

/// The part of a diff that is about one file.
pub(super) fn of_file<'d>(diff: &'d str, path: &str) -> Option<&'d str> {
    let starts: Vec<usize> = diff
        .match_indices("diff --git ")
        .map(|(at, _)| at)
        .filter(|&at| at == 0 || diff.as_bytes().get(at - 1) == Some(&b'\n'))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &diff[start..end]).find(|part| {
        let first = part.lines().next().unwrap_or_default();
        first.ends_with(&format!(" b/{path}")) || first.ends_with(&format!(" \"b/{path}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-\told\n+\tnew \u{1b}[8m\n ctx\ndiff --git a/long/x b/long/x\n@@ -0,0 +1 @@\n+diff --git a/y b/y\n";

    #[test]
    fn a_diff_cannot_hide_anything() {
        let shown = coloured(DIFF);
        let bare = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(bare, DIFF.replace('\u{1b}', "\\u{1b}"));
        assert!(shown.contains("\u{1b}[32m+\tnew \\u{1b}[8m\u{1b}[0m"), "{shown:?}");
        assert!(shown.contains("\u{1b}[1m--- a/x\u{1b}[0m"), "{shown:?}");
    }

    #[test]
    fn one_file_is_cut_out_whole() {
        assert_eq!(of_file(DIFF, "x").map(|part| part.lines().count()), Some(7));
        assert_eq!(of_file(DIFF, "long/x").map(|part| part.lines().count()), Some(3));
        assert_eq!(of_file(DIFF, "y"), None, "a line of a file is no header");
    }
}
