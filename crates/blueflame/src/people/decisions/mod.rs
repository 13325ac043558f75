//! The decisions file: answers written down beforehand, so that a session runs
//! unattended.
//!
//! What the file names, the file answers: when its answers to a question are
//! used up, the question has no answer. Nothing in it ever counts as a yes that
//! was not written as one. `docs/unattended.md` describes the format.

mod bookmark;
mod choices;
mod read;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use blueflame_core::gate::{
    Answer, BudgetAnswer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer, ValidationAnswer,
    ValidatorAnswer,
};
use blueflame_core::ids::GroupName;
use blueflame_core::lock_path::LockPath;
use blueflame_core::path_rules::{LockFit, LockForm};
use blueflame_core::plan::Plan;
use blueflame_core::yaml::{Limits, Problem, Span};

use super::{BadDecisions, Occasion, Unanswered, plan_context};

pub(super) use read::task_edit;

/// The key for every group that has none of its own.
const ANY_GROUP: &str = "*";

#[derive(Clone, Debug)]
pub struct Decisions {
    file: PathBuf,
    /// Kept to show a place in it later on.
    bytes: Vec<u8>,
    plan: Option<Queue<PlanDecision>>,
    changesets: BTreeMap<GroupName, Queue<ChangesetAnswer>>,
    any_changeset: Option<Fallback>,
    session: Option<Queue<SessionAnswer>>,
    validation_failed: Option<Queue<ValidationAnswer>>,
    validator_failed: Option<Queue<ValidatorAnswer>>,
    budget: Option<Queue<BudgetAnswer>>,
}

/// An answer to the plan, of which the edited plan is read when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PlanDecision {
    Approve,
    Quit,
    Replan { notes: String },
    Edit { file: PathBuf },
}

/// An answer and where it stands in the file.
#[derive(Clone, Debug)]
struct Written<T> {
    answer: T,
    path: String,
    span: Span,
}

/// Answers in the order in which they are given.
#[derive(Clone, Debug)]
struct Queue<T> {
    answers: Vec<Written<T>>,
    used: usize,
}

impl<T> Queue<T> {
    fn new(answers: Vec<Written<T>>) -> Self {
        Queue { answers, used: 0 }
    }

    fn next(&mut self) -> Option<&Written<T>> {
        let answer = self.answers.get(self.used)?;
        self.used += 1;
        Some(answer)
    }

    fn unused(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().skip(self.used).map(|written| written.path.as_str())
    }
}

/// The answers for groups that are not named.
#[derive(Clone, Debug)]
enum Fallback {
    /// A single answer is the answer every time.
    Always(Written<ChangesetAnswer>),
    /// A list is worked through by each group for itself.
    InTurn { answers: Queue<ChangesetAnswer>, by_group: BTreeMap<GroupName, usize> },
}

impl Fallback {
    fn new(mut answers: Queue<ChangesetAnswer>, listed: bool) -> Self {
        match answers.answers.pop() {
            Some(answer) if !listed => Fallback::Always(answer),
            last => {
                answers.answers.extend(last);
                Fallback::InTurn { answers, by_group: BTreeMap::new() }
            }
        }
    }

    fn next(&mut self, group: &GroupName) -> Option<&Written<ChangesetAnswer>> {
        match self {
            Fallback::Always(answer) => Some(answer),
            Fallback::InTurn { answers, by_group } => {
                let used = by_group.entry(group.clone()).or_default();
                let answer = answers.answers.get(*used)?;
                *used += 1;
                answers.used = answers.used.max(*used);
                Some(answer)
            }
        }
    }
}

impl Decisions {
    /// Reads a decisions file, or reports everything that is wrong with it.
    /// Paths in it count from its directory.
    pub fn read(bytes: &[u8], file: &Path) -> Result<Decisions, Vec<Problem>> {
        read::read(bytes, file)
    }

    fn empty(bytes: &[u8], file: &Path) -> Self {
        Decisions {
            file: file.to_owned(),
            bytes: bytes.to_owned(),
            plan: None,
            changesets: BTreeMap::new(),
            any_changeset: None,
            session: None,
            validation_failed: None,
            validator_failed: None,
            budget: None,
        }
    }

    /// Answers that were not asked for, by their path in the file.
    pub fn unused(&self) -> Vec<String> {
        let mut unused: Vec<&str> = Vec::new();
        unused.extend(self.plan.iter().flat_map(Queue::unused));
        unused.extend(self.changesets.values().flat_map(Queue::unused));
        if let Some(Fallback::InTurn { answers, .. }) = &self.any_changeset {
            unused.extend(answers.unused());
        }
        unused.extend(self.session.iter().flat_map(Queue::unused));
        unused.extend(self.validation_failed.iter().flat_map(Queue::unused));
        unused.extend(self.validator_failed.iter().flat_map(Queue::unused));
        unused.extend(self.budget.iter().flat_map(Queue::unused));
        unused.into_iter().map(str::to_owned).collect()
    }

    /// The next answer, or `None` if the file does not name this question.
    pub(super) fn answer(&mut self, occasion: &Occasion<'_>) -> Result<Option<Answer>, Unanswered> {
        let used_up = || Unanswered::no_answer(occasion);
        let answer = match occasion.gate {
            Gate::Plan => {
                let Some(queue) = &mut self.plan else { return Ok(None) };
                let written = queue.next().ok_or_else(used_up)?.clone();
                Answer::Plan(self.plan_answer(&written, occasion)?)
            }
            Gate::Changeset(_) => {
                let group = occasion.group();
                let own = group.and_then(|group| self.changesets.get_mut(group));
                let written = match (own, &mut self.any_changeset, group) {
                    (Some(queue), _, _) => queue.next(),
                    (None, Some(any), Some(group)) => any.next(group),
                    (None, _, _) => return Ok(None),
                };
                Answer::Changeset(written.ok_or_else(used_up)?.answer.clone())
            }
            Gate::Session => {
                let Some(queue) = &mut self.session else { return Ok(None) };
                Answer::Session(queue.next().ok_or_else(used_up)?.answer.clone())
            }
            Gate::ValidationFailed(_) => {
                let Some(queue) = &mut self.validation_failed else { return Ok(None) };
                let written = queue.next().ok_or_else(used_up)?.clone();
                self.check_edit(&written, occasion)?;
                Answer::ValidationFailed(written.answer)
            }
            Gate::ValidatorFailed(_) => {
                let Some(queue) = &mut self.validator_failed else { return Ok(None) };
                Answer::ValidatorFailed(queue.next().ok_or_else(used_up)?.answer.clone())
            }
            Gate::Budget => {
                let Some(queue) = &mut self.budget else { return Ok(None) };
                let written = queue.next().ok_or_else(used_up)?.clone();
                self.check_raise(&written, occasion)?;
                Answer::Budget(written.answer)
            }
        };
        Ok(Some(answer))
    }

    fn plan_answer(
        &self,
        written: &Written<PlanDecision>,
        occasion: &Occasion<'_>,
    ) -> Result<PlanAnswer, Unanswered> {
        let file = match &written.answer {
            PlanDecision::Approve => return Ok(PlanAnswer::Approve),
            PlanDecision::Quit => return Ok(PlanAnswer::Quit),
            PlanDecision::Replan { notes } => {
                return Ok(PlanAnswer::Replan { notes: notes.clone() });
            }
            PlanDecision::Edit { file } => self.file.parent().unwrap_or(Path::new("")).join(file),
        };
        let mut bytes = Vec::new();
        let most = u64::try_from(Limits::PLAN.bytes).unwrap_or(u64::MAX).saturating_add(1);
        let opened = File::open(&file).and_then(|file| file.take(most).read_to_end(&mut bytes));
        if let Err(error) = opened {
            let message =
                format!("names a plan that cannot be read: `{}`: {error}", file.display());
            return Err(self.objection(written, message, "paths count from the decisions file"));
        }
        match Plan::read(&bytes, &plan_context(occasion)) {
            Ok((plan, _)) => Ok(PlanAnswer::Edit { plan }),
            Err(problems) => Err(Unanswered::BadDecisions(BadDecisions { file, bytes, problems })),
        }
    }

    /// The files of an edited task have to be files that agents may change.
    fn check_edit(
        &self,
        written: &Written<ValidationAnswer>,
        occasion: &Occasion<'_>,
    ) -> Result<(), Unanswered> {
        let ValidationAnswer::Edit { file_locks: Some(locks), .. } = &written.answer else {
            return Ok(());
        };
        match refused_lock(locks, occasion) {
            Some(message) => {
                let hint = "see permissions.allowed_paths and permissions.blocked_paths";
                Err(self.objection(written, message, hint))
            }
            None => Ok(()),
        }
    }

    fn check_raise(
        &self,
        written: &Written<BudgetAnswer>,
        occasion: &Occasion<'_>,
    ) -> Result<(), Unanswered> {
        let budget = occasion.state.crew.session_budget();
        match &written.answer {
            BudgetAnswer::Raise { by } if by.unit() != budget.unit() => {
                let message = format!("raises by {by}, but the session's budget is {budget}");
                Err(self.objection(written, message, "raise it in the unit that it has"))
            }
            BudgetAnswer::Raise { .. } | BudgetAnswer::Stop => Ok(()),
        }
    }

    fn objection<T>(&self, written: &Written<T>, message: String, hint: &str) -> Unanswered {
        let problem = Problem::error(&written.path, message).at(written.span, "").hint(hint);
        Unanswered::BadDecisions(BadDecisions {
            file: self.file.clone(),
            bytes: self.bytes.clone(),
            problems: vec![problem],
        })
    }
}

/// Why a task may not have one of these files, if there is a reason.
pub(super) fn refused_lock(locks: &[LockPath], occasion: &Occasion<'_>) -> Option<String> {
    let rules = &occasion.config.permissions.paths;
    locks.iter().find_map(|lock| match rules.fit(lock, LockForm::of(lock.as_str())) {
        LockFit::Inside | LockFit::Partly => None,
        LockFit::Outside => Some(format!("is outside of the allowed paths, got `{lock}`")),
        LockFit::Blocked { by } => {
            Some(format!("can never be written: `{by}` is blocked, got `{lock}`"))
        }
    })
}
