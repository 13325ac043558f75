//! What a merger is told.

use blueflame_core::config::Config;
use blueflame_core::ids::{ChangesetId, Role, TaskId};
use blueflame_core::plan::TaskSpec;
use minijinja::{Value, context};

use super::sheet::{Frame, Sheet, words};
use super::worker::task_text;
use super::{Fence, Part, Project, Prompt, PromptError, RepositoryNotes, background, commit};
use crate::narrate::plain;

#[derive(Clone, Debug)]
pub struct MergerBrief<'a> {
    pub project: Project<'a>,
    pub config: &'a Config,
    pub changeset: &'a ChangesetId,
    /// In the order in which they are folded.
    pub tasks: &'a [MergingTask<'a>],
    pub conflicts: &'a [Conflict<'a>],
    pub conventions: &'a RepositoryNotes,
    pub memory: Option<&'a str>,
}

/// A task of the changeset.
#[derive(Clone, Copy, Debug)]
pub struct MergingTask<'a> {
    pub spec: &'a TaskSpec,
    pub branch: &'a str,
}

/// A file that could not be merged.
#[derive(Clone, Copy, Debug)]
pub struct Conflict<'a> {
    pub file: &'a str,
    /// With its conflict markers; `None` if it is no text, or was deleted on
    /// one side.
    pub content: Option<&'a str>,
}

/// The prompt for a merger, whose answer is a commit and a report that follows
/// [`merger_report_schema`](blueflame_core::answer::merger_report_schema).
pub fn merger(brief: &MergerBrief<'_>, fence: &Fence) -> Result<Prompt, PromptError> {
    let frame = Frame {
        rules: "merger-rules",
        job: "merger-job",
        marker: format!("role={} changeset={}", Role::Merger.name(), brief.changeset),
        standing: standing(brief),
    };
    frame.compose(fence, |sheet| job(brief, sheet))
}

fn standing(brief: &MergerBrief<'_>) -> Value {
    let Config { permissions, validation, worktree, .. } = brief.config;
    context! {
        commands => words(&permissions.allowed_commands),
        scratch => words(worktree.scratch.iter().map(|path| format!("{path}/"))),
        refused => words(&permissions.blocked_patterns),
        commit_pattern => commit::pattern(validation.commit_format.as_ref()),
        ..brief.project.values()
    }
}

fn job(brief: &MergerBrief<'_>, sheet: &mut Sheet) -> Value {
    let first: Option<&TaskId> = brief.tasks.first().map(|task| &task.spec.id);
    let commit_format = brief.config.validation.commit_format.as_ref();
    let tasks: Value = brief
        .tasks
        .iter()
        .map(|task| {
            context! {
                id => task.spec.id.as_str(),
                branch => plain(task.branch),
                text => task_text(sheet, task.spec),
            }
        })
        .collect();
    context! {
        changeset => brief.changeset.as_str(),
        tasks,
        files => sheet.list(Part::Files, brief.conflicts.iter().map(|conflict| conflict.file)),
        conflicts => contents(sheet, brief.conflicts),
        commit_example => first.and_then(|task| commit::example(commit_format, task)),
        ..background(sheet, &brief.project, brief.conventions, brief.memory)
    }
}

/// Each file with its name on the first line: a name is a text of others too.
fn contents(sheet: &mut Sheet, conflicts: &[Conflict<'_>]) -> Value {
    let shown = conflicts.iter().filter_map(|conflict| Some((conflict.file, conflict.content?)));
    let fence = |(place, (file, content)): (usize, (&str, &str))| {
        let text = format!("{}\n\n{content}", plain(file));
        sheet.named(Part::Conflicts, &format!("conflict {}", place + 1), &text)
    };
    shown.enumerate().map(fence).collect()
}
