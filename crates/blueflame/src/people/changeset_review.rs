//! The changeset gate: should this land?
//!
//! What is shown is what was checked and what would land: the caller takes it
//! from the commit in question.

use std::fmt::Write as _;

use anstyle::Style;
use blueflame_core::gate::ChangesetAnswer;
use blueflame_core::money::{Budget, Spend};
use unicode_width::UnicodeWidthStr as _;

use super::diff_view;
use super::sheet::{ADDED, Keep, REMOVED, Sheet, count, cut};
use super::talk::{Choice, Talk};
use super::{ChangesetPage, FileStat, Occasion, Unanswered};
use crate::narrate::plain;

/// More lines push what matters off the screen.
const MOST_FILES: usize = 20;
const MOST_COMMITS: usize = 10;

const CHOICES: [Choice; 5] = [
    Choice::alone('a', "approve", "land this changeset"),
    Choice::with_text('r', "reject", "send its tasks back, with your reason"),
    Choice::alone('v', "view", "read the whole diff"),
    Choice::with_text('f', "file", "read the diff of one file, by its number or path"),
    Choice::alone('s', "skip", "neither; it is shown again in the next cycle"),
];

pub(super) fn ask(
    talk: &mut Talk<'_>,
    occasion: &Occasion<'_>,
) -> Result<ChangesetAnswer, Unanswered> {
    let mut sheet = talk.sheet();
    match occasion.changeset {
        Some(page) => draw(&mut sheet, page, occasion),
        None => sheet.title(&format!("Review: {}", occasion.name())),
    }
    talk.show(&sheet.finish());
    loop {
        match talk.choose(&CHOICES)? {
            ('a', _) => return Ok(ChangesetAnswer::Approve),
            ('r', reason) => {
                let reason = match reason.as_str() {
                    "" => {
                        talk.ask_text("What is wrong with it? An empty line ends your text.\n> ")?
                    }
                    _ => reason,
                };
                if !reason.is_empty() {
                    return Ok(ChangesetAnswer::Reject { reason });
                }
                talk.say("A rejection needs a reason, for the next agent. Nothing was decided.");
            }
            ('v', _) => match occasion.changeset {
                Some(page) => talk.page(&diff_view::coloured(&page.diff))?,
                None => talk.say("There is no diff to show."),
            },
            ('f', which) => view_file(talk, occasion.changeset, &which)?,
            _ => return Ok(ChangesetAnswer::Skip),
        }
    }
}

fn view_file(
    talk: &mut Talk<'_>,
    page: Option<&ChangesetPage>,
    which: &str,
) -> Result<(), Unanswered> {
    let files = page.map(|page| page.files.as_slice()).unwrap_or_default();
    let which = match which {
        "" => {
            let mut sheet = talk.sheet();
            diffstat(&mut sheet, files, files.len());
            talk.show(&sheet.finish());
            talk.ask_line("Which file, by its number or path? > ")?
        }
        which => which.to_owned(),
    };
    match (page, find(files, &which)) {
        (Some(page), Some(file)) => {
            if let Some(part) = diff_view::of_file(&page.diff, &file.path) {
                talk.page(&diff_view::coloured(part))
            } else {
                talk.say(&format!("There is no text to show of `{}`.", plain(&file.path)));
                Ok(())
            }
        }
        _ if which.is_empty() => Ok(()),
        _ => {
            talk.say(&format!("There is no such file in this changeset: `{}`.", plain(&which)));
            Ok(())
        }
    }
}

/// A file by its number, its path, or an end of the path that only one has.
fn find<'f>(files: &'f [FileStat], which: &str) -> Option<&'f FileStat> {
    let by_number =
        which.parse::<usize>().ok().and_then(|number| files.get(number.checked_sub(1)?));
    let by_path = || files.iter().find(|file| file.path == which);
    let by_end = || {
        let mut fitting = files.iter().filter(|file| file.path.ends_with(which));
        fitting.next().filter(|_| !which.is_empty() && fitting.next().is_none())
    };
    by_number.or_else(by_path).or_else(by_end)
}

pub(super) fn draw(sheet: &mut Sheet, page: &ChangesetPage, occasion: &Occasion<'_>) {
    let ChangesetPage { number, of, group, .. } = page;
    let state = occasion.state;
    sheet.title(&format!("Changeset {number} of {of}: {group}"));
    sheet.field("session", &format!("{}, cycle {}", state.session, state.cycle));
    let mut label = "tasks";
    for (task, title) in &page.tasks {
        sheet.field(label, &format!("{task}  {}", title.lines().next().unwrap_or_default()));
        label = "";
    }
    let mut label = "commits";
    for subject in page.commits.iter().take(MOST_COMMITS) {
        sheet.field(label, subject);
        label = "";
    }
    if page.commits.len() > MOST_COMMITS {
        sheet.field("", &format!("and {} more", page.commits.len() - MOST_COMMITS));
    }
    sheet.field("checks", &page.checks);
    sheet.field("cost", &cost(page.cost, occasion));
    for note in &page.notes {
        sheet.warning(note);
    }
    sheet.blank();
    let changed = count(page.files.len(), "file");
    sheet.ready(&format!(
        "{changed} changed, {ADDED}+{}{ADDED:#} {REMOVED}-{}{REMOVED:#}",
        page.insertions, page.deletions
    ));
    diffstat(sheet, &page.files, MOST_FILES);
}

fn cost(own: Spend, occasion: &Occasion<'_>) -> String {
    let crew = &occasion.state.crew;
    let so_far = match crew.session_budget() {
        Budget::Tokens(limit) => format!("{} of {limit} tokens", crew.spent().usage.total()),
        Budget::Usd(limit) => format!("{} of {limit}", crew.spent().cost),
        Budget::Unlimited => crew.spent().cost.to_string(),
    };
    format!("{} and {} tokens; the session so far: {so_far}", own.cost, own.usage.total())
}

/// The files with the most changes, in the order of the diff and with the
/// numbers by which they can be asked for.
fn diffstat(sheet: &mut Sheet, files: &[FileStat], most: usize) {
    let mut by_size: Vec<usize> = (0..files.len()).collect();
    by_size.sort_by_key(|&at| std::cmp::Reverse(files[at].insertions + files[at].deletions));
    let mut shown: Vec<usize> = by_size.iter().copied().take(most).collect();
    shown.sort_unstable();
    let number_width = files.len().to_string().len();
    let names: Vec<String> = shown.iter().map(|&at| plain(&files[at].path).into_owned()).collect();
    let room = sheet.width().saturating_sub(number_width + 20).max(10);
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0).min(room);
    for (at, name) in shown.into_iter().zip(names) {
        let name = cut(&name, widest, Keep::End);
        let gap = " ".repeat(widest.saturating_sub(name.width()));
        let mut line = format!("  {:>number_width$}  {name}{gap}  ", at + 1);
        let FileStat { insertions, deletions, binary, .. } = &files[at];
        // Writing to a string cannot fail.
        let _ = match binary {
            true => write!(line, "binary"),
            false => {
                let (more, less) = (format!("+{insertions}"), format!("-{deletions}"));
                let style =
                    |style: Style, amount: &u64| if *amount > 0 { style } else { Style::new() };
                let (plus, minus) = (style(ADDED, insertions), style(REMOVED, deletions));
                write!(line, "{plus}{more:>6}{plus:#} {minus}{less:>6}{minus:#}")
            }
        };
        sheet.ready(&line);
    }
    if files.len() > most {
        let rest = by_size.iter().skip(most).map(|&at| &files[at]);
        let (more, less) =
            rest.fold((0, 0), |(more, less), file| (more + file.insertions, less + file.deletions));
        let rest = count(files.len() - most, "smaller change");
        sheet.ready(&format!("  and {rest}, +{more} -{less}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{Sample, changeset, page};

    #[test]
    fn a_changeset_is_shown_with_its_evidence() {
        let sample = Sample::changeset();
        let occasion = sample.occasion();
        insta::assert_snapshot!(page(80, |sheet| draw(sheet, &changeset(), &occasion)));
    }

    #[test]
    fn many_files_are_counted_and_hostile_names_are_made_safe() {
        let sample = Sample::changeset();
        let mut many = changeset();
        many.files = (1..=30)
            .map(|n| FileStat {
                path: format!("src/a/rather/long/way/down/to/the/module_{n}.rs"),
                insertions: n,
                deletions: n / 2,
                binary: false,
            })
            .collect();
        many.files[29].path = "src/\u{1b}[2Jgone\nforged.rs".to_owned();
        many.notes.clear();
        insta::assert_snapshot!(page(60, |sheet| draw(sheet, &many, &sample.occasion())));
    }

    #[test]
    fn a_file_is_found_by_number_path_and_end_of_path() {
        let files = changeset().files;
        for (which, path) in [
            ("1", Some("src/auth/jwt.rs")),
            ("src/auth/mod.rs", Some("src/auth/mod.rs")),
            ("jwt.rs", Some("src/auth/jwt.rs")),
            (".rs", None),
            ("0", None),
            ("99", None),
            ("", None),
        ] {
            assert_eq!(find(&files, which).map(|file| file.path.as_str()), path, "{which:?}");
        }
    }
}
