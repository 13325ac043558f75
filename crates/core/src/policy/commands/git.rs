//! `git`: what its subcommands may be asked to do.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::filters::is_option;
use super::simple::Call;
use super::wildcards::is_wild;
use super::{Walk, Walked, commit, programs};

/// Options that run programs, or read and write beside the repository.
const REFUSED: &[&str] = &[
    "--ext-diff",
    "--textconv",
    "--output",
    "--output-directory",
    "--no-index",
    "--open-files-in-pager",
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--gpg-sign",
    "--show-signature",
    "--tool",
    "--extcmd",
    "--template",
    "--contents",
    "--edit",
    "--interactive",
    "--pathspec-from-file",
    "--stdin",
    "--batch",
    "--batch-check",
    "--batch-command",
    "--filters",
];

/// Options whose value is only text; it may be the next word.
const TEXTS: &[&str] =
    &["--grep", "--author", "--since", "--until", "--after", "--before", "-S", "-G"];

/// Options whose value, if they have one, stands behind `=`.
const FORMATS: &[&str] = &["--format", "--pretty"];

/// Whole options that a refused one begins with.
const HARMLESS: &[&str] = &["--text"];

/// Subcommands that only look.
const LOOKS: &[&str] = &[
    "diff",
    "status",
    "log",
    "show",
    "blame",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "rev-list",
    "merge-base",
    "shortlog",
    "describe",
    "cat-file",
    "name-rev",
    "grep",
];

/// What a bare `git` in the list stands for, besides looking.
const EVERYDAY: &[&str] = &["add", "commit", "rm", "mv", "restore"];

/// Subcommands that reach beyond the task's own work. Listing does not help.
const NEVER: &[&str] = &[
    "config",
    "submodule",
    "worktree",
    "update-ref",
    "symbolic-ref",
    "filter-branch",
    "hook",
    "credential",
    "difftool",
    "mergetool",
    "daemon",
    "send-email",
    "remote",
    "replace",
    "fast-import",
    "bundle",
    "archive",
    "alias",
    "gc",
    "reflog",
    "instaweb",
    "maintenance",
];

pub(super) fn only_looks(words: &[Argument]) -> bool {
    match words {
        [git, sub, ..] => git.is("git") && LOOKS.iter().any(|look| sub.is(look)),
        _ => false,
    }
}

/// The arguments without the messages of a commit.
pub(super) fn without_messages(arguments: &[Argument]) -> Vec<&Argument> {
    if arguments.first().is_some_and(|sub| sub.is("commit")) {
        commit::without_messages(arguments)
    } else {
        arguments.iter().collect()
    }
}

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let Some((sub, arguments)) = call.arguments.split_first() else {
        return deny(Rule::CommandArgument, "`git` alone does nothing. Use `git status`.");
    };
    let sub = sub.literal()?;
    if sub.starts_with('-') {
        return refuse(sub, "in front of the subcommand");
    }
    if NEVER.contains(&sub) {
        return deny(
            Rule::CommandNotAllowed,
            format!("`git {sub}` reaches beyond your own work. Commit, and go on."),
        );
    }
    let listed = &walk.policy.compiled.allowed_commands;
    let named = listed.iter().any(|tokens| tokens.get(1).is_some_and(|token| token == sub));
    if !named && !LOOKS.contains(&sub) && !EVERYDAY.contains(&sub) {
        return deny(
            Rule::CommandNotAllowed,
            format!("`git {sub}` is not allowed by name. Use status, diff, log, add and commit."),
        );
    }
    if sub == "commit" {
        return commit::judge(walk, call, arguments);
    }
    if !LOOKS.contains(&sub) && sub != "add" {
        walk.moves.set(true);
    }
    if let "rm" | "mv" | "restore" = sub {
        programs::changing(walk, call, arguments)?;
    }
    let mut paths_only = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if paths_only || !text.starts_with('-') || text == "-" {
            pathspec(walk, word, call)?;
            if sub == "add" {
                added(walk, word, call)?;
            }
            continue;
        }
        let text = word.literal()?;
        if text == "--" {
            paths_only = true;
            continue;
        }
        option(sub, text)?;
        let begins = |option: &&str| text.starts_with(&format!("{option}="));
        if FORMATS.iter().any(|option| text == *option || begins(option)) {
            // What stands behind `%G` is found out by another program.
            if text.contains("%G") {
                return refuse(text, "here");
            }
            continue;
        }
        // `-L :name:file`
        if text == "-L" {
            walk.pieces(words.next().map_or(Ok(""), Argument::literal)?, call)?;
            continue;
        }
        if TEXTS.contains(&text) {
            let value = words.next().map_or(Ok(""), Argument::literal)?;
            if value.starts_with('-') {
                return refuse(value, "as a value");
            }
            continue;
        }
        if TEXTS.iter().any(begins) || text.starts_with("-S") || text.starts_with("-G") {
            continue;
        }
        walk.plain(word, call)?;
    }
    Ok(())
}

fn option(sub: &str, text: &str) -> Walked<()> {
    let name = text.split('=').next().unwrap_or_default();
    let refused = text.starts_with("--")
        && !HARMLESS.contains(&name)
        && REFUSED.iter().any(|option| is_option(text, option));
    if refused {
        return refuse(text, "here");
    }
    let letters = match sub {
        "add" => "ipef",
        "grep" => "O",
        "rebase" => "xi",
        "stash" | "restore" | "reset" | "checkout" => "p",
        "bisect" => "",
        _ => return Ok(()),
    };
    let bundled = !text.starts_with("--") && text.chars().skip(1).any(|c| letters.contains(c));
    let forced = sub == "add" && (is_option(text, "--force") || is_option(text, "--patch"));
    if bundled || text.starts_with("--") && forced {
        return refuse(text, "here");
    }
    Ok(())
}

fn refuse(option: &str, place: &str) -> Walked<()> {
    deny(
        Rule::CommandFlag,
        format!(
            "`{option}` {place} could run programs, ask questions or leave the workspace. Leave \
             it out."
        ),
    )
}

/// Judges a word that may be a path, a pattern of paths, or a revision.
pub(super) fn pathspec(walk: &Walk<'_>, word: &Argument, call: &Call<'_>) -> Walked<()> {
    let text = word.text.as_str();
    if let Some(magic) = text.strip_prefix(':') {
        // What is left out is not shown.
        if magic.starts_with(['!', '^']) || magic.starts_with("(exclude)") {
            return word.literal().map(|_| ());
        }
        return deny(
            Rule::CommandArgument,
            format!("`{text}` selects files in a way that is not judged. Name the files."),
        );
    }
    if !word.glob && is_wild(text) {
        walk.pattern(text)?;
    }
    walk.plain(word, call)
}

/// What is blocked is not added either; the rest is checked in the commit.
pub(super) fn added(walk: &Walk<'_>, word: &Argument, call: &Call<'_>) -> Walked<()> {
    for cwd in call.from {
        let Ok(place) = walk.policy.place(&word.text, cwd, walk.ground) else { continue };
        let super::Zone::Inside(inside) = place.zone else { continue };
        match walk.policy.judge_change(&inside) {
            Err(denial) if matches!(denial.rule, Rule::PathBlocked | Rule::PathProtected) => {
                return Err(denial);
            }
            _ => {}
        }
    }
    Ok(())
}
