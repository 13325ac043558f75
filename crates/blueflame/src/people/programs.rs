//! The person's own editor and pager, which are lent the terminal.
//!
//! They are command lines and are given to the shell, as git does it. They
//! write to the terminal and never to standard output. When the question is
//! taken back they are asked to leave; whatever they did to the terminal is
//! undone.

use std::ffi::{OsStr, OsString};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{self, OptionalActions};

use super::terminal::Terminal;
use super::{Cancel, Unanswered};
use crate::child_end;

/// Shows colours, leaves at once when everything fits, leaves the text there.
const USUAL_PAGER: &str = "less -FRX";
const USUAL_EDITOR: &str = "vi";

/// How long a program may take to leave when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the person likes to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The command line of the editor; `None` if none can work here.
    pub editor: Option<OsString>,
    /// The command line of the pager; `None` to print instead.
    pub pager: Option<OsString>,
}

/// How a program went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    Badly,
    /// There is none, or the shell did not find it.
    NotThere,
}

impl Programs {
    pub fn of_environment() -> Self {
        Programs::of(|name| std::env::var_os(name))
    }

    /// `VISUAL` is for terminals that can do more than print lines.
    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        let (editor, pager) = if dumb {
            (set("EDITOR"), set("PAGER"))
        } else {
            let editor = set("VISUAL").or_else(|| set("EDITOR"));
            (editor.or(Some(USUAL_EDITOR.into())), set("PAGER").or(Some(USUAL_PAGER.into())))
        };
        Programs { editor, pager }
    }

    pub(super) fn edit(
        terminal: &Terminal,
        file: &Path,
        cancel: &Cancel,
    ) -> Result<Ended, Unanswered> {
        let Some(editor) = terminal.programs.editor.clone() else { return Ok(Ended::NotThere) };
        let (Ok((input, screen)), Ok((_, errors))) = (terminal.ends(), terminal.ends()) else {
            return Ok(Ended::NotThere);
        };
        let mut command = shell(&editor);
        command.arg(file).stdin(input).stdout(screen).stderr(errors);
        lend(terminal, &mut command, cancel)
    }

    /// The text is given as a file, so that a pager that reads no further
    /// cannot hold us up.
    pub(super) fn page(
        terminal: &Terminal,
        text: &str,
        cancel: &Cancel,
    ) -> Result<Ended, Unanswered> {
        let Some(pager) = terminal.programs.pager.clone() else { return Ok(Ended::NotThere) };
        let (Ok(text), Ok((_, screen)), Ok((_, errors))) =
            (rewound(text), terminal.ends(), terminal.ends())
        else {
            return Ok(Ended::NotThere);
        };
        let mut command = shell(&pager);
        command.stdin(text).stdout(screen).stderr(errors);
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        lend(terminal, &mut command, cancel)
    }
}

/// The command line with room for arguments. A plain one takes the place of the
/// shell, so that asking it to leave reaches the program itself.
fn shell(line: &OsStr) -> Command {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" -_./:,+@".contains(byte);
    let plain = line.as_encoded_bytes().iter().all(is_plain);
    let mut script = OsString::from(if plain { "exec " } else { "" });
    script.push(line);
    script.push(" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(line);
    command
}

fn rewound(text: &str) -> io::Result<Stdio> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Runs a program that has the terminal to itself.
fn lend(terminal: &Terminal, command: &mut Command, cancel: &Cancel) -> Result<Ended, Unanswered> {
    let Ok((input, _)) = terminal.ends() else { return Ok(Ended::NotThere) };
    let modes = termios::tcgetattr(&input);
    let Ok(mut child) = command.spawn() else { return Ok(Ended::NotThere) };
    terminal.lent().set(true);
    let ended = wait(&mut child, cancel);
    if ended.is_err() {
        dismiss(&mut child);
    }
    terminal.lent().set(false);
    if let Ok(modes) = modes {
        // A terminal that is gone needs no modes.
        let _ = termios::tcsetattr(&input, OptionalActions::Now, &modes);
    }
    ended
}

fn wait(child: &mut Child, cancel: &Cancel) -> Result<Ended, Unanswered> {
    loop {
        match child_end::wait_beside(child, cancel.signal()) {
            Ok(Some(status)) => {
                return Ok(match status.code() {
                    Some(0) => Ended::Well,
                    // What the shell says of a program that cannot be run.
                    Some(126 | 127) => Ended::NotThere,
                    Some(_) | None => Ended::Badly,
                });
            }
            Ok(None) => cancel.check()?,
            Err(_) => return Ok(Ended::Badly),
        }
    }
}

/// Asks a program to leave, then makes it.
fn dismiss(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
    if !matches!(child_end::wait_until(child, Instant::now() + PATIENCE), Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_gets_only_what_was_chosen_for_it() {
        for (variables, editor, pager) in [
            (&[("TERM", "xterm")][..], Some("vi"), Some("less -FRX")),
            (
                &[("TERM", "xterm"), ("VISUAL", "code -w"), ("EDITOR", "ed")],
                Some("code -w"),
                Some("less -FRX"),
            ),
            (&[("TERM", "xterm"), ("EDITOR", "ed"), ("PAGER", "more")], Some("ed"), Some("more")),
            (&[("TERM", "xterm"), ("EDITOR", "")], Some("vi"), Some("less -FRX")),
            (&[("TERM", "dumb"), ("VISUAL", "vim")], None, None),
            (&[("VISUAL", "vim"), ("EDITOR", "ed")], Some("ed"), None),
        ] {
            let value = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            };
            let expected =
                Programs { editor: editor.map(Into::into), pager: pager.map(Into::into) };
            assert_eq!(Programs::of(value), expected, "{variables:?}");
        }
    }
}
