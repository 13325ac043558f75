//! Everything that asks the person something.
//!
//! A question is answered by a decisions file, by `--yes`, or by a person at a
//! terminal. Where none of them has an answer, that is said, with the name of
//! the question: nothing here ever waits for someone who is not there, and
//! nothing is taken for a yes that was not one. What an answer leads to is
//! decided in the core.

mod amount;
mod budget_raise;
mod cancel;
mod changeset_review;
mod decisions;
mod diff_view;
mod plan_edit;
mod plan_review;
mod programs;
mod questions;
mod session_end;
pub mod sheet;
mod talk;
mod task_edit;
mod task_trouble;
mod terminal;

#[cfg(test)]
mod at_a_terminal;
#[cfg(test)]
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use blueflame_core::config::Config;
use blueflame_core::gate::{Answer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer};
use blueflame_core::ids::{GroupName, TaskId};
use blueflame_core::money::{Spend, Usd};
use blueflame_core::plan::PlanContext;
use blueflame_core::state::State;
use blueflame_core::state::task::Step;
use blueflame_core::yaml::Problem;

use crate::diagnostics;
use crate::executor::Question;
use crate::failure::{Failure, Kind};

pub use cancel::Cancel;
pub use decisions::Decisions;
pub use programs::Programs;
pub use terminal::{Lent, Terminal};

use talk::Talk;

/// Who answers: a decisions file, `--yes`, or a person at a terminal, in this
/// order. A question that the decisions file names is its own to answer: when
/// its answers are used up, nobody else is asked.
#[derive(Debug)]
pub struct Respondent {
    decisions: Option<Decisions>,
    yes: bool,
    terminal: Option<Terminal>,
}

impl Respondent {
    pub fn new(decisions: Option<Decisions>, yes: bool, terminal: Option<Terminal>) -> Self {
        Respondent { decisions, yes, terminal }
    }

    /// The answer that was given beforehand, by whoever did not look at the work;
    /// `None` if the person is to be asked.
    pub fn prepared(
        &mut self,
        occasion: &Occasion<'_>,
        cancel: &Cancel,
    ) -> Result<Option<Answer>, Unanswered> {
        cancel.check()?;
        if let Some(decisions) = &mut self.decisions
            && let Some(answer) = decisions.answer(occasion)?
        {
            return Ok(Some(answer));
        }
        let yes = if self.yes { yes(occasion.gate) } else { None };
        match (yes, &self.terminal) {
            (None, None) => Err(Unanswered::no_answer(occasion)),
            (yes, _) => Ok(yes),
        }
    }

    /// Asks the person. This waits, so the caller runs it on a thread of its own and
    /// takes the question back through `cancel`.
    pub fn ask(&mut self, occasion: &Occasion<'_>, cancel: &Cancel) -> Result<Answer, Unanswered> {
        cancel.check()?;
        let Some(terminal) = &mut self.terminal else {
            return Err(Unanswered::no_answer(occasion));
        };
        let mut talk = Talk::begin(terminal, cancel, occasion.name());
        let answer = match occasion.gate {
            Gate::Plan => plan_review::ask(&mut talk, occasion).map(Answer::Plan),
            Gate::ValidationFailed(id) => {
                task_trouble::ask_about_work(&mut talk, occasion, id).map(Answer::ValidationFailed)
            }
            Gate::ValidatorFailed(id) => task_trouble::ask_about_validator(&mut talk, occasion, id)
                .map(Answer::ValidatorFailed),
            Gate::Changeset(_) => changeset_review::ask(&mut talk, occasion).map(Answer::Changeset),
            Gate::Budget => budget_raise::ask(&mut talk, occasion).map(Answer::Budget),
            Gate::Session => session_end::ask(&mut talk, occasion).map(Answer::Session),
        };
        talk.end(answer)
    }

    /// Puts a planner's questions to the person. Neither a decisions file nor
    /// `--yes` knows what a planner may ask.
    pub fn answer_questions(
        &mut self,
        questions: &[Question],
        cancel: &Cancel,
    ) -> Result<BTreeMap<String, String>, Unanswered> {
        cancel.check()?;
        let gate = "question of the planner".to_owned();
        let Some(terminal) = &mut self.terminal else { return Err(Unanswered::NoAnswer { gate }) };
        let mut talk = Talk::begin(terminal, cancel, gate);
        let answers = questions::ask(&mut talk, questions);
        talk.end(answers)
    }

    /// Whether there is someone who could answer a planner's questions.
    pub fn has_person(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether a program of the person, such as an editor, has the terminal
    /// right now.
    pub fn lent(&self) -> Option<Lent> {
        self.terminal.as_ref().map(Terminal::lent)
    }

    /// Answers of the decisions file that were not asked for, by their path.
    pub fn unused(&self) -> Vec<String> {
        self.decisions.as_ref().map(Decisions::unused).unwrap_or_default()
    }
}

/// What `--yes` stands for. Trouble with a task and more money need a decision
/// of their own.
fn yes(gate: &Gate) -> Option<Answer> {
    match gate {
        Gate::Plan => Some(Answer::Plan(PlanAnswer::Approve)),
        Gate::Changeset(_) => Some(Answer::Changeset(ChangesetAnswer::Approve)),
        Gate::Session => Some(Answer::Session(SessionAnswer::Continue { retry: Vec::new() })),
        Gate::ValidationFailed(_) | Gate::ValidatorFailed(_) | Gate::Budget => None,
    }
}

/// A question, and what there is to know about it.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    pub gate: &'a Gate,
    pub state: &'a State,
    pub config: &'a Config,
    /// What a changeset review shows.
    pub changeset: Option<&'a ChangesetPage>,
    /// The diff of the task that a question is about, if it is at hand.
    pub diff: Option<&'a str>,
    /// What the plan will probably cost.
    pub forecast: Option<Forecast>,
    pub repository: &'a Path,
    /// The view of the tasks, written before the plan is reviewed; it is what
    /// the person edits.
    pub tasks_file: &'a Path,
}

impl<'a> Occasion<'a> {
    pub fn new(
        gate: &'a Gate,
        state: &'a State,
        config: &'a Config,
        repository: &'a Path,
        tasks_file: &'a Path,
    ) -> Self {
        Occasion {
            gate,
            state,
            config,
            changeset: None,
            diff: None,
            forecast: None,
            repository,
            tasks_file,
        }
    }

    /// The question as a decisions file calls it, with what it is about.
    fn name(&self) -> String {
        match self.gate {
            Gate::Plan => "plan".to_owned(),
            Gate::ValidationFailed(task) => format!("validation_failed {task}"),
            Gate::ValidatorFailed(task) => format!("validator_failed {task}"),
            Gate::Changeset(id) => match self.group() {
                Some(group) => format!("changeset {group}"),
                None => format!("changeset {id}"),
            },
            Gate::Budget => "budget".to_owned(),
            Gate::Session => "session".to_owned(),
        }
    }

    /// The group of the changeset in question.
    fn group(&self) -> Option<&'a GroupName> {
        let Gate::Changeset(id) = self.gate else { return None };
        let planned = self.state.merging.get(id).map(|changeset| &changeset.planned.group);
        planned.or(self.changeset.map(|page| &page.group))
    }
}

/// What a plan is checked against in the middle of a session.
fn plan_context<'a>(occasion: &Occasion<'a>) -> PlanContext<'a> {
    let landed: BTreeSet<TaskId> =
        occasion.state.board.queue(Step::Merged).map(|task| task.spec.id.clone()).collect();
    PlanContext::of(occasion.config).after(landed)
}

/// From what everything costs when all goes well to what it costs with every
/// retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub least: Usd,
    pub most: Usd,
    /// How far such forecasts of what workers cost were off, if this one was
    /// learned from earlier sessions.
    pub off_percent: Option<u32>,
}

/// Everything that a changeset review shows, prepared from git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesetPage {
    /// Which changeset of how many it is.
    pub number: usize,
    pub of: usize,
    pub group: GroupName,
    /// The tasks in it, with their titles.
    pub tasks: Vec<(TaskId, String)>,
    /// The subjects of its commits.
    pub commits: Vec<String>,
    pub files: Vec<FileStat>,
    pub insertions: u64,
    pub deletions: u64,
    /// What was checked on exactly this tree, and what came of it.
    pub checks: String,
    /// What the tasks in it have cost.
    pub cost: Spend,
    /// What else the person should know: an incomplete group, a weaker sandbox.
    pub notes: Vec<String>,
    pub diff: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    pub path: String,
    pub insertions: u64,
    pub deletions: u64,
    pub binary: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Nobody had one.
    #[error("no answer to the question: `{gate}`")]
    NoAnswer { gate: String },
    #[error("interrupted while waiting for an answer")]
    Interrupted,
    #[error("the question was taken back")]
    Withdrawn,
    #[error("an answer in the decisions file cannot be used: `{}`", .0.file.display())]
    BadDecisions(BadDecisions),
}

/// An answer of a decisions file that turned out to be of no use.
#[derive(Debug)]
pub struct BadDecisions {
    /// The decisions file, or the plan that it names.
    pub file: PathBuf,
    pub bytes: Vec<u8>,
    pub problems: Vec<Problem>,
}

impl Unanswered {
    fn no_answer(occasion: &Occasion<'_>) -> Self {
        Unanswered::NoAnswer { gate: occasion.name() }
    }
}

impl From<Unanswered> for Failure {
    /// Shows the places of what is wrong on the way.
    fn from(unanswered: Unanswered) -> Failure {
        match &unanswered {
            Unanswered::NoAnswer { .. } => Failure::new(Kind::Declined, &unanswered).hint(
                "answer at a terminal, or write the answer into a file for --decisions-file \
                 and resume the session",
            ),
            Unanswered::Interrupted | Unanswered::Withdrawn => {
                Failure::new(Kind::Interrupted, &unanswered)
            }
            Unanswered::BadDecisions(bad) => {
                diagnostics::show(&bad.problems, &bad.file.display().to_string(), &bad.bytes);
                Failure::new(Kind::Usage, &unanswered)
            }
        }
    }
}
