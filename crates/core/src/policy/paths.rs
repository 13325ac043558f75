//! Paths: where they really lead, and whether that may be read or written.
//!
//! A path is judged by where it leads, never by how it is spelled. It has to
//! mean the same whether `..` is taken out of the text, as tools do, or
//! followed through links, as the system does.

use crate::path_rules::blocks;

use super::Policy;
use super::ground::{Found, Ground, Resolved};
use super::protected::{is_git, is_protected, steering};
use super::rules::{Scope, fold};
use super::secrets;
use super::verdict::{Denial, Judged, Rule, deny};

/// Directories of the system that stand for something else.
const ALIASES: &[&str] = &["/proc", "/sys", "/dev"];

/// How long and how deep a path may be; judging it takes time.
const LONGEST: usize = 1024;
const DEEPEST: usize = 64;

/// Where a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub zone: Zone,
    pub found: Found,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Relative to the workspace; empty for the workspace itself.
    Inside(String),
    /// In a directory for temporary files.
    Temporary,
    /// Among the skills that the agent was given.
    Skills,
    Null,
}

/// Who wants to use a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    /// A tool that is given a path: it stays in the workspace.
    Tool,
    /// A shell command, which may pass files on through temporary ones.
    Shell,
}

impl Policy {
    /// Finds out where a path leads that was written while in `cwd`.
    pub(super) fn place(
        &self,
        path: &str,
        cwd: &str,
        ground: &dyn Ground,
    ) -> Result<Place, Denial> {
        if let Some(c) = path.chars().find(|c| is_strange(*c)) {
            let shown = c.escape_unicode();
            return deny(
                Rule::PathStrange,
                format!("the path contains the character {shown}. Use a plain name."),
            );
        }
        let deep = path.matches('/').count() > DEEPEST;
        if path.is_empty() || path.len() > LONGEST || deep {
            return deny(Rule::PathStrange, "the path is empty or too long. Name a file.");
        }
        if path.starts_with('~') || path.contains("://") {
            return deny(Rule::PathOutside, outside(path, ground));
        }
        let full = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
        let spelled = without_dots(&full);
        if spelled == "/dev/null" {
            return Ok(Place { zone: Zone::Null, found: Found::Special });
        }
        if ALIASES.iter().any(|alias| lies_in(&spelled, alias) || lies_in(&full, alias)) {
            return deny(Rule::PathOutside, outside(path, ground));
        }
        let resolved = ground.resolve(&spelled);
        if full.split('/').any(|name| name == "..") && ground.resolve(&full) != resolved {
            return deny(
                Rule::PathStrange,
                "the path goes up with `..` behind a symbolic link. Write it without `..`.",
            );
        }
        let (resolved, found) = match resolved {
            Resolved::At { path, found } => (path, found),
            Resolved::Lost(why) => {
                return deny(
                    Rule::PathStrange,
                    format!("it cannot be told where the path leads: {why}. Use another path."),
                );
            }
        };
        // `..` out of a workspace leads to its neighbours, wherever it lies.
        let climbs = !path.starts_with('/') && path.split('/').any(|name| name == "..");
        match self.zone(&resolved, ground.workspace(), climbs) {
            Some(zone) => Ok(Place { zone, found }),
            None => deny(Rule::PathOutside, outside(path, ground)),
        }
    }

    fn zone(&self, resolved: &str, workspace: &str, climbs: bool) -> Option<Zone> {
        if let Some(inside) = below(resolved, workspace) {
            return Some(Zone::Inside(inside.to_owned()));
        }
        let temporary = self.compiled.rules.temporary.iter().any(|directory| {
            // A workspace that itself lies there has neighbours to be kept from.
            below(resolved, directory).is_some_and(|name| {
                let shared = lies_in(workspace, directory);
                let apart = !climbs && !name.contains('/') && !lies_in(workspace, resolved);
                !name.is_empty() && (!shared || apart)
            })
        });
        let skills = self.compiled.rules.skills.as_ref();
        match skills {
            _ if temporary => Some(Zone::Temporary),
            Some(skills) if lies_in(resolved, &skills.folder) => Some(Zone::Skills),
            _ => None,
        }
    }

    /// Whether a path may be read.
    pub(super) fn judge_read(
        &self,
        path: &str,
        cwd: &str,
        ground: &dyn Ground,
        user: User,
    ) -> Judged {
        let place = self.place(path, cwd, ground)?;
        let inside = match (&place.zone, user) {
            (Zone::Inside(inside), _) => inside,
            (Zone::Null | Zone::Skills, _) | (Zone::Temporary, User::Shell) => {
                return Ok(Rule::PathRead);
            }
            (Zone::Temporary, User::Tool) => {
                return deny(Rule::PathOutside, outside(path, ground));
            }
        };
        if place.found == Found::Special {
            return deny(
                Rule::PathLinks,
                format!("`{inside}` is a device, pipe or socket. Read plain files."),
            );
        }
        if let Some(name) = inside.split('/').find(|name| is_git(name)) {
            return deny(
                Rule::PathProtected,
                format!("`{name}` belongs to git. Use `git log`, `git diff` or `git status`."),
            );
        }
        self.judge_secret(inside)
    }

    /// Whether a file that may be blocked holds a secret.
    fn judge_secret(&self, inside: &str) -> Judged {
        match self.blocked_by(inside) {
            Some(pattern) if secrets::looks_secret(inside) => deny(
                Rule::PathSecret,
                format!(
                    "`{inside}` looks like a secret and matches the blocked path `{pattern}`. Go \
                     on without its contents."
                ),
            ),
            _ => Ok(Rule::PathRead),
        }
    }

    /// Whether a file may be written, or made.
    pub(super) fn judge_write(
        &self,
        path: &str,
        cwd: &str,
        ground: &dyn Ground,
        user: User,
    ) -> Judged {
        let last = path.rsplit('/').next().unwrap_or_default();
        if path.contains('/') && matches!(last, "" | "." | "..") {
            return deny(
                Rule::PathStrange,
                format!("the path ends with `/{last}`. Name the file itself."),
            );
        }
        let place = self.place(path, cwd, ground)?;
        let inside = match (&place.zone, user) {
            (Zone::Inside(inside), _) => inside,
            (Zone::Null | Zone::Temporary, User::Shell) => {
                return plain(place.found, &place.zone);
            }
            (Zone::Null | Zone::Temporary, User::Tool) | (Zone::Skills, _) => {
                return deny(Rule::PathOutside, outside(path, ground));
            }
        };
        self.judge_change(inside)?;
        plain(place.found, &place.zone)?;
        if place.found == Found::Nothing {
            self.judge_name(inside)?;
        }
        Ok(Rule::PathWrite)
    }

    /// Whether the file at a path relative to the workspace may be changed: by
    /// its name alone, whatever is there.
    pub(super) fn judge_change(&self, inside: &str) -> Judged {
        let rules = &self.compiled.rules;
        if let Some(name) = inside.split('/').find(|name| is_protected(name)) {
            return deny(
                Rule::PathProtected,
                format!("`{name}` is never changed by agents. Leave it as it is."),
            );
        }
        if let Some(pattern) = self.blocked_by(inside) {
            return deny(
                Rule::PathBlocked,
                format!(
                    "`{inside}` matches the blocked path `{pattern}`. Leave it as it is; if the \
                     task needs it, say so in your answer."
                ),
            );
        }
        if !rules.writes() {
            return deny(
                Rule::ToolRole,
                format!("a {} changes no files. Describe the change instead.", rules.role),
            );
        }
        let lies_below = |lock: &crate::lock_path::LockPath| lies_in(inside, lock.as_str());
        if rules.scratch.iter().any(lies_below) {
            return Ok(Rule::PathWrite);
        }
        if let Some(named) = steering(inside).find(|named| !rules.scope.names(named)) {
            return deny(
                Rule::PathProtected,
                format!(
                    "`{named}` steers the tools of the people who work here. Leave it as it is: \
                     only a task whose `file_locks` name it changes it."
                ),
            );
        }
        if !self.compiled.allowed.iter().any(|pattern| pattern.matches(inside)) {
            let allowed = some_of(&rules.allowed_paths);
            let inside = if inside.is_empty() { "." } else { inside };
            return deny(
                Rule::PathNotAllowed,
                format!("`{inside}` is not in the allowed paths. Write only to {allowed}."),
            );
        }
        match &rules.scope {
            Scope::Everything => Ok(Rule::PathWrite),
            Scope::Locks(locks) if locks.iter().any(lies_below) => Ok(Rule::PathWrite),
            Scope::Locks(locks) => {
                let locks = some_of(&locks.iter().map(ToString::to_string).collect::<Vec<_>>());
                deny(
                    Rule::PathScope,
                    format!(
                        "`{inside}` is outside of this task. Change only {locks}; if more is \
                         needed, say so in your answer."
                    ),
                )
            }
        }
    }

    /// The blocked pattern that covers a path, as it was written.
    pub(super) fn blocked_by(&self, inside: &str) -> Option<&str> {
        let folded = fold(inside);
        let found = self.compiled.blocked.iter().find(|(pattern, _)| blocks(pattern, &folded));
        found.map(|(_, written)| written.as_str())
    }
}

/// Whether what is there may be written over.
fn plain(found: Found, zone: &Zone) -> Judged {
    match found {
        Found::Special if *zone == Zone::Null => Ok(Rule::PathWrite),
        Found::Nothing | Found::File { links: 0 | 1 } => Ok(Rule::PathWrite),
        Found::File { .. } => deny(
            Rule::PathLinks,
            "the file has several names (hard links), so writing it would change another \
             file. Write a new file instead.",
        ),
        Found::Directory => deny(Rule::PathStrange, "this is a directory. Name a file in it."),
        Found::Special => {
            deny(Rule::PathLinks, "this is a device, pipe or socket. Write plain files.")
        }
    }
}

/// A few values of a list, for a message.
pub(super) fn some_of(list: &[String]) -> String {
    let shown: Vec<String> = list.iter().take(6).map(|text| format!("`{text}`")).collect();
    match (list.len(), shown.join(", ")) {
        (0, _) => "nothing".to_owned(),
        (count, shown) if count > 6 => format!("{shown} and {} more", count - 6),
        (_, shown) => shown,
    }
}

fn outside(path: &str, ground: &dyn Ground) -> String {
    let workspace = ground.workspace();
    format!("`{path}` is outside of the workspace. Use only what is in `{workspace}`.")
}

/// Takes `.`, `..` and empty parts out of an absolute path, by its text.
pub(super) fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What follows a directory in a path that lies in it.
fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

pub(super) fn lies_in(path: &str, directory: &str) -> bool {
    below(path, directory).is_some()
}

/// Characters that make a text look like another one, or end it early.
pub(super) fn is_strange(c: char) -> bool {
    c.is_control()
        || c == '\\'
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}')
}
