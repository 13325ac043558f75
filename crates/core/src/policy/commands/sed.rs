//! `sed`, as far as it passes text on: its scripts may print, leave out and
//! replace lines. Those that read or write other files, or run something, are
//! refused; so is everything in a script that is not known.

use std::iter::Peekable;
use std::str::Chars;

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::simple::Call;
use super::{Walk, Walked};

/// Letters without a value.
const LETTERS: &str = "nErsuz";

/// Long options without a value.
const LONG: &[&str] =
    &["--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data"];

/// Commands of one letter that stay within the lines that are read.
const COMMANDS: &str = "pd=nNPDhHgGxl";

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let (mut in_place, mut options) = (false, true);
    let mut words = call.arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if !options || !text.starts_with('-') || text == "-" {
            files.push(word);
            continue;
        }
        match word.literal()? {
            "--" => options = false,
            "-i" | "--in-place" => in_place = true,
            text if LONG.contains(&text) => {}
            text => {
                let bundle = &text[1..];
                let letters = bundle.strip_suffix('e').unwrap_or(bundle);
                if !letters.chars().all(|c| LETTERS.contains(c)) {
                    return refuse(text);
                }
                if letters.len() < bundle.len() {
                    scripts.push(words.next().map_or(Ok(""), Argument::literal)?);
                }
            }
        }
    }
    if scripts.is_empty() && !files.is_empty() {
        scripts.push(files.remove(0).literal()?);
    }
    if let Some(script) = scripts.iter().find(|script| !is_plain(script)) {
        return refuse(script);
    }
    // Whoever wants files to be changed by it lists it.
    if in_place && !walk.is_listed("sed") {
        return deny(Rule::CommandFlag, "`sed -i` changes files. Use the Edit tool.");
    }
    for word in files.into_iter().filter(|word| word.text != "-") {
        if in_place {
            walk.writes(word.literal()?, call.from)?;
        } else {
            walk.file(word, call)?;
        }
    }
    Ok(())
}

fn refuse(what: &str) -> Walked<()> {
    deny(
        Rule::CommandFlag,
        format!(
            "`sed` with `{what}` may do more than print and replace. Use `sed -n '10,20p' FILE`, \
             or Read and Edit."
        ),
    )
}

/// Whether a script consists of addresses and of commands that are known.
fn is_plain(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace() || ";{}".contains(*c)).is_some() {}
        if rest.peek().is_none() {
            return true;
        }
        if !addresses(&mut rest) {
            return false;
        }
        while rest.next_if(|c| *c == ' ' || *c == '!').is_some() {}
        let ends = match rest.next() {
            Some('{') => continue,
            Some('q' | 'Q') => digits(&mut rest),
            Some('s') => replaces(&mut rest),
            Some(c) => COMMANDS.contains(c),
            None => false,
        };
        while rest.next_if_eq(&' ').is_some() {}
        if !ends || !rest.peek().is_none_or(|c| ";}\n".contains(*c)) {
            return false;
        }
    }
}

fn addresses(rest: &mut Peekable<Chars<'_>>) -> bool {
    loop {
        let fits = match rest.peek() {
            Some('$') => rest.next().is_some(),
            Some('/') => {
                rest.next();
                let good = pattern(rest, '/');
                while rest.next_if(|c| "IM".contains(*c)).is_some() {}
                good
            }
            Some('+' | '~' | '0'..='9') => {
                rest.next();
                digits(rest);
                rest.next_if_eq(&'~').is_none_or(|_| digits(rest))
            }
            _ => true,
        };
        if !fits {
            return false;
        }
        if rest.next_if_eq(&',').is_none() {
            return true;
        }
    }
}

fn digits(rest: &mut Peekable<Chars<'_>>) -> bool {
    while rest.next_if(char::is_ascii_digit).is_some() {}
    true
}

/// `s/this/that/g`, without the flags that write or run.
fn replaces(rest: &mut Peekable<Chars<'_>>) -> bool {
    let Some(limit) = rest.next().filter(|c| "/|,#:@!%".contains(*c)) else { return false };
    let good = pattern(rest, limit) && pattern(rest, limit);
    while rest.next_if(|c| "gpiI".contains(*c) || c.is_ascii_digit()).is_some() {}
    good
}

/// Everything up to a sign that is not escaped. Within brackets programs differ on
/// whether it counts there, so brackets have to be closed before it.
fn pattern(rest: &mut Peekable<Chars<'_>>, limit: char) -> bool {
    let (mut opened, mut closed) = (0, 0);
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                None | Some('\n') => return false,
                Some(_) => {}
            },
            '\n' => return false,
            '[' => opened += 1,
            ']' => closed += 1,
            c if c == limit => return opened == closed,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn scripts_that_only_pass_lines_on_are_plain() {
        for script in [
            "10,40p",
            "5p",
            "$p",
            "$=",
            "p;p",
            "1,5p; 10q",
            "/func main/,/^}/p",
            "/a/,+3p",
            "0~3d",
            "/^$/d",
            "/a/!d",
            "s/a/b/",
            "s/[a-z]*x/y/gI",
            "s|/usr|/opt|g; s,a,b,2p",
            "/x/{p;q}",
            "/x/ { p ; d }",
            "1!G;h;$!d",
        ] {
            assert!(is_plain(script), "{script}");
        }
    }

    #[test]
    fn scripts_that_reach_further_are_not() {
        for script in [
            "1e id",
            "e",
            "s/a/id/e",
            "s/a/b/w x",
            "s/a/b/gw x",
            "w x",
            "1w x",
            "r x",
            "R x",
            "/x/r y",
            "p;w x",
            "{w x\n}",
            "s/a/b\nw x/",
            "s/[/]/w x/p",
            "/[/]/w x/p",
            "s\na\nb\n",
            "sxaxbxe",
            "a text",
            "i\\\ntext",
            "y/a/b/",
            "b x",
            ":x",
            "F",
            "\\,a,w x",
            "#n\nw x",
            "s/a/b",
            "/a",
            "1,2",
            "p w x",
            "z",
            "v",
        ] {
            assert!(!is_plain(script), "{script}");
        }
    }
}
