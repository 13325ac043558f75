//! What a planner is told.

use blueflame_core::config::Config;
use blueflame_core::ids::Role;
use blueflame_core::path_pattern::PathPattern;
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::state::task::{Phase, Step, Task};
use blueflame_core::yaml;
use minijinja::{Value, context};
use serde::Serialize;

use super::sheet::{Frame, Sheet, words};
use super::{Fence, Part, Project, Prompt, PromptError, RepositoryNotes, background, commit};
use crate::narrate::plain;

#[derive(Clone, Debug)]
pub struct PlannerBrief<'a> {
    pub project: Project<'a>,
    pub config: &'a Config,
    pub manner: Manner,
    /// What the person asked for.
    pub goal: &'a str,
    /// What the person and earlier tries have to say: `state.planning.notes`.
    pub notes: &'a [String],
    /// The plan that the person sent back, if that is why there is another.
    pub rejected: Option<&'a Plan>,
    /// The tasks of earlier plans of this session: `state.board.tasks()`.
    pub tasks: &'a [Task],
    pub conventions: &'a RepositoryNotes,
    pub memory: Option<&'a str>,
}

/// How a planner goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Alone, from what it is given.
    OneShot,
    /// It may ask the person first.
    Interactive,
}

/// The prompt for a planner, whose answer follows
/// [`plan::schema`](blueflame_core::plan::schema).
pub fn planner(brief: &PlannerBrief<'_>, fence: &Fence) -> Result<Prompt, PromptError> {
    let frame = Frame {
        rules: "planner-rules",
        job: "planner-job",
        marker: format!("role={}", Role::Planner.name()),
        standing: standing(brief),
    };
    frame.compose(fence, |sheet| job(brief, sheet))
}

fn standing(brief: &PlannerBrief<'_>) -> Value {
    let Config { permissions, validation, concurrency, .. } = brief.config;
    let patterns = |list: &[PathPattern]| words(list.iter().map(PathPattern::as_str));
    let tests = validation.require_tests.as_ref().map(
        |tests| context! { sources => patterns(&tests.sources), tests => patterns(&tests.tests) },
    );
    context! {
        interactive => brief.manner == Manner::Interactive,
        enforced => validation.enforce_file_scope,
        workers => concurrency.workers,
        allowed => patterns(&permissions.paths.allowed),
        blocked => patterns(&permissions.paths.blocked),
        acceptance => words(&validation.acceptance),
        commands => words(&permissions.allowed_commands),
        commit_pattern => commit::pattern(validation.commit_format.as_ref()),
        tests,
        ..brief.project.values()
    }
}

fn job(brief: &PlannerBrief<'_>, sheet: &mut Sheet) -> Value {
    let (landed, open) = (landed_tasks(brief.tasks), open_tasks(brief.tasks));
    let rejected = brief.rejected.map(|plan| written(&plan.tasks));
    context! {
        goal => sheet.data(Part::Goal, brief.goal),
        landed => landed.map(|text| sheet.named(Part::Plan, "landed tasks", &text)),
        open => open.map(|text| sheet.named(Part::Plan, "open tasks", &text)),
        rejected => rejected.map(|text| sheet.named(Part::Plan, "rejected plan", &text)),
        notes => numbered(sheet, brief.notes),
        ..background(sheet, &brief.project, brief.conventions, brief.memory)
    }
}

fn numbered(sheet: &mut Sheet, notes: &[String]) -> Value {
    let notes = notes.iter().filter(|note| !note.trim().is_empty());
    let fence = |(place, note): (usize, &String)| {
        sheet.named(Part::Notes, &format!("note {}", place + 1), note)
    };
    notes.enumerate().map(fence).collect()
}

/// One task a line; nothing if none has landed.
fn landed_tasks(tasks: &[Task]) -> Option<String> {
    let landed = tasks.iter().filter(|task| matches!(task.phase, Phase::Merged { .. }));
    let line = |task: &Task| format!("{}: {}", task.spec.id, plain(&task.spec.title));
    let lines: Vec<String> = landed.map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A task that has not landed, as it was planned, and how it stands.
#[derive(Serialize)]
struct OpenTask<'t> {
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_note: Option<&'t str>,
    #[serde(flatten)]
    spec: &'t TaskSpec,
}

fn open_tasks(tasks: &[Task]) -> Option<String> {
    let open = tasks.iter().filter(|task| !matches!(task.step(), Step::Merged | Step::Replaced));
    let open: Vec<OpenTask<'_>> = open
        .map(|task| OpenTask {
            standing: standing_of(&task.phase),
            last_note: task.history.entries().last().map(|entry| entry.notes.as_str()),
            spec: &task.spec,
        })
        .collect();
    (!open.is_empty()).then(|| written(&open))
}

/// YAML, which takes fewer tokens than JSON.
fn written<T: Serialize>(value: &T) -> String {
    yaml::to_string(value).map_or_else(|error| error.to_string(), |text| text.trim_end().to_owned())
}

fn standing_of(phase: &Phase) -> &'static str {
    match phase {
        Phase::Pending => "not begun",
        Phase::Requeued => "sent back, to be done again",
        Phase::Working { .. } => "in work",
        Phase::Built { .. }
        | Phase::Inspecting { .. }
        | Phase::Done { .. }
        | Phase::Accepting { .. }
        | Phase::Accepted { .. }
        | Phase::Validating { .. } => "done, not validated yet",
        Phase::Disputed { .. } => "failed validation",
        Phase::Unjudged { .. } => "done, could not be validated",
        Phase::Validated { .. } => "validated, not landed",
        Phase::Merged { .. } => "landed",
        Phase::Failed { .. } => "failed",
        Phase::Blocked { .. } => "blocked by a task that failed",
        Phase::Dropped { .. } => "dropped",
    }
}
