//! Real shells with nothing to run: no program is found, and what was looked for
//! is written down.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::voices::Voices;

/// How a command line reaches a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `bash -c LINE`, as the embedded agent does.
    Bash,
    /// `eval LINE` in a bash, as other agent programs do.
    Eval,
    /// `sh -c LINE`, as acceptance commands are run.
    Sh,
}

impl Shell {
    pub const ALL: [Shell; 3] = [Shell::Bash, Shell::Eval, Shell::Sh];
}

impl fmt::Display for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shell::Bash => "bash",
            Shell::Eval => "bash eval",
            Shell::Sh => "sh",
        })
    }
}

/// A command that was about to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    pub cwd: PathBuf,
    pub words: Vec<String>,
}

/// What a shell did with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub shell: Shell,
    /// Programs with their arguments.
    pub commands: Vec<Spoken>,
    /// The first words of everything that it ran by itself.
    pub builtins: BTreeSet<String>,
    /// Files that are new or are no longer what they were.
    pub written: Vec<PathBuf>,
    /// It could not make sense of the line.
    pub unreadable: bool,
}

/// A directory with a workspace in it, made anew for every line.
#[derive(Debug)]
pub struct Stage {
    root: PathBuf,
    workspace: PathBuf,
}

/// Files of the workspace. What is in them must not be run either.
const FILES: [(&str, &str); 4] =
    [("src/a", "evil in src/a\n"), ("src/b.txt", "b\n"), ("tests/t", "t\n"), ("E", "evil\n")];

/// Separates what is written down; no line has it.
const MARK: char = '\u{1}';

/// Ends the name of the function that something was traced in.
const END: char = '\u{2}';

/// What bash calls instead of a program that it does not find.
const HANDLER: &str = "command_not_found_handle";

/// No line takes longer, unless it never ends.
const PATIENCE: Duration = Duration::from_secs(3);

impl Stage {
    /// In an empty directory that nobody else uses.
    pub fn in_directory(root: &Path) -> io::Result<Stage> {
        let root = fs::canonicalize(root)?;
        let stage = Stage { workspace: root.join("ws"), root };
        let log = stage.log();
        // Programs are never found; this is called instead, with their words, and
        // says something, as most programs do. Words with line breaks are written in
        // several goes, so every process has a file of its own.
        let handler = format!(
            "{HANDLER}() {{ printf '%s\\0' \"$PWD\" \"$@\" '{MARK}' >> '{0}'.$BASHPID; printf 'out\\n'; }}\n\
             ulimit -t 2; ulimit -f 2000; unset BASH_ENV; PATH=/nonexistent\n\
             exec 9>'{1}'; BASH_XTRACEFD=9; PS4='{MARK}${{FUNCNAME-}}{END}'; set -x\n",
            log.display(),
            stage.trace().display()
        );
        fs::write(stage.root.join("prelude"), handler)?;
        stage.tidy()?;
        Ok(stage)
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// What each process has written down.
    fn logs(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let ours = |path: &PathBuf| path.with_extension("") == self.log();
        names.map(|entry| entry.path()).filter(ours).collect()
    }

    fn trace(&self) -> PathBuf {
        self.root.join("trace")
    }

    /// Puts everything back as it was.
    fn tidy(&self) -> io::Result<()> {
        if self.workspace.exists() {
            fs::remove_dir_all(&self.workspace)?;
        }
        for (path, text) in FILES {
            let path = self.workspace.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&self.workspace))?;
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// Runs one line.
    pub fn run(&self, shell: Shell, line: &str) -> Ran {
        let _ = fs::remove_file(self.trace());
        for log in self.logs() {
            let _ = fs::remove_file(log);
        }
        let before = self.files();
        let mut command = match shell {
            Shell::Bash | Shell::Eval => Command::new("/bin/bash"),
            Shell::Sh => Command::new("/bin/sh"),
        };
        command.env_clear().env("PATH", "/nonexistent").env("HOME", &self.workspace);
        match shell {
            Shell::Bash => command.args(["--norc", "--noprofile", "-c", line]),
            Shell::Eval => {
                command.args(["--norc", "--noprofile", "-c", "eval \"$1\"", "bash", line])
            }
            Shell::Sh => command.env("PS4", format!("{MARK}{END}")).args(["-x", "-c", "--", line]),
        };
        if shell != Shell::Sh {
            command.env("BASH_ENV", self.root.join("prelude"));
        }
        let (mut voices, mouth) = Voices::listen().expect("a pair of sockets");
        command.current_dir(&self.workspace);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(mouth);
        let child = command.spawn();
        // The end that the shell writes to is closed here.
        drop(command);
        if let Ok(mut child) = child {
            let deadline = Instant::now() + PATIENCE;
            let mut pause = Duration::from_micros(300);
            while let Ok(None) = child.try_wait() {
                if Instant::now() > deadline {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                voices.hear();
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
        voices.hear();
        let complaints = voices.one_by_one();
        let trace = if shell == Shell::Sh { complaints.clone() } else { text_of(&self.trace()) };
        let commands =
            if shell == Shell::Sh { not_found(&trace, &self.workspace) } else { self.asked_for() };
        let programs: BTreeSet<&str> =
            commands.iter().filter_map(|it| it.words.first().map(String::as_str)).collect();
        let mut builtins: BTreeSet<String> = traced(&trace).collect();
        builtins.retain(|name| !programs.contains(name.as_str()));
        if shell == Shell::Eval {
            builtins.remove("eval");
        }
        let after = self.files();
        let written: Vec<PathBuf> =
            after.difference(&before).map(|(path, _)| path.clone()).collect();
        if after != before {
            for path in &written {
                let _ = fs::remove_file(path);
            }
            let _ = self.tidy();
        }
        // `test` has errors of syntax of its own.
        let signs = [
            "syntax error near unexpected",
            "syntax error: unexpected",
            "unexpected EOF",
            "Syntax error",
        ];
        let unreadable = signs.iter().any(|sign| complaints.contains(sign));
        Ran { shell, commands, builtins, written, unreadable }
    }

    /// What was looked for and not found.
    fn asked_for(&self) -> Vec<Spoken> {
        let text: String = self.logs().iter().map(|log| text_of(log)).collect();
        let mut found = Vec::new();
        for record in text.split(&format!("{MARK}\0")) {
            let mut words = record.split_terminator('\0').map(str::to_owned);
            if let Some(cwd) = words.next() {
                found.push(Spoken { cwd: cwd.into(), words: words.collect() });
            }
        }
        found
    }

    /// All files with what is in them.
    fn files(&self) -> BTreeSet<(PathBuf, String)> {
        const OURS: [&str; 2] = ["prelude", "trace"];
        let logs = self.logs();
        let mut found = BTreeSet::new();
        let mut directories = vec![self.root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => directories.push(path),
                    _ if logs.contains(&path) => {}
                    _ if OURS.iter().any(|name| path == self.root.join(name)) => {}
                    _ => {
                        let text = text_of(&path);
                        found.insert((path, text));
                    }
                }
            }
        }
        found
    }
}

fn text_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(4 << 20).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What was traced, apart from what the handler does itself.
fn records(trace: &str) -> impl Iterator<Item = &str> {
    let parts = trace.split(MARK).filter_map(|record| record.split_once(END));
    parts.filter(|(function, _)| *function != HANDLER).map(|(_, record)| record)
}

/// The first words of what was traced.
fn traced(trace: &str) -> impl Iterator<Item = String> {
    records(trace).filter_map(|record| {
        let first = record.split([' ', '\n', '\t']).next()?.trim_matches('\'');
        // `name=value` sets a variable; which ones is the policy's business.
        let assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        // Complaints stand among what was traced.
        let counts = !first.is_empty() && !assignment && !first.ends_with(':');
        counts.then(|| first.to_owned())
    })
}

/// What a plain shell could not find, as it says itself: `sh: 1: evil: not found`.
fn not_found(complaints: &str, cwd: &Path) -> Vec<Spoken> {
    let ends = [": not found", ": Permission denied"];
    let named = complaints.lines().filter_map(|line| {
        let rest = ends.iter().find_map(|end| line.strip_suffix(end))?;
        Some(rest.rsplit(": ").next()?.to_owned())
    });
    named.map(|name| Spoken { cwd: cwd.to_owned(), words: vec![name] }).collect()
}
