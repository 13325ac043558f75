//! One thing worth knowing later.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::wording;
use crate::ids::{ExecutorName, GroupName, Role, SessionId, TaskId};
use crate::inspection::without_keys;
use crate::lock_path::LockPath;

/// The longest text of a note, in bytes. Longer ones are cut where they are made.
pub const LONGEST_TEXT: usize = 6_000;

/// The longest title.
pub const LONGEST_TITLE: usize = 300;

/// The most that a note has in it after it was shortened and lines were added to
/// it: programs of others take no longer ones.
const MOST_TEXT: usize = 4 * LONGEST_TEXT;
const MOST_PATHS: usize = 12_000;
const MOST_CAUSES: usize = 6_000;
const MOST_FIGURES: usize = 50;

/// The longest key, in bytes.
const LONGEST_KEY: usize = 255;

/// How much of a text is left when it is told in one line.
const LONGEST_LINE: usize = 240;

/// What a note tells of. The order is the order in which agents are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A task that did not land, or not at the first attempt.
    Failure,
    /// What the person said about a plan or about work.
    Decision,
    /// What has gone wrong in the same way more than once.
    Pattern,
    /// What a session came to.
    Session,
    /// What its agents took.
    Cost,
    /// A task that landed.
    Result,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Failure, Kind::Decision, Kind::Pattern, Kind::Session, Kind::Cost, Kind::Result];

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Failure => "failure",
            Kind::Decision => "decision",
            Kind::Pattern => "pattern",
            Kind::Session => "session",
            Kind::Cost => "cost",
            Kind::Result => "result",
        }
    }
}

/// Whether a failure still matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Unresolved,
    /// The same work has landed since.
    Resolved,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Says what it is about: no two notes have the same, and the same thing
    /// always has it.
    pub key: String,
    pub kind: Kind,
    /// The session that it is of; of a pattern, the last that showed it.
    pub session: SessionId,
    pub at: Timestamp,
    /// One line.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// The files that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<LockPath>,
    /// Of failures only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The session in which the work landed after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<SessionId>,
    /// What went wrong, in the same words whenever it is the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// How often it was seen; 0 counts as once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// How many bytes it had before it was shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_from: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(times: &u32) -> bool {
    *times == 0
}

/// What the agents of one role and one executor took in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    pub role: Role,
    pub executor: ExecutorName,
    /// Runs that did what they were for.
    pub finished: u32,
    /// What such a run took: half of them took more, half of them less.
    pub seconds: u64,
    pub micro_usd: u64,
    /// What all runs cost, finished or not.
    pub all_runs: u32,
    pub all_micro_usd: u64,
    pub all_tokens: u64,
}

/// What a note is known by.
pub fn key(session: &str, subject: &str, kind: Kind) -> String {
    format!("blueflame:{session}:{subject}:{}", kind.name())
}

impl Note {
    /// A note without anything but its title.
    pub fn new(session: &SessionId, subject: &str, kind: Kind, at: Timestamp, title: &str) -> Note {
        // Other keepers of notes know whole seconds only.
        let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
        Note {
            key: key(session.as_str(), subject, kind),
            kind,
            session: session.clone(),
            at,
            title: wording::line(&without_keys(title), LONGEST_TITLE),
            text: String::new(),
            task: None,
            group: None,
            paths: Vec::new(),
            standing: None,
            resolved_by: None,
            causes: Vec::new(),
            times: 0,
            figures: Vec::new(),
            shortened_from: None,
        }
    }

    #[must_use]
    pub fn saying(mut self, text: &str) -> Note {
        // What is not kept need not be looked at, but a key is only known as a whole.
        let text = wording::clipped(text, 2 * LONGEST_TEXT);
        self.text = wording::clipped(&without_keys(&text), LONGEST_TEXT);
        self
    }

    /// Whether its key is one that we could have given it.
    pub fn has_sound_key(&self) -> bool {
        let kind = self.kind.name();
        let subject = self
            .key
            .strip_prefix("blueflame:")
            .and_then(|rest| rest.strip_suffix(kind)?.strip_suffix(':'));
        self.key.len() <= LONGEST_KEY
            && subject
                .is_some_and(|it| it.contains(':') && it.chars().all(|c| c.is_ascii_graphic()))
    }

    /// The same within the bounds that every note of ours keeps, whoever made this
    /// one: no larger, without characters that nobody sees, and without keys.
    #[must_use]
    pub fn bounded(self) -> Note {
        let seen = |text: &str| -> String {
            let seen = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
            without_keys(&seen.collect::<String>())
        };
        Note {
            title: wording::clipped(&seen(&self.title), LONGEST_TITLE),
            text: wording::clipped(&seen(&self.text), MOST_TEXT),
            paths: first(self.paths, MOST_PATHS, |path| path.as_str().len()),
            causes: first(
                self.causes.iter().map(|cause| wording::line(&seen(cause), LONGEST_TITLE)),
                MOST_CAUSES,
                String::len,
            ),
            figures: first(self.figures, MOST_FIGURES, |_| 1),
            ..self
        }
    }

    pub fn is_unresolved(&self) -> bool {
        self.standing == Some(Standing::Unresolved)
    }

    /// Told in one line: what it is, and how its text begins.
    pub(super) fn shorten(&mut self) {
        let line = wording::line(&self.text, LONGEST_LINE);
        if line != self.text {
            self.shortened_from.get_or_insert(size(&self.text));
            self.text = line;
        }
    }
}

/// As many as there is room for.
fn first<T>(all: impl IntoIterator<Item = T>, room: usize, size: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = room;
    let fits = |one: &T| {
        let fits = left.checked_sub(size(one));
        left = fits.unwrap_or(0);
        fits.is_some()
    };
    all.into_iter().take_while(fits).collect()
}

pub(super) fn size(text: &str) -> u64 {
    text.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_in_a_note_however_it_came_to_be() {
        let token = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
        let session = SessionId::new("ses-20260206-143022").unwrap();
        let at = Timestamp::UNIX_EPOCH;
        let long = format!("{} {token}", "x".repeat(LONGEST_TEXT - 20));
        for text in [format!("with {token}\nand {token}"), long] {
            let made = Note::new(&session, "x", Kind::Decision, at, &text).saying(&text);
            let taken_over = Note {
                title: text.clone(),
                text: text.clone(),
                causes: vec![text.clone()],
                ..made.clone()
            };
            let cause = super::super::pattern::cause("failed", &text);
            for note in
                [made, taken_over.bounded(), Note::new(&session, "x", Kind::Cost, at, &cause)]
            {
                let all = format!("{} {} {:?}", note.title, note.text, note.causes);
                // Not even the beginning of one.
                assert!(!all.contains("ghp_"), "{all}");
            }
            assert!(!cause.contains("ghp_"), "{cause}");
        }
    }
}
