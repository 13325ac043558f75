//! What a validator is told.

use blueflame_core::config::Config;
use blueflame_core::ids::Role;
use blueflame_core::plan::TaskSpec;
use minijinja::{Value, context};

use super::sheet::{Frame, Sheet, words};
use super::worker::task_text;
use super::{Fence, Part, Project, Prompt, PromptError, RepositoryNotes, background};
use crate::narrate::plain;

#[derive(Clone, Debug)]
pub struct ValidatorBrief<'a> {
    pub project: Project<'a>,
    pub config: &'a Config,
    pub task: &'a TaskSpec,
    pub attempt: u32,
    /// From what the task started with to the task's commit.
    pub diff: &'a str,
    /// What the orchestrator ran on that commit, and what came of it.
    pub checks: &'a [Check<'a>],
    /// The same for commands that decide nothing by themselves.
    pub diagnostics: &'a [Check<'a>],
    /// What the policy saw the worker do, in short.
    pub audit: Option<&'a str>,
    pub conventions: &'a RepositoryNotes,
    pub memory: Option<&'a str>,
}

/// A command that the orchestrator ran.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    pub command: &'a str,
    pub result: CheckResult,
    pub output: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckResult {
    Passed,
    /// With its exit code, unless a signal ended it.
    Failed {
        code: Option<i32>,
    },
    TimedOut,
}

/// The prompt for a validator, whose answer follows
/// [`verdict_schema`](blueflame_core::answer::verdict_schema).
pub fn validator(brief: &ValidatorBrief<'_>, fence: &Fence) -> Result<Prompt, PromptError> {
    let (role, task, attempt) = (Role::Validator.name(), &brief.task.id, brief.attempt);
    let frame = Frame {
        rules: "validator-rules",
        job: "validator-job",
        marker: format!("role={role} task={task} attempt={attempt}"),
        standing: standing(brief),
    };
    frame.compose(fence, |sheet| job(brief, sheet))
}

fn standing(brief: &ValidatorBrief<'_>) -> Value {
    let diagnostics = brief.config.validation.diagnostics.as_ref();
    let diagnostics = diagnostics.filter(|diagnostics| !diagnostics.commands.is_empty());
    let commands = diagnostics.map(|diagnostics| words(&diagnostics.commands));
    let seconds = diagnostics.map(|diagnostics| diagnostics.timeout.as_secs());
    context! { commands, seconds, ..brief.project.values() }
}

fn job(brief: &ValidatorBrief<'_>, sheet: &mut Sheet) -> Value {
    context! {
        id => brief.task.id.as_str(),
        task => task_text(sheet, brief.task),
        files => sheet.list(Part::Files, &brief.task.file_locks),
        checks => checks(sheet, "check", brief.checks),
        diagnostics => checks(sheet, "diagnostic", brief.diagnostics),
        audit => sheet.maybe(Part::Audit, brief.audit),
        diff => sheet.maybe(Part::Diff, Some(brief.diff)),
        ..background(sheet, &brief.project, brief.conventions, brief.memory)
    }
}

fn checks(sheet: &mut Sheet, kind: &str, checks: &[Check<'_>]) -> Value {
    let fence = |(place, check): (usize, &Check<'_>)| {
        let result = match check.result {
            CheckResult::Passed => "passed".to_owned(),
            CheckResult::Failed { code: Some(code) } => format!("FAILED with exit code {code}"),
            CheckResult::Failed { code: None } => "FAILED, ended by a signal".to_owned(),
            CheckResult::TimedOut => "FAILED, took too long".to_owned(),
        };
        let text = format!("$ {}\n{}", plain(check.command), check.output.trim_end());
        sheet.named(Part::Checks, &format!("{kind} {}: {result}", place + 1), text.trim_end())
    };
    checks.iter().enumerate().map(fence).collect()
}
