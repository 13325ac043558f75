//! What each role is told.
//!
//! A prompt has two halves: `system` holds the standing rules of the role and
//! is the same for every job of a session, so that providers can cache it;
//! `user` holds this job. Whatever was written by others (people, agents,
//! tools, the repository) stands between [fences](Fence) in the job and is
//! never part of the rules.
//!
//! Prompts reach an agent through standard input or a file, never as an
//! argument: arguments are visible to everyone on the machine, and too short.

mod commit;
mod fence;
mod merger;
mod part;
mod planner;
mod repository_notes;
mod sheet;
mod sizes;
mod templates;
mod text;
mod validator;
mod worker;

#[cfg(test)]
mod tests;

use blueflame_core::ids::SessionId;
use minijinja::{Value, context};

pub use fence::Fence;
pub use merger::{Conflict, MergerBrief, MergingTask, merger};
pub use part::Part;
pub use planner::{Manner, PlannerBrief, planner};
pub use repository_notes::{NOTE_FILES, Note, RepositoryNotes, Unread};
pub use sizes::{PartSize, PromptSizes};
pub use validator::{Check, CheckResult, ValidatorBrief, validator};
pub use worker::{Start, WorkerBrief, worker};

use sheet::Sheet;

/// What is told to one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The standing rules of the role.
    pub system: String,
    /// This job.
    pub user: String,
    pub sizes: PromptSizes,
}

impl Prompt {
    /// Rules and job in one, for an agent that takes no system prompt.
    pub fn as_one_text(&self) -> String {
        format!("{}\n\n{}", self.system, self.user)
    }
}

/// A template that could not be filled. Tests fill every one of them, so this
/// is a mistake in the program.
#[derive(Debug, thiserror::Error)]
#[error("a prompt could not be made: {0}")]
pub struct PromptError(#[from] minijinja::Error);

/// What every role knows.
#[derive(Clone, Copy, Debug)]
pub struct Project<'a> {
    pub name: &'a str,
    pub base_branch: &'a str,
    pub session: &'a SessionId,
}

impl Project<'_> {
    fn values(&self) -> Value {
        context! {
            project => crate::narrate::plain(self.name),
            base => crate::narrate::plain(self.base_branch),
            session => self.session.as_str(),
        }
    }
}

/// What every job has: the project, the conventions of its repository and what
/// earlier sessions learned.
fn background(
    sheet: &mut Sheet,
    project: &Project<'_>,
    notes: &RepositoryNotes,
    memory: Option<&str>,
) -> Value {
    let conventions = notes.notes.iter().filter(|note| !note.text.trim().is_empty());
    let conventions: Value =
        conventions.map(|note| sheet.named(Part::Conventions, note.file, &note.text)).collect();
    context! { conventions, memory => sheet.maybe(Part::Memory, memory), ..project.values() }
}
