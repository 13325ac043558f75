//! What a worker is told.

use blueflame_core::config::{Config, FileNaming, NamingStyle};
use blueflame_core::ids::{Role, TaskId};
use blueflame_core::path_pattern::PathPattern;
use blueflame_core::plan::TaskSpec;
use blueflame_core::state::task::{History, HistoryResult};
use minijinja::{Value, context};

use super::sheet::{Frame, Sheet, words};
use super::{Fence, Part, Project, Prompt, PromptError, RepositoryNotes, background, commit};
use crate::narrate::plain;

#[derive(Clone, Debug)]
pub struct WorkerBrief<'a> {
    pub project: Project<'a>,
    pub config: &'a Config,
    pub task: &'a TaskSpec,
    pub attempt: u32,
    pub start: Start,
    /// What became of earlier attempts.
    pub history: &'a History,
    pub conventions: &'a RepositoryNotes,
    pub memory: Option<&'a str>,
}

/// What a worker finds in its worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Clean,
    /// What the last attempt left unfinished is in place.
    Unfinished,
}

/// The prompt for a worker. Its answer is a commit.
pub fn worker(brief: &WorkerBrief<'_>, fence: &Fence) -> Result<Prompt, PromptError> {
    let (role, task, attempt) = (Role::Worker.name(), &brief.task.id, brief.attempt);
    let frame = Frame {
        rules: "worker-rules",
        job: "worker-job",
        marker: format!("role={role} task={task} attempt={attempt}"),
        standing: standing(brief),
    };
    frame.compose(fence, |sheet| job(brief, sheet))
}

fn standing(brief: &WorkerBrief<'_>) -> Value {
    let Config { permissions, validation, worktree, .. } = brief.config;
    let patterns = |list: &[PathPattern]| words(list.iter().map(PathPattern::as_str));
    let tests = validation.require_tests.as_ref().map(
        |tests| context! { sources => patterns(&tests.sources), tests => patterns(&tests.tests) },
    );
    context! {
        enforced => validation.enforce_file_scope,
        allowed => patterns(&permissions.paths.allowed),
        blocked => patterns(&permissions.paths.blocked),
        scratch => words(worktree.scratch.iter().map(|path| format!("{path}/"))),
        commands => words(&permissions.allowed_commands),
        refused => words(&permissions.blocked_patterns),
        commit_pattern => commit::pattern(validation.commit_format.as_ref()),
        naming => naming(&validation.file_naming),
        tests,
        ..brief.project.values()
    }
}

fn naming(naming: &FileNaming) -> Option<Value> {
    let style = match naming.style {
        NamingStyle::SnakeCase => "snake_case",
        NamingStyle::CamelCase => "camelCase",
        NamingStyle::PascalCase => "PascalCase",
        NamingStyle::KebabCase => "kebab-case",
    };
    let files = words(naming.enforce_for.iter().map(PathPattern::as_str));
    (!naming.enforce_for.is_empty()).then(|| context! { style, files })
}

fn job(brief: &WorkerBrief<'_>, sheet: &mut Sheet) -> Value {
    let task = brief.task;
    let commit_format = brief.config.validation.commit_format.as_ref();
    context! {
        id => task.id.as_str(),
        needs => words(task.dependencies.iter().map(TaskId::as_str)),
        task => task_text(sheet, task),
        files => sheet.list(Part::Files, &task.file_locks),
        acceptance => sheet.list(Part::Acceptance, acceptance(brief.config, task)),
        commit_example => commit::example(commit_format, &task.id),
        attempt => brief.attempt,
        forgotten => brief.history.forgotten(),
        history => history(sheet, brief.history),
        unfinished => brief.start == Start::Unfinished,
        ..background(sheet, &brief.project, brief.conventions, brief.memory)
    }
}

/// Title and description, the title on a line of its own.
pub(super) fn task_text(sheet: &mut Sheet, task: &TaskSpec) -> Value {
    sheet.data(Part::Task, &format!("{}\n\n{}", plain(&task.title), task.description.trim_end()))
}

/// The commands that decide whether the task is done.
pub(super) fn acceptance<'a>(
    config: &'a Config,
    task: &'a TaskSpec,
) -> impl Iterator<Item = &'a String> {
    config.validation.acceptance.iter().chain(&task.acceptance)
}

fn history(sheet: &mut Sheet, history: &History) -> Value {
    let told = |result: &HistoryResult| match result {
        HistoryResult::Failed => "did not finish",
        HistoryResult::Superseded => "sound, but what it was built on is done again",
        HistoryResult::AcceptanceFailed => "acceptance commands failed",
        HistoryResult::ValidationFailed => "the validator failed it",
        HistoryResult::VerifyFailed => "the merged tree failed its checks",
        HistoryResult::Conflicted => "conflicted with other work",
        HistoryResult::Rejected => "the person rejected it",
    };
    let fence = |entry: &blueflame_core::state::task::HistoryEntry| {
        let name = format!("attempt {}: {}", entry.attempt, told(&entry.result));
        sheet.named(Part::History, &name, &entry.notes)
    };
    history.entries().iter().map(fence).collect()
}
