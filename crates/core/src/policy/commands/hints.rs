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
        "export" | "declare" | "typeset" | "local" | "readonly" | "env" | "let" | "getopts" => {
            "sets variables for other commands. Put harmless ones in front of the command itself: \
             `CI=1 npm test`"
        }
        "read" | "mapfile" | "readarray" => {
            "gives values to variables that nobody can follow. Use `for f in a b; do ...; done`"
        }
        "nohup" | "setsid" | "disown" | "bg" | "at" | "batch" | "crontab" => {
            "leaves commands running. Run them in the foreground"
        }
        "sudo" | "su" | "doas" | "chroot" | "unshare" | "nsenter" => {
            "changes who a command runs as. Go on without it"
        }
        "xargs" | "parallel" | "watch" | "script" | "expect" | "nice" | "ionice" | "stdbuf" => {
            "runs other commands. Use `for f in src/*.x; do ...; done`, or `grep -r` for a search"
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
        ("fd" | "tree" | "locate", _) => "Use the Glob tool, `ls -R` or `find . -name`",
        ("rg" | "ag" | "ack", _) => "Use the Grep tool, or `grep -rn`",
        ("gawk" | "perl" | "ed" | "ex" | "vi" | "vim" | "nano" | "patch", _) => {
            "Use Read to look, and Edit to change a file"
        }
        ("less" | "more" | "bat" | "xxd" | "hexdump" | "strings", _) => "Use Read, `cat` or `od`",
        ("sleep" | "wait" | "ps" | "pgrep" | "kill" | "jobs" | "lsof", _) => {
            "Every command has ended when its call returns, so there is nothing to wait for or to \
             end"
        }
        ("python" | "python3" | "node" | "ruby" | "perl5" | "deno" | "bun", _) => {
            "Put the code into a test, and run that"
        }
        ("mkdir" | "touch", _) => "Use Write: it makes the directories of a new file",
        ("cp" | "mv" | "install" | "dd", _) | ("git", "mv") => "Use Read and Write",
        ("rm" | "rmdir" | "unlink" | "shred", _) | ("git", "rm") => {
            "Files cannot be deleted here; say in your answer which should be"
        }
        ("curl" | "wget" | "nc" | "ssh" | "scp" | "ping", _) => "There is no network here",
        ("bash" | "sh" | "zsh" | "dash" | "fish", _) => "Call the command itself, without a shell",
        ("pip" | "pip3", "list" | "show" | "freeze") | ("npm", "ls" | "list" | "outdated") => {
            "Read the project's manifest and lock file instead"
        }
        ("pip" | "pip3" | "gem" | "apt" | "apt-get" | "brew", _)
        | ("go", "get" | "install" | "mod")
        | ("npm" | "pnpm" | "yarn", "install" | "i" | "ci" | "add" | "exec" | "publish")
        | ("cargo", "add" | "install" | "update") => {
            "Dependencies are not changed by agents; say in your answer what is needed"
        }
        ("npx" | "bunx", _) => "Use a script of the project",
        ("git", "checkout") if words.iter().any(|word| word.is("--")) => {
            "Use Edit to take a change back"
        }
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
            "Stay on the branch you are on, and commit there; `git status -sb` names it"
        }
        "merge" | "rebase" | "cherry-pick" | "reset" | "revert" | "filter-branch" => {
            "Leave the history as it is, and commit on top of it"
        }
        "stash" | "clean" | "restore" => "Use Edit to take a change back",
        "grep" => "Use the Grep tool, or `grep -rn`",
        "show" => "Use `git log -p -1 REVISION` or `git diff REVISION~1 REVISION`",
        "rev-parse" => "Use `git log -1 --format=%H`",
        "ls-files" | "ls-tree" => "Use the Glob tool, or `find`",
        "blame" => "Use `git log -L 10,20:FILE`",
        "config" => "Leave git's settings as they are",
        sub if sub.starts_with('-') => "Call git without options in front of the subcommand",
        _ => return None,
    })
}
