//! Command lines: every simple command in a line is judged.
//!
//! The walk goes through the whole tree, knows in which directories a command
//! may find itself after `cd`, and which values a `for` gives to its variable.

mod argument;
mod awk;
mod commit;
mod filters;
mod find;
mod git;
mod go;
mod grep;
mod hints;
mod make;
mod manners;
mod programs;
mod sed;
mod simple;
mod whereabouts;
mod wildcards;

use std::cell::Cell;
use std::collections::BTreeMap;

use argument::Argument;
pub(crate) use simple::is_found;
use whereabouts::{After, Directories, Trust, stays};

use super::Policy;
use super::ground::{Found, Ground};
use super::paths::{User, Zone, without_dots};
use super::shell::{self, HereText, LONGEST, Link, Node, Redirect};
use super::verdict::{Denial, Judged, Rule, deny};

/// How many simple commands are judged in one line; loops count each time.
const MOST_STEPS: usize = 300;
/// How many paths are looked up for one line.
const MOST_LOOKS: usize = 1000;

type Walked<T> = Result<T, Denial>;

/// One command line on its way through the rules.
struct Walk<'w> {
    policy: &'w Policy,
    ground: &'w dyn Ground,
    texts: &'w [HereText],
    /// What the variables of the loops around are now.
    known: BTreeMap<String, Argument>,
    /// Where the loops around began.
    loops: Vec<Directories>,
    steps: Cell<usize>,
    looks: Cell<usize>,
    trust: Trust,
    /// Whether the line itself makes files.
    makes: Cell<bool>,
    /// Whether it moves or removes some.
    moves: Cell<bool>,
}

impl Policy {
    pub(super) fn judge_command(&self, line: &str, cwd: &str, ground: &dyn Ground) -> Judged {
        if line.len() > LONGEST {
            return deny(
                Rule::CommandTooLong,
                "the command is longer than 64 KiB. Write files with the Write tool.",
            );
        }
        let strange = |c: char| c != '\n' && c != '\t' && c != '\\' && super::paths::is_strange(c);
        let plain = without_joined_emoji(line);
        if let Some(c) = plain.chars().find(|c| strange(*c)) {
            return deny(
                Rule::CommandSyntax,
                format!("the command contains the character {}. Leave it out.", c.escape_unicode()),
            );
        }
        let script = match shell::parse(line) {
            Ok(script) => script,
            Err(unclear) => {
                return deny(
                    Rule::CommandSyntax,
                    format!(
                        "{} is not understood here. Instead: {}.",
                        unclear.what, unclear.instead
                    ),
                );
            }
        };
        let mut trust = Trust { directories: true, names: true };
        loop {
            let mut walk = Walk {
                policy: self,
                ground,
                texts: &script.texts,
                known: BTreeMap::new(),
                loops: Vec::new(),
                steps: Cell::new(0),
                looks: Cell::new(0),
                trust,
                makes: Cell::new(false),
                moves: Cell::new(false),
            };
            walk.node(&script.body, &Directories::from([cwd.to_owned()]))?;
            let (makes, moves) = (walk.makes.get(), walk.moves.get());
            let justified = Trust { directories: !moves, names: !moves && !makes };
            if trust == justified || !trust.names {
                return Ok(Rule::CommandAllowed);
            }
            // A line that changes files is judged again, without that trust.
            trust = justified;
        }
    }
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, from: &Directories) -> Walked<After> {
        match node {
            Node::Simple(simple) => self.simple(simple, from),
            Node::Pipeline(nodes) => {
                for node in nodes {
                    self.node(node, from)?;
                }
                Ok(After::unchanged(from))
            }
            Node::Chain { first, rest } => {
                let mut after = self.node(first, from)?;
                for (link, node) in rest {
                    match link {
                        Link::And => {
                            let next = self.node(node, &after.success)?;
                            after.success = next.success;
                            after.failure = &after.failure | &next.failure;
                            after.stray = &after.stray | &next.stray;
                        }
                        Link::Or => {
                            let strayed = std::mem::take(&mut after.stray);
                            if !strayed.is_empty() {
                                after.stray = self.node(node, &strayed)?.anywhere();
                            }
                            if !after.failure.is_empty() {
                                let next = self.node(node, &after.failure)?;
                                after.success = &after.success | &next.success;
                                after.failure = next.failure;
                                after.stray = &after.stray | &next.stray;
                            }
                        }
                    }
                }
                Ok(after)
            }
            Node::Sequence(nodes) => {
                let mut after = After::unchanged(from);
                for node in nodes {
                    after = self.node(node, &after.either())?;
                }
                Ok(after)
            }
            Node::Not(node) => {
                let after = self.node(node, from)?;
                let success = after.failed();
                Ok(After { success, failure: after.success, stray: Directories::new() })
            }
            Node::Subshell { body, redirects } => {
                self.redirects(redirects, from)?;
                self.node(body, from)?;
                Ok(After::unchanged(from))
            }
            Node::Group { body, redirects } => {
                self.redirects(redirects, from)?;
                self.node(body, from)
            }
            Node::If { branches, otherwise, redirects } => {
                self.redirects(redirects, from)?;
                let mut from = from.clone();
                let mut ends = Directories::new();
                for (condition, then) in branches {
                    let after = self.node(condition, &from)?;
                    ends.extend(self.node(then, &after.success)?.either());
                    from = after.failed();
                }
                match otherwise {
                    Some(node) => ends.extend(self.node(node, &from)?.either()),
                    None => ends.extend(from),
                }
                Ok(After::unchanged(&ends))
            }
            Node::Loop { condition, body, redirects } => {
                self.redirects(redirects, from)?;
                self.loops.push(from.clone());
                let after = self.node(condition, from)?;
                let end = self.node(body, &after.success)?.either();
                self.loops.pop();
                stays(from, &(&end | &after.anywhere()))
            }
            Node::For { name, words, body, redirects } => {
                self.redirects(redirects, from)?;
                if !is_own_name(name) {
                    return deny(
                        Rule::CommandEnvironment,
                        format!("`{name}` may mean something to commands. Use a short lower name."),
                    );
                }
                let mut ends = from.clone();
                self.loops.push(from.clone());
                for word in words {
                    let value = self.argument(word, from)?;
                    if value.text.starts_with('-') || !value.known() || value.tilde {
                        return deny(
                            Rule::CommandArgument,
                            "the values of a `for` are not written out. List plain names.",
                        );
                    }
                    self.known.insert(name.clone(), value);
                    ends.extend(self.node(body, from)?.either());
                }
                self.known.remove(name);
                self.loops.pop();
                stays(from, &ends)
            }
        }
    }

    /// `break` and `continue`, from where the loops around began.
    fn leaves_loop(&self, arguments: &[Argument], from: &Directories) -> Walked<After> {
        let plain = arguments
            .iter()
            .all(|word| word.literal().is_ok_and(|text| text.chars().all(|c| c.is_ascii_digit())));
        if !plain || !self.loops.iter().all(|begun| from.is_subset(begun)) {
            return deny(
                Rule::CommandArgument,
                "a loop is left in another directory than it began. Use `( cd DIR && ... )`.",
            );
        }
        Ok(After::unchanged(from))
    }

    /// Counts a command; a line that is too much work is not run.
    fn step(&self) -> Walked<()> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return deny(
                Rule::CommandTooLong,
                "the line has too many commands. Use several calls.",
            );
        }
        Ok(())
    }

    fn look(&self) -> Walked<()> {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() > MOST_LOOKS {
            return deny(Rule::CommandTooLong, "the line names too many files. Use several calls.");
        }
        Ok(())
    }

    /// Where `cd` leads from everywhere the shell may be.
    fn change_directory(&self, arguments: &[Argument], from: &Directories) -> Walked<After> {
        let [argument] = arguments else {
            return deny(
                Rule::CommandArgument,
                "`cd` needs one directory. Name one in the workspace.",
            );
        };
        let path = argument.literal()?;
        if path.starts_with('-') {
            return deny(Rule::CommandFlag, "`cd` takes no options here. Name the directory.");
        }
        let mut success = Directories::new();
        for cwd in from {
            self.look()?;
            let place = self.policy.place(path, cwd, self.ground)?;
            let Zone::Inside(inside) = place.zone else {
                return deny(
                    Rule::PathOutside,
                    format!("`{path}` is outside of the workspace. Stay in it."),
                );
            };
            // The shell remembers a link it went through when it goes up again,
            // and the system does not.
            let spelled = if path.starts_with('/') { path } else { &format!("{cwd}/{path}") };
            let real = without_dots(&format!("{}/{inside}", self.ground.workspace()));
            if without_dots(spelled) != real {
                return deny(
                    Rule::PathStrange,
                    format!("`{path}` goes through a symbolic link. Use `cd {real}`."),
                );
            }
            if place.found != Found::Directory {
                return deny(
                    Rule::CommandArgument,
                    format!("`{path}` is no directory here. Use one that exists."),
                );
            }
            self.policy.judge_read(path, cwd, self.ground, User::Shell)?;
            success.insert(real);
        }
        if self.trust.directories {
            return Ok(After { success, failure: Directories::new(), stray: from.clone() });
        }
        Ok(After { success, failure: from.clone(), stray: Directories::new() })
    }

    fn redirects(&mut self, redirects: &[Redirect], from: &Directories) -> Walked<()> {
        for redirect in redirects {
            match redirect {
                Redirect::Duplicate | Redirect::Text(_) => {}
                Redirect::Word(word) => {
                    self.argument(word, from)?;
                }
                Redirect::Read(word) => {
                    let argument = self.argument(word, from)?;
                    self.reads(argument.literal()?, from)?;
                }
                Redirect::Write(word) => {
                    let argument = self.argument(word, from)?;
                    self.writes(argument.literal()?, from)?;
                }
            }
        }
        Ok(())
    }

    fn reads(&self, path: &str, from: &Directories) -> Walked<()> {
        for cwd in from {
            self.look()?;
            self.policy.judge_read(path, cwd, self.ground, User::Shell)?;
        }
        Ok(())
    }

    fn writes(&self, path: &str, from: &Directories) -> Walked<()> {
        self.makes.set(true);
        for cwd in from {
            self.look()?;
            self.policy.judge_write(path, cwd, self.ground, User::Shell)?;
        }
        Ok(())
    }
}

/// The line without the sign that makes one picture out of two. Elsewhere it
/// cannot be seen.
fn without_joined_emoji(line: &str) -> String {
    const JOINER: char = '\u{200d}';
    let picture = |c: char| matches!(c, '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}');
    let mut kept = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let behind = kept.ends_with(|c| picture(c) || c == '\u{fe0f}');
        if c != JOINER || !behind || !rest.peek().is_some_and(|next| picture(*next)) {
            kept.push(c);
        }
    }
    kept
}

/// Whether a variable means nothing to any program: setting `PATH` in a `for`
/// is setting it.
fn is_own_name(name: &str) -> bool {
    // To other shells than bash these mean something in small letters.
    const TAKEN: &[&str] = &["path", "cdpath", "fpath", "prompt", "argv", "status", "psvar"];
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    plain
        && !TAKEN.contains(&name)
        && name.len() <= 16
        && !name.starts_with("npm_")
        && !name.ends_with("_proxy")
}
