//! Programs that may be listed: their options that run other programs, load
//! other files or leave the workspace.
//!
//! Of programs that are not known here, every argument is still held against
//! the workspace. What a build or test does once it runs is confined by the
//! sandbox, not here.

use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::filters::is_option;
use super::simple::Call;
use super::{Walk, Walked, go, make};

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    match call.program {
        "go" => go::judge(walk, call),
        "make" | "gmake" => make::judge(walk, call),
        "npm" | "pnpm" | "yarn" => npm(walk, call),
        "cargo" => cargo(walk, call),
        "rm" | "rmdir" | "mv" | "touch" | "mkdir" | "chmod" | "truncate" => {
            changing(walk, call, call.arguments)
        }
        "cp" | "install" => {
            for word in call.arguments {
                if word.text.starts_with('-') {
                    walk.plain(word, call)?;
                } else {
                    walk.file(word, call)?;
                }
            }
            let last = call.arguments.len().saturating_sub(1);
            changing(walk, call, &call.arguments[last..])
        }
        _ => {
            if let Some(word) = call.arguments.iter().find(|word| runs_another(call.program, word))
            {
                return refuse(call, &word.text);
            }
            call.arguments.iter().try_for_each(|word| walk.plain(word, call))
        }
    }
}

/// Whether an option has a program run another one.
fn runs_another(program: &str, word: &Argument) -> bool {
    const RUNNING: &[(&str, &[&str])] = &[
        ("rg", &["--pre", "--hostname-bin"]),
        (
            "tar",
            &[
                "-F",
                "-I",
                "--checkpoint-action",
                "--info-script",
                "--new-volume-script",
                "--rsh-command",
                "--to-command",
                "--use-compress-program",
            ],
        ),
        ("rsync", &["-e", "--rsh", "--rsync-path"]),
        ("man", &["-H", "-P", "--html", "--pager"]),
    ];
    const COMPILERS: &[&str] = &["cc", "gcc", "clang", "c++", "g++", "clang++"];
    const LOADING: &[&str] = &["-B", "-fplugin", "-specs", "-wrapper", "-fuse-ld", "-Xclang", "@"];
    let text = word.text.as_str();
    let known = RUNNING.iter().find(|(name, _)| *name == program);
    known.is_some_and(|(_, options)| options.iter().any(|option| is_option(text, option)))
        || COMPILERS.contains(&program) && LOADING.iter().any(|begin| text.starts_with(begin))
}

/// What `timeout` would run.
pub(super) fn timed(arguments: &[Argument]) -> Walked<&[Argument]> {
    let mut rest = arguments;
    while let Some((word, others)) = rest.split_first() {
        let text = word.literal()?;
        rest = others;
        match text {
            "--foreground" | "--preserve-status" | "-v" | "--verbose" => {}
            "-k" | "-s" | "--kill-after" | "--signal" => {
                rest = rest.split_first().map_or(rest, |(_, others)| others);
            }
            text if text.starts_with("--kill-after=") || text.starts_with("--signal=") => {}
            text if text.starts_with(|c: char| c.is_ascii_digit()) => return Ok(rest),
            _ => break,
        }
    }
    deny(Rule::CommandArgument, "`timeout` is not understood. Write `timeout SECONDS COMMAND`.")
}

pub(super) fn refuse(call: &Call<'_>, option: &str) -> Walked<()> {
    let program = call.program;
    deny(
        Rule::CommandFlag,
        format!("`{program} {option}` could run or load something else. Leave it out."),
    )
}

/// Programs that change the files they are given.
pub(super) fn changing(walk: &Walk<'_>, call: &Call<'_>, files: &[Argument]) -> Walked<()> {
    let elsewhere = |word: &&Argument| {
        word.text.starts_with("-t") || word.text.starts_with("--t") || word.text.contains("--ref")
    };
    if let Some(word) = call.arguments.iter().find(elsewhere) {
        return refuse(call, &word.text);
    }
    walk.moves.set(true);
    for word in files.iter().filter(|word| !word.text.starts_with('-')) {
        for cwd in call.from {
            let paths = if word.glob {
                walk.wild_file(word, call)?;
                walk.matches(&word.text, cwd)?
            } else {
                vec![word.literal()?.to_owned()]
            };
            for path in paths {
                walk.look()?;
                let place = walk.policy.place(&path, cwd, walk.ground)?;
                if let super::Zone::Inside(inside) = place.zone {
                    walk.policy.judge_change(&inside)?;
                }
            }
        }
    }
    Ok(())
}

fn npm(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    const ACCEPTED: &[&str] = &[
        "-s",
        "-q",
        "-d",
        "-dd",
        "-w",
        "-ws",
        "--silent",
        "--quiet",
        "--verbose",
        "--if-present",
        "--workspace",
        "--workspaces",
        "--loglevel",
        "--color",
        "--no-color",
        "--ignore-scripts",
        "--no-fund",
        "--no-audit",
        "--foreground-scripts",
        "-r",
        "--recursive",
        "--filter",
    ];
    // npm takes every option up to `--` for its own, the others those in front of
    // the script.
    let script = if call.program == "npm" { usize::MAX } else { 1 + usize::from(runs(call)) };
    let mut own = true;
    let mut names = 0;
    for word in call.arguments {
        let text = word.text.as_str();
        names += usize::from(!text.starts_with('-'));
        own &= names < script || !text.starts_with('-');
        if own && text == "--" {
            own = false;
        } else if own && text.starts_with('-') {
            let name = text.split('=').next().unwrap_or_default();
            if !ACCEPTED.contains(&name) {
                return refuse(call, text);
            }
        }
        if own {
            walk.plain(word, call)?;
        } else {
            walk.script_argument(word, call)?;
        }
    }
    Ok(())
}

/// Whether a script is named behind `run`.
fn runs(call: &Call<'_>) -> bool {
    call.arguments.first().is_some_and(|word| word.is("run"))
}

fn cargo(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    let mut own = true;
    for word in call.arguments {
        let text = word.text.as_str();
        own &= text != "--";
        let refused = ["--config", "--registry", "--index", "--git"]
            .iter()
            .any(|option| text == *option || text.starts_with(&format!("{option}=")));
        let short = text.starts_with("-Z") || text.starts_with("-C") || text.starts_with('+');
        if own && (refused || short) {
            return refuse(call, text);
        }
        if !own && runs(call) {
            walk.own_argument(word, call)?;
        } else {
            walk.plain(word, call)?;
        }
    }
    Ok(())
}

impl Walk<'_> {
    /// Judges an argument of a program that may take it for a file.
    pub(super) fn plain(&self, word: &Argument, call: &Call<'_>) -> Walked<()> {
        if word.glob {
            return self.file(word, call);
        }
        let text = word.literal()?;
        let Some(option) = text.strip_prefix('-') else { return self.pieces(text, call) };
        if let Some((_, value)) = option.split_once('=') {
            return self.pieces(value, call);
        }
        if option.starts_with('-') {
            return Ok(());
        }
        // `-I/usr/include`: the value stands right behind the letter, or behind
        // several.
        let mut rest = option.chars();
        rest.next();
        self.pieces(rest.as_str(), call)?;
        option.find(['/', '~', '.']).map_or(Ok(()), |at| self.pieces(&option[at..], call))
    }

    /// Judges everything in a text that could be a path.
    pub(super) fn pieces(&self, text: &str, call: &Call<'_>) -> Walked<()> {
        let address = text.contains("://") && !text.contains("file:");
        for piece in text.split(['=', ',', ':']) {
            let absolute = piece.starts_with(['/', '~']);
            let climbs = piece.split('/').any(|part| part == "..");
            if piece.is_empty() || address && piece.starts_with("//") {
                continue;
            }
            if !absolute && !climbs && piece.chars().any(super::super::paths::is_strange) {
                continue;
            }
            for cwd in call.from {
                self.look()?;
                let user = super::User::Tool;
                self.policy.judge_read(piece, cwd, self.ground, user)?;
            }
        }
        Ok(())
    }
}
