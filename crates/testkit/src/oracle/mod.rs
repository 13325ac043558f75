//! A shell as the oracle of the policy: whatever the policy allows is run by a
//! real shell that finds no program, and what the shell was about to run is
//! judged again, word for word.
//!
//! Lines are made by chance ([`lines`]) from everything that shells read in
//! surprising ways. A line that is allowed and runs what is forbidden is
//! [`Unsound`]; it comes with the seed that makes it again.

pub mod lines;
pub mod shells;
mod voices;

use std::fmt;
use std::path::Path;

use lines::Chance;
use shells::{Ran, Shell, Stage};

/// What the policy says about a command line in a directory.
pub trait Judge {
    /// The rule by which the line is refused, or `None` if it may be run.
    fn refuses(&self, line: &str, cwd: &Path) -> Option<String>;

    /// The same for a line that a plain `sh` is to run.
    fn refuses_for_sh(&self, line: &str) -> Option<String>;

    /// The same for a file that is written.
    fn refuses_write(&self, path: &Path) -> Option<String>;
}

/// A disagreement between the policy and a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound {
    pub seed: u64,
    pub shell: Shell,
    pub line: String,
    pub what: String,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsound { seed, shell, line, what } = self;
        write!(f, "seed {seed}, {shell}: {line:?} {what}")
    }
}

/// How much was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub generated: u64,
    pub allowed: u64,
    pub executed: u64,
    /// Commands that the shells were about to run, and that were judged again.
    pub commands: u64,
    /// Lines that were allowed and that the shell could not read.
    pub unreadable: u64,
    pub unsound: Vec<Unsound>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} lines generated, {} allowed, {} executed, {} commands judged again, \
             {} unreadable, {} unsound",
            self.generated,
            self.allowed,
            self.executed,
            self.commands,
            self.unreadable,
            self.unsound.len()
        )
    }
}

/// Tries the line of one seed.
pub fn try_seed(seed: u64, judge: &dyn Judge, stage: &Stage, tally: &mut Tally) {
    let mut chance = Chance::of(seed);
    let line = lines::line(&mut chance);
    tally.generated += 1;
    let nothing = line.trim().is_empty() || line.contains('\0');
    if nothing || judge.refuses(&line, stage.workspace()).is_some() {
        return;
    }
    tally.allowed += 1;
    // Where no payload is, there is little to be found.
    if !line.contains("evil") && chance.below(4) > 0 {
        return;
    }
    let shells = [Shell::Bash, if chance.below(2) == 0 { Shell::Eval } else { Shell::Sh }];
    for shell in shells {
        if shell == Shell::Sh && judge.refuses_for_sh(&line).is_some() {
            continue;
        }
        tally.executed += 1;
        let ran = stage.run(shell, &line);
        if ran.unreadable {
            tally.unreadable += 1;
        }
        tally.commands += ran.commands.len() as u64;
        if let Some(what) = wrong(&ran, judge) {
            tally.unsound.push(Unsound { seed, shell, line: line.clone(), what });
        }
    }
}

/// What was forbidden in what a shell did.
pub fn wrong(ran: &Ran, judge: &dyn Judge) -> Option<String> {
    // A plain shell does not say where one word ends and the next begins.
    if let Shell::Sh = ran.shell {
        let name = ran.commands.iter().find_map(|command| {
            let name = command.words.first()?;
            (!lines::PROGRAMS.contains(&name.as_str())).then_some(name)
        });
        if let Some(name) = name {
            return Some(format!("runs {name:?}"));
        }
    }
    for command in ran.commands.iter().filter(|_| ran.shell != Shell::Sh) {
        let line = quoted(&command.words);
        if let Some(rule) = judge.refuses(&line, &command.cwd)
            && !is_about_text(&rule, &command.words)
        {
            return Some(format!("runs {line:?}: {rule}"));
        }
    }
    if ran.unreadable && ran.shell != Shell::Sh {
        return Some("cannot be read".to_owned());
    }
    // A program whose redirection fails is traced and not run.
    let known = |name: &str| HARMLESS.contains(&name) || lines::PROGRAMS.contains(&name);
    let builtin = ran.builtins.iter().find(|name| !known(name));
    if let Some(name) = builtin {
        return Some(format!("makes the shell run {name:?}"));
    }
    let written = ran.written.iter().find_map(|path| Some((path, judge.refuses_write(path)?)));
    written.map(|(path, rule)| format!("writes `{}`: {rule}", path.display()))
}

/// What a line says is known only when it is run, and what programs print is
/// not what they would print.
fn is_about_text(rule: &str, words: &[String]) -> bool {
    // Patterns look at what is written, and these only pass text on.
    let passes_on = |name: &String| ["basename", "dirname", "tr"].contains(&name.as_str());
    matches!(rule, "commit.format" | "commit.message" | "commands.argument" | "commands.syntax")
        || rule == "commands.blocked" && words.first().is_some_and(passes_on)
}

/// What a shell may do by itself.
const HARMLESS: &[&str] = &[
    "echo", "printf", "test", "[", "cd", "pwd", "true", "false", ":", "for", "set", "exit",
    "break", "continue",
];

fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
