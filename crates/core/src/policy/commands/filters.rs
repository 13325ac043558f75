//! Small programs that only look, or only pass text on. They need no listing;
//! what they read and write is judged.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked, awk, find, grep, sed};

/// What a filter does with its arguments.
enum Filter {
    /// They are only text.
    Text,
    /// Options, then files to read. The options named here are refused; those
    /// in `valued` take the next argument as their value.
    Files {
        refused: &'static [&'static str],
        valued: &'static [&'static str],
    },
    /// Options, a pattern, then files.
    Grep,
    Find,
    Sed,
    Awk,
    /// Options, a filter, then files.
    Jq,
    /// Options, then one file to read and one to write.
    Uniq,
    /// Files to write.
    Tee,
    /// Nothing is opened, but a file may be asked after.
    Test,
}

fn filter(program: &str) -> Option<Filter> {
    Some(match program {
        "echo" | "printf" | "true" | "false" | ":" | "pwd" | "tr" | "basename" | "dirname"
        | "nproc" | "which" | "seq" => Filter::Text,
        "cat" | "nl" | "ls" | "tac" | "rev" | "comm" => Filter::Files { refused: &[], valued: &[] },
        "head" => Filter::Files { refused: &[], valued: &["-n", "-c", "--lines", "--bytes"] },
        "tail" => Filter::Files {
            refused: &["-f", "-F", "--follow", "--retry", "--pid"],
            valued: &["-n", "-c", "--lines", "--bytes"],
        },
        "wc" => Filter::Files { refused: &["--files0-from"], valued: &[] },
        "cut" => Filter::Files {
            refused: &[],
            valued: &["-d", "-f", "-c", "-b", "--delimiter", "--fields", "--output-delimiter"],
        },
        "sort" => Filter::Files {
            refused: &[
                "-o",
                "-T",
                "--output",
                "--compress-program",
                "--files0-from",
                "--temporary-directory",
                "--random-source",
            ],
            valued: &["-k", "-t", "-S", "--key", "--field-separator"],
        },
        "cmp" => Filter::Files { refused: &[], valued: &["-n", "-i"] },
        "diff" => Filter::Files {
            refused: &["-r", "-X", "--recursive", "--exclude-from", "--from-file", "--to-file"],
            valued: &["-U", "-C", "-W", "-I", "-x", "-L", "--label"],
        },
        "stat" => Filter::Files { refused: &[], valued: &["-c", "--format", "--printf"] },
        "du" => Filter::Files {
            refused: &["-L", "-X", "--dereference", "--exclude-from", "--files0-from"],
            valued: &["-d", "-t", "--max-depth", "--threshold", "--exclude"],
        },
        "file" => Filter::Files {
            refused: &["-C", "-f", "-m", "-z", "--compile", "--files-from", "--magic-file"],
            valued: &[],
        },
        "md5sum" | "sha1sum" | "sha256sum" => {
            Filter::Files { refused: &["-c", "--check"], valued: &[] }
        }
        "od" => Filter::Files { refused: &[], valued: &["-A", "-j", "-N", "-t", "-w"] },
        "grep" | "egrep" | "fgrep" => Filter::Grep,
        "find" => Filter::Find,
        "sed" => Filter::Sed,
        "awk" => Filter::Awk,
        "jq" => Filter::Jq,
        "uniq" => Filter::Uniq,
        "tee" => Filter::Tee,
        "test" | "[" => Filter::Test,
        _ => return None,
    })
}

pub(super) fn is_filter(program: &str) -> bool {
    filter(program).is_some()
}

/// Judges a filter; says `false` if the program is none.
pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<bool> {
    let Some(filter) = filter(call.program) else { return Ok(false) };
    match filter {
        Filter::Text => {
            // `printf -v 'a[$(x)]'` runs x.
            let format = call.arguments.first().filter(|_| call.program == "printf");
            if format.is_some_and(|word| word.literal().is_err() || word.text.starts_with('-')) {
                return deny(Rule::CommandFlag, "`printf` needs a quoted format. Use one first.");
            }
            // What wildcards stand for is shown.
            for word in call.arguments.iter().filter(|word| word.glob) {
                walk.file(word, call)?;
            }
        }
        Filter::Test => test(walk, call)?,
        Filter::Files { refused, valued } => {
            for word in operands(call, refused, valued)? {
                walk.file(word, call)?;
            }
        }
        Filter::Grep => grep::judge(walk, call)?,
        Filter::Find => find::judge(walk, call)?,
        Filter::Sed => sed::judge(walk, call)?,
        Filter::Awk => awk::judge(walk, call)?,
        Filter::Jq => jq(walk, call)?,
        Filter::Uniq => {
            let files = operands(call, &[], &["-f", "-s", "-w"])?;
            // So does one with wildcards that stand for two.
            if files.len() > 1 || files.iter().any(|word| word.glob) {
                return deny(Rule::CommandFlag, "`uniq` with two files writes one. Use a pipe.");
            }
            for word in files {
                walk.file(word, call)?;
            }
        }
        Filter::Tee => {
            for word in operands(call, &["--output-error"], &[])? {
                walk.writes(word.literal()?, call.from)?;
            }
        }
    }
    Ok(true)
}

/// What a test is made of has to be known: `[ -v 'a[$(x)]' ]` runs x.
fn test(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    const COMPARISONS: &[&str] =
        &["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
    let mut words = call.arguments;
    if call.program == "[" {
        words = words.split_last().map_or(words, |(_, rest)| rest);
    }
    while let Some((first, rest)) = words.split_first()
        && first.is("!")
    {
        words = rest;
    }
    let clear = match words {
        [operator, _] => operator.known(),
        [_, operator, _] => COMPARISONS.iter().any(|comparison| operator.is(comparison)),
        _ => false,
    };
    let unclear = |word: &&Argument| word.loose() || word.glob || !clear && !word.known();
    if let Some(word) = words.iter().find(unclear) {
        return deny(
            Rule::CommandArgument,
            format!("`{}` could become another test. Quote it, and test one thing.", word.text),
        );
    }
    if words.iter().any(|word| word.is("-v") || word.is("-R")) {
        return deny(Rule::CommandFlag, "`test -v` runs what it is given. Leave it out.");
    }
    for word in words.iter().filter(|word| word.known()) {
        if word.text.starts_with(['/', '~', '.']) || word.tilde {
            walk.file(word, call)?;
        }
    }
    Ok(())
}

/// The arguments that are no options, if no option is refused.
fn operands<'c>(call: &Call<'c>, refused: &[&str], valued: &[&str]) -> Walked<Vec<&'c Argument>> {
    let mut operands = Vec::new();
    let mut words = call.arguments.iter();
    let mut options = true;
    while let Some(word) = words.next() {
        if !options || !word.text.starts_with('-') || word.text == "-" {
            if word.text != "-" {
                operands.push(word);
            }
            continue;
        }
        let text = word.literal()?;
        if text == "--" {
            options = false;
        } else if refused.iter().any(|refused| is_option(text, refused)) {
            return deny(
                Rule::CommandFlag,
                format!(
                    "`{} {text}` waits, writes, follows links or runs more. Leave it out.",
                    call.program
                ),
            );
        } else if valued.contains(&text) {
            words.next().map_or(Ok(()), stays_one)?;
        }
    }
    Ok(operands)
}

/// The value of an option has to stay one word: of `head -n $n` a file could become.
fn stays_one(word: &Argument) -> Walked<()> {
    if word.loose() || word.glob || word.tilde {
        return word.literal().map(|_| ());
    }
    Ok(())
}

/// `jq`: its filter reads nothing but the files behind it.
fn jq(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    const LETTERS: &str = "rcesnSMCj";
    const LONG: &[&str] =
        &["--raw-output", "--compact-output", "--slurp", "--sort-keys", "--exit-status", "--tab"];
    let mut filter = None;
    for word in call.arguments {
        let text = word.text.as_str();
        let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty());
        if let Some(letters) = letters {
            if !LONG.contains(&text) && !letters.chars().all(|c| LETTERS.contains(c)) {
                return deny(
                    Rule::CommandFlag,
                    format!("`jq {text}` may read more files. Use a filter, and files to read."),
                );
            }
        } else if filter.is_some() {
            walk.file(word, call)?;
        } else {
            let text = word.literal()?;
            if ["import", "include", "modulemeta"].iter().any(|word| text.contains(word)) {
                return deny(Rule::CommandFlag, "`jq` loads no modules here. Leave them out.");
            }
            filter = Some(text);
        }
    }
    Ok(())
}

/// Whether a written option is this one: also shortened, in a bundle, or with
/// its value.
pub(super) fn is_option(written: &str, option: &str) -> bool {
    match (written.strip_prefix("--"), option.strip_prefix("--")) {
        (Some(written), Some(option)) => {
            let name = written.split('=').next().unwrap_or_default();
            !name.is_empty() && option.starts_with(name)
        }
        (None, None) => match (option.chars().nth(1), written.strip_prefix('-')) {
            (Some(letter), Some(bundle)) => bundle.contains(letter),
            _ => false,
        },
        _ => false,
    }
}

impl Walk<'_> {
    /// Judges a file that is read; wildcards may stand behind a plain beginning.
    pub(super) fn file(&self, word: &Argument, call: &Call<'_>) -> Walked<()> {
        if !word.glob {
            return self.reads(word.literal()?, call.from);
        }
        self.wild_file(word, call)
    }
}
