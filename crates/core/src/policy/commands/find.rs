//! `find`: which files there are, and nothing that is done with them.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked};

/// Words without a value.
const PLAIN: &[&str] = &[
    "(",
    ")",
    "!",
    ",",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-empty",
    "-depth",
    "-d",
    "-xdev",
    "-mount",
    "-true",
    "-false",
    "-quit",
    "-ls",
    "-executable",
    "-readable",
    "-writable",
    "-P",
    "-nowarn",
    "-noleaf",
    "-daystart",
];

/// Words whose value is a pattern, a number or a format.
const VALUED: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-perm",
    "-links",
    "-printf",
    "-user",
    "-group",
];

/// Words whose value is a file to compare with.
const FILES: &[&str] = &["-newer", "-samefile"];

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let mut words = call.arguments.iter();
    let mut places = true;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        // Before the first test stand the places to look in.
        if places && !text.starts_with(['-', '(', '!']) {
            walk.file(word, call)?;
            continue;
        }
        let text = word.literal()?;
        places &= text == "-P";
        let mut value = || words.next().map_or(Ok(""), Argument::literal);
        if VALUED.contains(&text) {
            value()?;
        } else if FILES.contains(&text) {
            walk.reads(value()?, call.from)?;
        } else if !PLAIN.contains(&text) {
            return deny(
                Rule::CommandFlag,
                format!(
                    "`find {text}` is not used here: it may run programs, change files or follow \
                     links. Use tests like -name, -path and -type, or `grep -r`."
                ),
            );
        }
    }
    Ok(())
}
