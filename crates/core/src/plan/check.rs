//! From a plan as written to one that can be worked on.
//!
//! Every task is looked at in full, and then all tasks together, so that the
//! planner or the person sees all problems in one go.

use std::collections::BTreeMap;

use super::file::{PlanFile, TaskFile};
use super::{Plan, PlanContext, TaskSpec, relations};
use crate::ids::{ExecutorName, GroupName, TaskId};
use crate::lock_path::LockPath;
use crate::path_rules::{LockFit, LockForm};
use crate::yaml::{Document, Limits, Problem, Problems, Severity, Span, Spanned, one_of};

/// More than any plan that a person could review.
pub(super) const MOST_TASKS: usize = 10_000;

pub(super) fn read(
    bytes: &[u8],
    context: &PlanContext<'_>,
) -> Result<(Plan, Vec<Problem>), Vec<Problem>> {
    let (file, problems) = Document::parse(bytes, Limits::PLAN)?.read::<PlanFile>();
    let tasks = match file.map(|file| file.tasks) {
        Some(Some(tasks)) => tasks,
        Some(None) if !problems.has_errors() => {
            problems.push(
                Problem::error("", "the plan has no `tasks`")
                    .hint("write `tasks:` and a list below it; `tasks: []` is an empty plan"),
            );
            Vec::new()
        }
        Some(None) | None => Vec::new(),
    };
    if tasks.len() > MOST_TASKS {
        let count = tasks.len();
        let message = format!("has more than {MOST_TASKS} tasks, got `{count}`");
        problems.push(Problem::error("tasks", message).hint("split the work into several plans"));
        return Err(problems.into_sorted());
    }
    let broken = problems.has_errors();
    let mut unread = problems.into_sorted();
    let problems = Problems::default();
    let specs: Vec<Option<TaskSpec>> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| Task::new(index, task, context, &problems).spec())
        .collect();
    if !unread.iter().any(hides_relations) {
        relations::check(&tasks, &context.landed, &problems);
        commit_messages(&specs, &tasks, context, &problems);
    }
    let broken = broken || problems.has_errors();
    let mut found = problems.into_sorted();
    // A value that could not be read was replaced by a placeholder, which is
    // not judged.
    found.retain(|problem| !unread.iter().any(|earlier| earlier.hides(problem)));
    found.append(&mut unread);
    found.sort_by_key(|problem| problem.span.map_or(usize::MAX, |span| span.start));
    match specs.into_iter().collect::<Option<Vec<_>>>() {
        Some(tasks) if !broken => Ok((Plan { tasks }, found)),
        _ => Err(found.into_iter().filter(|p| p.severity == Severity::Error).collect()),
    }
}

/// Whether a value that could not be read keeps tasks from being compared.
fn hides_relations(problem: &Problem) -> bool {
    let path = &problem.path;
    let known_key = [
        "title",
        "description",
        "priority",
        "acceptance",
        "risk",
        "estimate_minutes",
        "model",
        "executor",
    ]
    .iter()
    .any(|key| path.contains(&format!("].{key}")));
    problem.severity == Severity::Error && !known_key && problem.message != "is not a known key"
}

/// One task while it is looked at.
struct Task<'c> {
    path: String,
    /// How messages call it.
    name: String,
    written: &'c Spanned<TaskFile>,
    context: &'c PlanContext<'c>,
    problems: &'c Problems,
}

impl<'c> Task<'c> {
    fn new(
        index: usize,
        written: &'c Spanned<TaskFile>,
        context: &'c PlanContext<'c>,
        problems: &'c Problems,
    ) -> Self {
        let path = format!("tasks[{index}]");
        let name = match &written.id {
            Some(id) => format!("of task `{}`", id.value),
            None => "of a task without id".to_owned(),
        };
        Task { path, name, written, context, problems }
    }

    fn error(&self, key: &str, span: Option<Span>, message: &str, hint: &str) {
        let path = format!("{}.{key}", self.path);
        let problem = Problem::error(path, format!("{} {message}", self.name)).at(span, "");
        self.problems.push(if hint.is_empty() { problem } else { problem.hint(hint) });
    }

    fn required<'v, T>(&self, key: &str, value: Option<&'v Spanned<T>>) -> Option<&'v Spanned<T>> {
        if value.is_none() {
            self.missing(key);
        }
        value
    }

    fn missing(&self, key: &str) {
        let name = match &self.written.id {
            Some(id) => format!("(task `{}`) ", id.value),
            None => String::new(),
        };
        self.problems.push(
            Problem::error(&self.path, format!("{name}has no `{key}`"))
                .at(self.written.span, "this task")
                .hint(format!("add the key `{key}`")),
        );
    }

    fn text(&self, key: &str, value: Option<&Spanned<String>>) -> Option<String> {
        let text = self.required(key, value)?;
        if text.trim().is_empty() {
            self.error(key, text.span, "is empty", "");
            return None;
        }
        Some(text.value.clone())
    }

    fn estimate(&self) -> Option<u32> {
        let minutes = self.written.value.estimate_minutes.as_ref()?;
        if !(1..=24 * 60).contains(&minutes.value) {
            let message = format!("must be from 1 to 1440 minutes, got `{}`", minutes.value);
            self.error("estimate_minutes", minutes.span, &message, "leave it out if unsure");
        }
        Some(minutes.value)
    }

    /// The task, unless something is wrong with it.
    fn spec(&self) -> Option<TaskSpec> {
        let task = &self.written.value;
        let id = self.required("id", task.id.as_ref());
        let title = self.text("title", task.title.as_ref());
        let description = self.text("description", task.description.as_ref());
        let priority = self.required("priority", task.priority.as_ref()).map(|p| p.value);
        if task.file_locks.is_none() {
            self.missing("file_locks");
        }
        let id = id.and_then(|id| self.name_of("id", id, TaskId::new));
        let group = match &task.cohesion_group {
            Some(group) => self.name_of("cohesion_group", group, GroupName::new),
            None => id.as_ref().and_then(|id| GroupName::new(id.as_str()).ok()),
        };
        let executor = self.executor();
        let model = self.model();
        let file_locks = self.locks();
        let mut dependencies: Vec<TaskId> = Vec::new();
        for need in task.dependencies.iter().flatten() {
            if let Ok(need) = TaskId::new(need.value.clone())
                && !dependencies.contains(&need)
            {
                dependencies.push(need);
            }
        }
        let acceptance = self.acceptance();
        Some(TaskSpec {
            id: id?,
            title: title?,
            description: description?,
            priority: priority?,
            group: group?,
            dependencies,
            file_locks: file_locks?,
            acceptance,
            risk: task.risk.as_ref().map(|risk| risk.value),
            estimate_minutes: self.estimate(),
            model,
            executor,
        })
    }

    fn name_of<T>(
        &self,
        key: &str,
        written: &Spanned<String>,
        new: impl Fn(String) -> Result<T, crate::ids::BadName>,
    ) -> Option<T> {
        new(written.value.clone())
            .map_err(|bad| {
                let message = format!("is not a good name, got `{}`", written.value);
                self.error(key, written.span, &message, bad.rule);
            })
            .ok()
    }

    fn executor(&self) -> Option<ExecutorName> {
        let written = self.written.executor.as_ref()?;
        let known = &self.context.executors;
        if !known.contains(&written.as_str()) {
            let hint = match self.problems.closest(written, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("use {}", one_of(known.iter().copied())),
            };
            let message = format!("is not a known executor, got `{}`", written.value);
            self.error("executor", written.span, &message, &hint);
        }
        ExecutorName::new(written.value.clone()).ok()
    }

    fn model(&self) -> Option<String> {
        let written = self.written.model.as_ref()?;
        let bad = |c: char| c.is_whitespace() || c.is_control();
        if written.is_empty() || written.starts_with('-') || written.contains(bad) {
            let message = format!("is not a model name, got `{}`", written.value);
            self.error("model", written.span, &message, "");
        }
        Some(written.value.clone())
    }

    fn acceptance(&self) -> Vec<String> {
        let commands = self.written.acceptance.iter().flatten();
        let check = |(index, command): (usize, &Spanned<String>)| {
            if command.trim().is_empty() {
                self.error(&format!("acceptance[{index}]"), command.span, "is empty", "");
            }
            command.value.clone()
        };
        commands.enumerate().map(check).collect()
    }

    fn locks(&self) -> Option<Vec<LockPath>> {
        let written = self.written.file_locks.as_ref()?;
        if written.is_empty() {
            let hint = "list the files and directories that the task changes";
            self.error("file_locks", self.written.span, "is empty: it could change nothing", hint);
        }
        let mut locks: Vec<LockPath> = Vec::new();
        for (index, text) in written.iter().enumerate() {
            let key = format!("file_locks[{index}]");
            let lock = match LockPath::new(text) {
                Ok(lock) => lock,
                Err(bad) => {
                    let message = format!("is not a path to lock: {bad}, got `{}`", text.value);
                    let hint = "write a path in the repository: `src/auth/` or `src/main.rs`";
                    self.error(&key, text.span, &message, hint);
                    continue;
                }
            };
            self.fits(&key, text, &lock);
            if let Some(other) = locks.iter().find(|other| other.overlaps(&lock)) {
                self.problems.push(
                    Problem::warning(
                        format!("{}.{key}", self.path),
                        format!("{} is already covered by `{other}`, got `{lock}`", self.name),
                    )
                    .at(text.span, "")
                    .hint("one of them is enough"),
                );
            }
            if !locks.contains(&lock) {
                locks.push(lock);
            }
        }
        Some(locks)
    }

    /// Whether what the lock covers may be changed at all.
    fn fits(&self, key: &str, text: &Spanned<String>, lock: &LockPath) {
        let rules = self.context.paths;
        let allowed = || one_of(rules.allowed.iter().map(crate::path_pattern::PathPattern::as_str));
        match rules.fit(lock, LockForm::of(text)) {
            LockFit::Inside => {}
            LockFit::Partly => self.problems.push(
                Problem::warning(
                    format!("{}.{key}", self.path),
                    format!("{} reaches beyond the allowed paths, got `{lock}`", self.name),
                )
                .at(text.span, "")
                .hint(format!("only what matches {} can be changed there", allowed())),
            ),
            LockFit::Outside => {
                let message = format!("is outside of the allowed paths, got `{lock}`");
                let hint = format!(
                    "agents may change {}; lock something there, or widen permissions.allowed_paths",
                    allowed()
                );
                self.error(key, text.span, &message, &hint);
            }
            LockFit::Blocked { by } => {
                let message = format!("can never be written: `{by}` is blocked, got `{lock}`");
                let hint = "plan without it, or change permissions.blocked_paths";
                self.error(key, text.span, &message, hint);
            }
        }
    }
}

/// The usual commit format wants ids like `task-001`. When a task has another
/// id, every commit of it would be refused, and its agent could not know why.
fn commit_messages(
    specs: &[Option<TaskSpec>],
    tasks: &[Spanned<TaskFile>],
    context: &PlanContext<'_>,
    problems: &Problems,
) {
    let Some(format) = context.commit_format else { return };
    let Some((before, after)) = format.example.as_deref().and_then(around_task_id) else { return };
    let refused: BTreeMap<usize, &TaskId> = specs
        .iter()
        .enumerate()
        .filter_map(|(at, spec)| Some((at, &spec.as_ref()?.id)))
        .filter(|(_, id)| !format.pattern.is_match(&format!("{before}{id}{after}")))
        .collect();
    if let Some((&at, id)) = refused.first_key_value() {
        let others = match refused.len() - 1 {
            0 => String::new(),
            1 => " (and 1 other)".to_owned(),
            more => format!(" (and {more} others)"),
        };
        problems.push(
            Problem::warning(
                format!("tasks[{at}].id"),
                format!(
                    "cannot stand in a commit message that validation.commit_format accepts, \
                     got `{id}`{others}"
                ),
            )
            .at(tasks[at].id.as_ref().and_then(|id| id.span), "")
            .hint("name tasks like `task-001`, or change the pattern in the configuration"),
        );
    }
}

/// An example commit message without the `task-001` in it.
fn around_task_id(example: &str) -> Option<(&str, &str)> {
    let start = example.find("task-")?;
    let rest = &example[start + "task-".len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (end > 0).then(|| (&example[..start], &rest[end..]))
}
