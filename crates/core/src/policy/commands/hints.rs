//! What to do instead of commands that are not allowed.

use super::argument::Argument;

/// Commands that change how the rest of a line is read or run whatever they are
/// given. They are refused even if they are listed.
pub(super) fn never(program: &str) -> Option<&'static str> {
    Some(match program {
        "eval" | "source" | "." | "exec" | "command" | "builtin" | "trap" => {
            "runs whatever it is given. Call the command itself"
        }
        "alias" | "unalias" | "set" | "shopt" | "enable" | "hash" | "unset" => {
            "changes what later commands mean. Leave it out"
        }
        "export" | "declare" | "typeset" | "local" | "readonly" | "env" | "let" | "read"
        | "mapfile" | "readarray" | "getopts" => "sets variables for other commands. Leave it out",
        "nohup" | "setsid" | "disown" | "bg" | "at" | "batch" | "crontab" => {
            "leaves commands running. Run them in the foreground"
        }
        "sudo" | "su" | "doas" | "chroot" | "unshare" | "nsenter" => {
            "changes who a command runs as. Go on without it"
        }
        "xargs" | "parallel" | "watch" | "script" | "expect" | "nice" | "ionice" | "stdbuf" => {
            "runs other commands. Use `for f in a b; do ...; done`"
        }
        "ln" | "mount" => "makes one file look like another. Use Read and Write",
        "pushd" | "popd" => "is not followed. Use `cd`",
        _ => return None,
    })
}

/// The way to do what a command that is not listed would do.
pub(super) fn instead(words: &[Argument]) -> Option<&'static str> {
    let word = |index: usize| words.get(index).map_or("", |word| word.text.as_str());
    Some(match (word(0), word(1)) {
        ("find" | "fd" | "tree" | "locate", _) => "Use the Glob tool",
        ("rg" | "ag" | "ack" | "egrep" | "fgrep", _) => "Use the Grep tool",
        ("sed" | "awk" | "gawk" | "perl" | "ed" | "ex" | "vi" | "vim" | "nano", _) => {
            "Use Read to look, and Edit to change a file"
        }
        ("less" | "more" | "bat" | "stat" | "file", _) => "Use the Read tool",
        ("mkdir" | "touch", _) => "Use Write: it makes the directories of a new file",
        ("cp" | "mv" | "install" | "dd", _) => "Use Read and Write",
        ("rm" | "rmdir" | "unlink" | "shred", _) => {
            "Files cannot be deleted here; say in your answer which should be"
        }
        ("curl" | "wget" | "nc" | "ssh" | "scp" | "ping", _) => "There is no network here",
        ("bash" | "sh" | "zsh" | "dash" | "fish", _) => "Call the command itself, without a shell",
        ("pip" | "pip3" | "gem" | "apt" | "apt-get" | "brew", _)
        | ("go", "get" | "install" | "mod")
        | ("npm" | "pnpm" | "yarn", "install" | "i" | "ci" | "add" | "exec" | "publish")
        | ("cargo", "add" | "install" | "update") => {
            "Dependencies are not changed by agents; say in your answer what is needed"
        }
        ("npx" | "bunx", _) => "Use a script of the project",
        ("git", sub) => return git(sub),
        (program, _) if program.contains('/') => "Call programs by their name only",
        _ => return None,
    })
}

fn git(sub: &str) -> Option<&'static str> {
    Some(match sub {
        "push" | "pull" | "fetch" | "clone" | "remote" => {
            "Commit your work; Blue Flame takes it from there"
        }
        "checkout" | "switch" | "branch" | "worktree" | "update-ref" | "symbolic-ref" => {
            "Stay on the branch you are on, and commit there"
        }
        "merge" | "rebase" | "cherry-pick" | "reset" | "revert" | "filter-branch" => {
            "Leave the history as it is, and commit on top of it"
        }
        "stash" | "clean" | "restore" => "Use Edit to take a change back",
        "grep" => "Use the Grep tool",
        "rev-parse" | "show" => "Use `git log` or `git diff`",
        sub if sub.starts_with('-') => "Call git without options in front of the subcommand",
        _ => return None,
    })
}
