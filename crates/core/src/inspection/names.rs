//! Names that could be taken for others: by a file system that does not tell
//! letters apart as git does, or by a person.
//!
//! Only what is new is looked at. What was there before is how the project is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::policy::Rule;

use super::{FileChange, Inspection, Work};

pub(super) fn inspect(found: &mut Inspection, work: &Work) {
    let added = |change: &&FileChange| change.before.is_none() && change.after.is_some();
    let new: BTreeSet<&str> =
        work.changes.iter().filter(added).map(|change| change.path.as_str()).collect();
    for path in &new {
        if let Some((part, why)) = path.split('/').find_map(|part| Some((part, misleads(part)?))) {
            found.violation(
                Rule::NameConfusable,
                format!("`{path}`: the name `{part}` {why}. Use a plain name."),
            );
        }
    }
    for (path, other) in collisions(&new, &work.paths) {
        found.violation(
            Rule::NameConfusable,
            format!("`{path}` and `{other}` are the same on some machines. Use another name."),
        );
    }
}

/// New paths, and others that look like them or fall together with them. Each
/// directory on the way counts as well.
fn collisions<'p>(new: &BTreeSet<&'p str>, all: &'p [String]) -> Vec<(&'p str, &'p str)> {
    let mut seen: BTreeMap<String, BTreeSet<&'p str>> = BTreeMap::new();
    for path in new {
        for part in beginnings(path) {
            seen.entry(skeleton(part)).or_default().insert(part);
        }
    }
    for path in all {
        for part in beginnings(path) {
            // Most have nothing in common with what is new.
            if let Some(spelled) = seen.get_mut(&skeleton(part)) {
                spelled.insert(part);
            }
        }
    }
    let mut found = Vec::new();
    for spelled in seen.into_values().filter(|spelled| spelled.len() > 1) {
        let mine = |part: &&&'p str| new.iter().any(|path| beginnings(path).any(|it| it == **part));
        let Some(first) = spelled.iter().find(mine) else { continue };
        found.extend(spelled.iter().find(|part| *part != first).map(|other| (*first, *other)));
    }
    found
}

/// `a`, `a/b` and `a/b/c` for `a/b/c`.
fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain(std::iter::once(path))
}

/// What is left of a text when capitals, accents and alphabets are not told
/// apart.
fn skeleton(text: &str) -> String {
    let plain =
        text.chars().filter(|c| !is_mark(*c)).map(|c| LOOKALIKES.get(&c).copied().unwrap_or(c));
    plain.collect::<String>().to_uppercase().to_lowercase()
}

/// Why a single name is not what it seems, if so.
fn misleads(name: &str) -> Option<&'static str> {
    if name.starts_with('-') {
        return Some("looks like an option");
    }
    let blank = |c: char| c.is_whitespace();
    if name.starts_with(blank) || name.ends_with(blank) || name.ends_with('.') {
        return Some("begins or ends with what cannot be seen");
    }
    if name.chars().any(|c| c.is_whitespace() && c != ' ' && !c.is_control()) {
        return Some("holds a blank that is none");
    }
    if name.chars().any(is_mark) {
        return Some("holds accents that stand by themselves");
    }
    let stem = name.split('.').next().unwrap_or_default().to_lowercase();
    if RESERVED.contains(&stem.as_str()) {
        return Some("is a device on Windows");
    }
    let short = name.split_once('~').map(|(start, end)| (start.to_lowercase(), end));
    if short.is_some_and(|(start, end)| {
        start.starts_with("git") && end.starts_with(|c: char| c.is_ascii_digit())
    }) {
        return Some("is short for a file of git's on Windows");
    }
    let mut words = name.split(|c: char| !c.is_alphabetic());
    words.any(mixes_alphabets).then_some("mixes letters of alphabets that look alike")
}

/// Names that stand for devices there, with any ending.
const RESERVED: &[&str] = &[
    "aux", "con", "nul", "prn", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

fn mixes_alphabets(word: &str) -> bool {
    let latin = word.chars().any(|c| c.is_ascii_alphabetic());
    latin && word.chars().any(|c| LOOKALIKES.contains_key(&c))
}

/// A mark that is put on the letter before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Letters of other alphabets that are drawn like Latin ones.
static LOOKALIKES: LazyLock<BTreeMap<char, char>> = LazyLock::new(|| {
    let cyrillic = [
        ('\u{430}', 'a'),
        ('\u{435}', 'e'),
        ('\u{43e}', 'o'),
        ('\u{440}', 'p'),
        ('\u{441}', 'c'),
        ('\u{443}', 'y'),
        ('\u{445}', 'x'),
        ('\u{456}', 'i'),
        ('\u{458}', 'j'),
        ('\u{455}', 's'),
        ('\u{501}', 'd'),
        ('\u{4bb}', 'h'),
        ('\u{51b}', 'q'),
        ('\u{51d}', 'w'),
        ('\u{43a}', 'k'),
        ('\u{43c}', 'm'),
        ('\u{43d}', 'h'),
        ('\u{442}', 't'),
        ('\u{432}', 'b'),
        ('\u{433}', 'r'),
        ('\u{475}', 'v'),
        ('\u{44c}', 'b'),
        ('\u{410}', 'A'),
        ('\u{412}', 'B'),
        ('\u{415}', 'E'),
        ('\u{405}', 'S'),
        ('\u{406}', 'I'),
        ('\u{408}', 'J'),
        ('\u{41a}', 'K'),
        ('\u{41c}', 'M'),
        ('\u{41d}', 'H'),
        ('\u{41e}', 'O'),
        ('\u{420}', 'P'),
        ('\u{421}', 'C'),
        ('\u{422}', 'T'),
        ('\u{423}', 'Y'),
        ('\u{425}', 'X'),
    ];
    let greek = [
        ('\u{3b1}', 'a'),
        ('\u{3b9}', 'i'),
        ('\u{3ba}', 'k'),
        ('\u{3bd}', 'n'),
        ('\u{3bf}', 'o'),
        ('\u{3c1}', 'p'),
        ('\u{3c4}', 't'),
        ('\u{3c5}', 'u'),
        ('\u{3c7}', 'x'),
        ('\u{3c9}', 'w'),
        ('\u{391}', 'A'),
        ('\u{392}', 'B'),
        ('\u{395}', 'E'),
        ('\u{396}', 'Z'),
        ('\u{397}', 'H'),
        ('\u{399}', 'I'),
        ('\u{39a}', 'K'),
        ('\u{39c}', 'M'),
        ('\u{39d}', 'N'),
        ('\u{39f}', 'O'),
        ('\u{3a1}', 'P'),
        ('\u{3a4}', 'T'),
        ('\u{3a5}', 'Y'),
        ('\u{3a7}', 'X'),
    ];
    // And the wide forms of the whole of ASCII.
    let wide = ('\u{ff01}'..='\u{ff5e}').zip('!'..='~');
    cyrillic.into_iter().chain(greek).chain(wide).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mislead_are_told_from_those_that_do_not() {
        for name in [
            "-rf",
            " a",
            "a ",
            "a.",
            "a\u{a0}b",
            "cafe\u{301}.md",
            "con",
            "Nul.txt",
            "аuth.rs",
            "pаyment.ts",
            "ｍain.rs",
            "Αlpha.rs",
            "GITMOD~1",
            "gitatt~2",
        ] {
            assert!(misleads(name).is_some(), "{name:?}");
        }
        for name in [
            "a.rs",
            "café.md",
            "[slug].tsx",
            "(group)",
            "@scope",
            "_index.md",
            "копия.rs",
            "資料.txt",
            "conf",
            "console.log",
            "a b.md",
            "a-b",
            ".github",
            "über_uns.md",
            "ελληνικά.md",
            "git~notes.md",
            "a~1",
        ] {
            assert!(misleads(name).is_none(), "{name:?}: {:?}", misleads(name));
        }
    }

    #[test]
    fn what_falls_together_is_found_in_whole_paths() {
        let all = |paths: &[&str]| paths.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        for (new, old, expected) in [
            ("src/Auth.rs", "src/auth.rs", Some("src/auth.rs")),
            ("src/Auth/b.rs", "src/auth/a.rs", Some("src/auth")),
            ("SRC/b.rs", "src/a.rs", Some("src")),
            ("src/сору.rs", "src/copy.rs", Some("src/copy.rs")),
            ("src/b.rs", "src/a.rs", None),
            ("src/auth/b.rs", "src/auth/a.rs", None),
        ] {
            let all = all(&[new, old]);
            let found = collisions(&BTreeSet::from([new]), &all);
            assert_eq!(found.first().map(|(_, other)| *other), expected, "{new}");
        }
        let old = all(&["a/X", "a/x", "a/new"]);
        assert_eq!(collisions(&BTreeSet::from(["a/new"]), &old), [], "it was like that before");
    }
}
